"""Ranks that the program starts by torch.multiprocessing."""

from __future__ import annotations

from typing import Any


class SpawnedRank:
    """The function that torch.multiprocessing starts, observed."""

    def __init__(self, fn: Any, *observer: Any):
        self._fn = fn
        self._observer = observer

    def __call__(self, *args: Any) -> Any:
        from . import finish, renew

        renew(*self._observer)
        try:
            result = self._fn(*args)
        except SystemExit as end:
            if end.code in (None, 0):
                finish()
            raise
        finish()
        return result
