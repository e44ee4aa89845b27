"""Dropout: that it drops where a model trains, and does not where it is evaluated."""

from __future__ import annotations

import functools
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn
from torch.nn import functional as F

from . import _hooks
from ._sound_training import Training, guarded, sample_digest

_ATTENTION = "scaled_dot_product_attention"  # which has no flag
# Functions, and what their flag `training` is where a program leaves it out.
_FLAGS = {"dropout": True, "dropout1d": True, "dropout2d": True, "dropout3d": True, "alpha_dropout": False, "feature_alpha_dropout": False}
_MAX_EVALUATIONS = 1000  # that are looked into before one drops
_MIN_TRAINING = 3  # iterations in which nothing was dropped


class _Evaluated:
    """A call that drops in passes of a model in eval mode."""

    def __init__(self, names: List[str], iteration: int, how: str):
        self.names, self.iteration, self.how = names, iteration, how
        self.last_pass = -1
        # Inputs of the passes, with the number of steps before; the same twice: the program draws samples of its result.
        self.passes: Set[Tuple[int, str]] = set()
        self.is_sampling = False


class Dropouts:
    """Looks at layers of nn.Dropout, and replaces functional dropout while a pass that is looked into runs.

    torch.jit.script reads the functions' source, so they stay as they are outside of passes.
    """

    def __init__(self, training: Training):
        self._training = training
        self._replaced = [(name, getattr(F, name), self._observe(name)) for name in (*_FLAGS, _ATTENTION) if hasattr(F, name)]
        self._root: Optional[nn.Module] = None  # of the pass
        self._inputs: Any = None
        self._num_passes = 0
        self._evaluated: Dict[str, _Evaluated] = {}
        # Calls that drop nothing in training: first iteration, how often, module and chance. And those that dropped once.
        self._idle: Dict[str, Tuple[int, int, str, float]] = {}
        self._drop: Set[str] = set()

    def _observe(self, name: str) -> Any:
        original = getattr(F, name)

        @functools.wraps(original)
        def observed(*args: Any, **kwargs: Any) -> Any:
            if _hooks.is_compiling() or self._root is None:
                return original(*args, **kwargs)
            self._saw_call(name, args, kwargs)
            setattr(F, name, original)  # subclasses of tensors are told the function's name by what it is here
            try:
                return original(*args, **kwargs)
            finally:
                if self._root is not None:
                    setattr(F, name, observed)

        return observed

    def begin_pass(self, root: nn.Module, inputs: Any, trains: bool) -> None:
        """trains: with gradients."""
        training = self._training
        if training.compiles:
            training.not_checked("dropout_in_evaluation", "torch.compile() shows no functions")
            return
        self._num_passes += 1
        is_evaluation = not root.training and (self._num_passes < _MAX_EVALUATIONS or bool(self._evaluated))
        if not is_evaluation and not (trains and root.training and (training.iteration < training.look_until or self._idle)):
            return
        if is_evaluation:
            training.check("dropout_in_evaluation")
        self._root, self._inputs = root, inputs
        for name, original, observed in self._replaced:
            if getattr(F, name) is original:
                setattr(F, name, observed)

    def end_pass(self) -> None:
        if self._root is None:
            return
        self._root = self._inputs = None
        for name, original, observed in self._replaced:
            if getattr(F, name) is observed:
                setattr(F, name, original)

    @guarded
    def _saw_call(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        assert self._root is not None
        if name == _ATTENTION:
            chance, flag = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0), None
        else:
            chance, flag = kwargs.get("p", args[1] if len(args) > 1 else 0.5), kwargs.get("training", args[2] if len(args) > 2 else None)
        if not isinstance(chance, float) or chance <= 0 or (flag and not self._root.training):
            return
        drops = _FLAGS.get(name, True) if flag is None else bool(flag)
        if self._root.training:
            self._saw_in_training(name, drops, chance)
        elif drops:
            self._saw_in_evaluation(name)

    def _saw_in_training(self, name: str, drops: bool, chance: float) -> None:
        place = _hooks.place_of_caller()
        if drops:
            self._drop.add(place)
            self._idle.pop(place, None)
            return
        # What a part in eval mode leaves out is meant; attention without dropout has no chance.
        module = _hooks.calling_module()
        if place in self._drop or module is None or not all(part.training for part in module.modules()):
            return
        iteration = self._training.iteration
        first, number, *_ = self._idle.get(place, (iteration, 0))
        self._idle[place] = (first, max(number, iteration - first + 1), f"{self._training.module_name(module)}, F.{name}", chance)

    def _saw_in_evaluation(self, name: str) -> None:
        module = _hooks.calling_module()
        if module is None or module.training:
            return  # as Monte Carlo dropout sets it
        how = "dropout_p above zero" if name == _ATTENTION else "no `training`"
        names = [f"{self._training.module_name(module)}, F.{name}"]
        found = self._evaluated.setdefault(_hooks.place_of_caller(), _Evaluated(names, self._training.iteration, how))
        if found.last_pass == self._num_passes:
            return
        found.last_pass = self._num_passes
        inputs = list(_hooks.tensors_in(self._inputs))
        key = (self._training.num_steps, sample_digest(inputs))
        has_copies = any(x.dim() > 0 and len(x) > 1 and torch.equal(x[0], x[1]) for x in map(_hooks.local, inputs))
        found.is_sampling = found.is_sampling or key in found.passes or has_copies
        found.passes.add(key)

    def finish_iteration(self) -> None:
        """Tells of evaluations before this iteration's step: by now it is known whether they draw samples."""
        for place, found in self._evaluated.items():
            if len(found.passes) >= 2 and not found.is_sampling:
                seen = f"drops elements in eval mode, as it is called with {found.how}"
                self._training.find("dropout_in_evaluation", found.names, seen, place, found.iteration)

    def finish(self) -> None:
        """Tells of calls that never dropped: only the end tells that."""
        self.finish_iteration()
        for place, (first, number, name, chance) in self._idle.items():
            if number >= _MIN_TRAINING:
                seen = f"is called with training=False in training mode in all iterations, with p={chance:g}"
                self._training.find("dropout_drops_nothing", [name], seen, place, first)

    def check_layer(self, module: Any, args: Any, output: Any) -> None:
        """Looks at what a nn.Dropout of the training returned."""
        given = next(_hooks.tensors_in(args), None)
        if not module.training or given is None or not isinstance(output, torch.Tensor) or _hooks.is_sharded(output):
            return
        if given.device.type != "cpu" or given.shape != output.shape or given.dtype != output.dtype or module.inplace:
            return
        # The chance that none of them is dropped is less than exp(-40).
        if module.p * int(given.count_nonzero()) < 40:
            return
        self._training.check("dropout_drops_nothing")
        if torch.equal(given, output):
            seen = f"{int(given.count_nonzero())} elements went through unchanged in training mode, with p={module.p:g}"
            self._training.find("dropout_drops_nothing", [self._training.module_name(module)], seen)
