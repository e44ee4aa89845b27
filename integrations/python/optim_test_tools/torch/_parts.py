"""The parts of an iteration as measurements: one is open at a time, and what is called inside of it is part of it."""

from __future__ import annotations

from typing import Any, Optional

from .. import _ott
from ._modules import Modules
from ._operations import Operations


class Parts:
    """Opens and closes measurements of one thread."""

    def __init__(self, modules: Modules, operations: Operations):
        self._modules = modules
        self._operations = operations
        self._scope: Optional[Any] = None
        self._may_be_ended = False

    @property
    def is_open(self) -> bool:
        """Returns True inside of a part that no other one ends."""
        return self._scope is not None and not self._may_be_ended

    def begin(self, name: str, may_be_ended: bool = False) -> bool:
        """Returns False, and opens nothing, inside of another part.

        Args:
            name: the measurement.
            may_be_ended: whether the next part ends this one. A gap is what lies before that part, whatever it is. What a
                closure of step() does has names of its own, as in Lightning all of a training step does.
        """
        if self._scope is not None:
            if not self._may_be_ended:
                return False
            self.end()
        self._scope = _ott.Scope(name)
        self._scope.__enter__()
        self._may_be_ended = may_be_ended
        self._operations.phase = name
        return True

    def end(self) -> None:
        """Closes the part that is open, if one is."""
        self._modules.end()
        scope, self._scope = self._scope, None
        self._operations.phase = ""
        if scope is not None:
            scope.__exit__(None, None, None)
