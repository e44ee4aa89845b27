"""Observes the modules inside of a model, by hooks that are there while a forward pass is looked at.

How long they take: measurements "module h.2.mlp, train.py:288" inside of "forward", in the first iterations and in every 16th of the
others, as the hooks of a module take microseconds. So they are sampled measurements of the stopwatch, whose times stand for all
iterations. And what leaf modules return, in the iterations that are dumped.
"""

from __future__ import annotations

import sys
import weakref
from threading import get_ident
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .. import _ott
from . import _hooks

# The glob of these measurements.
SAMPLED = "module *"

_NUM_FIRST_ITERATIONS = 100
_EVERY = 16
# Larger models have those of the fewest levels.
_MAX_MODULES = 512


def is_selected(iteration: int) -> bool:
    return iteration < _NUM_FIRST_ITERATIONS or iteration % _EVERY == 0


class Modules:
    """Looks from begin() to end(), which are called around a forward pass. Of a model that is compiled nothing is seen, as
    torch.compile() would compile again for the hooks."""

    def __init__(self, models: Any, fail: Callable[[Exception], None]):
        self._models = models
        self.fail = fail
        self._num_models = 0
        self._names: Dict[int, str] = {}
        self._scopes: Dict[int, Tuple[Any, Any]] = {}  # by identity, beside a weak reference
        self._hooks: List[Any] = []
        self._open: List[Tuple[Any, Any]] = []
        self._thread = 0
        self._measures = False
        self._take: Optional[Callable[[str, Any], None]] = None

    def begin(self, measures: bool, take: Optional[Callable[[str, Any], None]]) -> bool:
        """Looks at calls of this thread. Returns False where nothing can be seen.

        Args:
            measures: whether times are measured.
            take: called with the name of a leaf module and what it returned.
        """
        if compiles():
            return False
        if self._num_models != self._models.num_added:
            self._num_models = self._models.num_added
            self._scopes = {key: known for key, known in self._scopes.items() if known[0]() is not None}
            named = sorted(self._models.modules(), key=lambda item: item[0].count("."))
            self._names = {id(module): name for name, module in named[:_MAX_MODULES] if name}
        self._thread, self._measures, self._take = get_ident(), measures, take
        module_hooks = torch.nn.modules.module
        self._hooks = [
            module_hooks.register_module_forward_pre_hook(self._enter),
            module_hooks.register_module_forward_hook(self._leave, **_hooks.ALWAYS),
        ]
        return True

    def end(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        self._close(0)

    @_hooks.guarded
    def _enter(self, module: Any, args: Any) -> None:
        if _hooks.is_compiling() or get_ident() != self._thread or not self._measures:  # the first ends what is traced
            return
        known = self._scopes.get(id(module))
        scope = known[1] if known is not None and known[0]() is module else self._scope_of(module)
        if scope is None:
            return
        try:
            scope.__enter__()
        except RuntimeError:  # open already, as of a module that calls itself
            scope = self._make_scope(module)
            scope.__enter__()
        self._open.append((module, scope))

    @_hooks.guarded
    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if _hooks.is_compiling() or get_ident() != self._thread:
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

    def _scope_of(self, module: Any) -> Optional[Any]:
        if id(module) not in self._names:
            return None
        scope = self._make_scope(module)
        self._scopes[id(module)] = (weakref.ref(module), scope)
        return scope

    def _make_scope(self, module: Any) -> Any:
        # TorchScript's modules have none where others do, and not even an AttributeError that getattr() takes.
        place = "" if isinstance(module, torch.jit.ScriptModule) else _hooks.place_of(type(module).forward)
        place = place or _hooks.place_of_caller()
        # The stopwatch finds interned names fastest.
        return _ott.Scope(sys.intern(f"module {self._names[id(module)]}, {place}".rstrip(", ")))


def compiles() -> bool:
    dynamo = sys.modules.get("torch._dynamo")
    # With fullgraph=True no frames are counted.
    return dynamo is not None and any(bool(dynamo.utils.counters[kind]) for kind in ("frames", "stats"))
