"""What is asked of the modules inside of a model, by hooks that are there while a forward pass is looked at.

How long they take: measurements "module h.2.mlp, train.py:288" inside of "forward", in the first iterations and in every 16th of the
others, as the hooks of a module take microseconds. So they are sampled measurements of the stopwatch, whose times stand for all
iterations. And what leaf modules return, in the iterations that are dumped.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .. import _ott
from . import _hooks

# The glob of these measurements.
SAMPLED = "module *"

_NUM_FIRST_ITERATIONS = 100
_EVERY = 16
# Of larger models, those of the fewest levels.
_MAX_MODULES = 512


def is_selected(iteration: int) -> bool:
    return iteration < _NUM_FIRST_ITERATIONS or iteration % _EVERY == 0


class Modules:
    """Looks from begin() to end(), which are called around a forward pass. Of a model that is compiled nothing is seen, as
    torch.compile() would compile again for the hooks."""

    def __init__(self, models: Any):
        self._models = models
        self._num_models = 0
        self._names: Dict[int, str] = {}
        self._measurements: Dict[int, Tuple[Any, str]] = {}  # by identity, beside a weak reference
        self._hooks: List[Any] = []
        self._open: List[Tuple[Any, Any]] = []
        self._is_ours: Callable[[], bool] = lambda: False
        self._measures = False
        self._take: Optional[Callable[[str, Any], None]] = None

    def begin(self, is_ours: Callable[[], bool], measures: bool, take: Optional[Callable[[str, Any], None]]) -> bool:
        """Returns False where nothing can be seen.

        Args:
            is_ours: whether a call is of the thread that trains.
            measures: whether times are measured.
            take: called with the name of a leaf module and what it returned.
        """
        if _compiles():
            return False
        if self._num_models != self._models.num_models:
            self._num_models = self._models.num_models
            named = sorted(self._models.modules(), key=lambda item: item[0].count("."))
            self._names = {id(module): name for name, module in named[:_MAX_MODULES] if name}
        self._is_ours, self._measures, self._take = is_ours, measures, take
        always = {"always_call": True} if _hooks.has_always_call() else {}
        module_hooks = torch.nn.modules.module
        self._hooks = [
            module_hooks.register_module_forward_pre_hook(self._enter),
            module_hooks.register_module_forward_hook(self._leave, **always),
        ]
        return True

    def end(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        self._close(0)

    def _enter(self, module: Any, args: Any) -> None:
        if _hooks.is_compiling() or not self._is_ours():
            return
        measurement = self._measurement_of(module) if self._measures else None
        if measurement is not None:
            scope = _ott.Scope(measurement)
            scope.__enter__()
            self._open.append((module, scope))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if _hooks.is_compiling() or not self._is_ours():
            return
        if self._take is not None and next(module.children(), None) is None and id(module) in self._names:
            self._take(self._names[id(module)], output)
        # With those inside of it that raised, where the version at hand does not tell of that.
        for depth in range(len(self._open) - 1, -1, -1):
            if self._open[depth][0] is module:
                self._close(depth)
                return

    def _close(self, depth: int) -> None:
        while len(self._open) > depth:
            self._open.pop()[1].__exit__(None, None, None)

    def _measurement_of(self, module: Any) -> Optional[str]:
        known = self._measurements.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        name = self._names.get(id(module))
        if name is None:
            return None
        measurement = f"module {name}, {_hooks.place_of(type(module).forward) or _hooks.place_of_caller()}".rstrip(", ")
        self._measurements[id(module)] = (weakref.ref(module), measurement)
        return measurement


def _compiles() -> bool:
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is not None and bool(dynamo.utils.counters["frames"])
