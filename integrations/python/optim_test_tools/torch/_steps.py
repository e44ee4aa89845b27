"""Steps of optimizers, and which of them end an iteration."""

from __future__ import annotations

from typing import Any, List, Optional

from ._sound_training import parameters_of


class Steps:
    """An iteration ends with the step of an optimizer: of several, of the one that steps last in the first iteration.

    Attributes:
        num: steps so far, also those that a scaler left out.
        num_own: of these, steps of what may be of this rank alone.
    """

    def __init__(self) -> None:
        self.num = 0
        self.num_own = 0
        self._taken: List[Any] = []  # the optimizers of this iteration
        self._last: Optional[Any] = None  # whose step ends an iteration
        self._new: Optional[Any] = None

    def meet(self, optimizer: Any) -> None:
        """Called with an optimizer that was not known before it steps."""
        self._new = optimizer

    def any(self) -> bool:
        """Returns whether an optimizer stepped in this iteration."""
        return bool(self._taken)

    def has(self, optimizer: Any) -> bool:
        return any(known is optimizer for known in self._taken)

    def may_be_over(self) -> bool:
        """In the first iteration, of which only the next one's beginning tells which step was its last."""
        return self._last is None and self.any()

    def add(self, optimizer: Any, is_own: bool) -> bool:
        """Returns True if this step ends the iteration.

        is_own: whether it may be of this rank alone. Other ranks end no iteration with it.
        """
        self.num += 1
        if is_own:
            self.num_own += 1
            return False
        again = self.has(optimizer)
        self._taken.append(optimizer)
        if self._last is None:
            return False
        if optimizer is self._new and _share_parameters(optimizer, self._last):
            self._last = optimizer  # in whose place it was made
        return again or optimizer is self._last

    def finish_iteration(self) -> None:
        self._last, self._new = self._taken[-1], None
        self._taken = []


def _share_parameters(a: Any, b: Any) -> bool:
    ids = set(map(id, parameters_of(a)))
    return any(id(p) in ids for p in parameters_of(b))
