"""Checkpoints whose optimizer state was read, and that no optimizer took."""

from __future__ import annotations

import os
from typing import Any, Optional


class Checkpoints:
    """Follows what torch.load() returns up to the first step of an optimizer."""

    def __init__(self) -> None:
        self._unused: Optional[str] = None

    def read(self, source: Any, contents: Any) -> None:
        """Called with what was loaded, and from where."""
        if not isinstance(contents, dict):
            return
        for key, value in contents.items():
            state = value.get("state") if isinstance(value, dict) and "param_groups" in value else None
            if isinstance(state, dict) and state:
                where = source if isinstance(source, (str, os.PathLike)) else "a checkpoint"
                self._unused = f"{where} has an optimizer's state in {key!r}"

    def taken(self) -> None:
        """An optimizer loaded a state."""
        self._unused = None

    def unused(self) -> Optional[str]:
        """Returns what to say as the first step begins."""
        unused, self._unused = self._unused, None
        if unused is None:
            return None
        return f"{unused}, which no optimizer loaded before the first step: momenta begin at zero"
