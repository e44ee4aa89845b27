"""Steps of all optimizers, told of by hooks of PyTorch, or by replacing step() where these are missing."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator

import torch

from . import _hooks

_optimizer_module = sys.modules["torch.optim.optimizer"]  # torch.optim hides it
_HAS_HOOKS = hasattr(_optimizer_module, "register_optimizer_step_pre_hook")  # from 2.0 on
# The code of what PyTorch puts around step(), which calls the hooks.
_CALLS_HOOKS = torch.optim.Optimizer.profile_hook_step.__code__.co_consts if _HAS_HOOKS else ()


class StepHooks:
    """Calls before(optimizer, has_closure, frame) and after(optimizer) around each step(), except in what torch.compile() traces.

    The frame is that of the call, which is on the stack until the step has ended.
    """

    def __init__(self, patches: _hooks.Patches, before: Callable[[Any, bool, Any], None], after: Callable[[Any], None]) -> None:
        self._patches = patches
        self._tell_before = before
        self._tell_after = after

    def install(self) -> None:
        if _HAS_HOOKS:
            self._patches.add(_optimizer_module.register_optimizer_step_pre_hook(self._before).remove)
            self._patches.add(_optimizer_module.register_optimizer_step_post_hook(self._after).remove)

    def watch(self, optimizers: type) -> None:
        """Needed for the class of each optimizer that is made."""
        if _lacks_hooks(optimizers):
            self._patches.wrap(optimizers, "step", self._step)

    def watch_all(self) -> None:
        """Needed after torch.compile(), which until 2.2 takes the hooks away, and in 2.7 compiles what they call."""
        dynamo = sys.modules.get("torch._dynamo")  # None: nothing is compiled yet
        if dynamo is not None:
            self._tell_before, self._tell_after = dynamo.disable(self._tell_before), dynamo.disable(self._tell_after)
        for optimizers in _classes_of(torch.optim.Optimizer):
            self.watch(optimizers)

    def _step(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        self._before(optimizer, args, kwargs)
        result = original(optimizer, *args, **kwargs)
        self._after(optimizer, args, kwargs)
        return result

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _hooks.is_compiling():
            # PyTorch gives the optimizer among the arguments.
            has_closure = any(callable(item) and item is not optimizer for item in (*args, kwargs.get("closure")))
            self._tell_before(optimizer, has_closure, sys._getframe(1))

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _hooks.is_compiling():
            self._tell_after(optimizer)


def _lacks_hooks(optimizers: type) -> bool:
    """Returns True if step() calls no hooks, and never will."""
    step: Any = optimizers.step
    if not getattr(step, "hooked", False):
        return False
    while step is not None and getattr(step, "__code__", None) not in _CALLS_HOOKS:
        step = getattr(step, "__wrapped__", None)
    return step is None


def _classes_of(base: type) -> Iterator[type]:
    for derived in base.__subclasses__():
        yield derived
        yield from _classes_of(derived)
