"""Forward passes: whether what they make gets gradients, in which dtype, and in which mode modules are."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Set, Tuple

import torch
from torch import nn

from . import _hooks, _modules
from ._sound_dropouts import Dropouts
from ._sound_training import Training, guarded, parameters_of, sample_of
from ._sound_witnesses import Witnesses

_LINEAR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout) if hasattr(nn, "Dropout1d") else (nn.Dropout,)


class Passes:
    """Looks into the modules of the first iterations, and of those after modules were replaced."""

    def __init__(self, training: Training, dropouts: Dropouts, witnesses: Witnesses):
        self._training = training
        self._dropouts = dropouts
        self._witnesses = witnesses
        self._estimated = _hooks.WeakIds()
        # Parameters that ran within a reentrant checkpoint none of whose inputs wants a gradient.
        self._checkpointed: Set[int] = set()
        self._is_checkpoint_deaf = False
        self._module_hook: Optional[Any] = None
        self._calls: List[Tuple[Any, bool, Set[int], Set[int]]] = []
        self._storages: List[Any] = []
        self._had_gradient: Set[int] = set()
        self._without_gradient: Dict[int, Tuple[int, torch.Tensor]] = {}
        # Parameters without a gradient and their first elements, of which only the end tells whether it never came.
        self._lost: List[Tuple[int, List[Tuple[torch.Tensor, torch.Tensor]], str]] = []

    def install(self, patches: _hooks.Patches) -> None:
        checkpoint = sys.modules.get("torch.utils.checkpoint")
        if checkpoint is not None:
            patches.wrap(checkpoint.CheckpointFunction, "forward", self._checkpoint)

    def _checkpoint(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._is_checkpoint_deaf = not any(tensor.requires_grad for tensor in _hooks.tensors_in(args))
        try:
            return original(*args, **kwargs)
        finally:
            self._is_checkpoint_deaf = False

    def begin_forward(self, module: Any, root: nn.Module) -> None:
        training = self._training
        training.forwards.setdefault(id(root), (root, []))[1].append(root.training)
        training.compiles = training.compiles or _modules.compiles()
        if training.iteration < training.look_until:
            training.compiles = training.compiles or any(map(_is_compiled, module.modules()))
            self._check_stages(root)
            if not root.training:
                self.check_estimated(root)
        if training.iteration < training.look_until and not training.compiles:
            self.unhook()
            self._module_hook = torch.nn.modules.module.register_module_forward_hook(self._saw_module)

    def _check_stages(self, root: nn.Module) -> None:
        """Modules that say by MMPretrain's and MMDetection's names that a part of them is frozen."""
        for module in root.modules():
            number = getattr(module, "frozen_stages", None)
            if isinstance(number, int) and number >= 1 and hasattr(module, "_freeze_stages"):
                self._training.check("stages_not_frozen")
                if all(p.requires_grad for p in module.parameters()):
                    seen = f"has frozen_stages={number}, and all of its parameters want gradients"
                    self._training.find("stages_not_frozen", [type(module).__name__], seen)

    def check_estimated(self, root: nn.Module) -> None:
        """Looks, once for each model, at vectors that a spectral norm keeps: after an estimate u is what the weight makes of v."""
        if root in self._estimated:
            return
        self._estimated.add(root)
        for name, module in root.named_modules():
            for hook in module._forward_pre_hooks.values():
                if type(hook).__name__ != "SpectralNorm" or module.training:
                    continue
                weight = hook.reshape_weight_to_matrix(getattr(module, hook.name + "_orig").detach())
                u, v = getattr(module, hook.name + "_u"), getattr(module, hook.name + "_v")
                self._training.check("spectral_norm_not_estimated")
                # By chance more than a half only with few rows.
                cosine = abs(float(nn.functional.cosine_similarity(weight @ v, u, 0)))
                if cosine < 0.5:
                    seen = f"its vectors are as they were drawn: their cosine is {cosine:.2f} instead of 1"
                    self._training.find("spectral_norm_not_estimated", [name or type(module).__name__], seen)

    def unhook(self) -> None:
        hook, self._module_hook = self._module_hook, None
        if hook is not None:
            hook.remove()

    @guarded
    def _saw_module(self, module: Any, args: Any, output: Any) -> None:
        if _hooks.is_compiling():
            return
        grad = torch.is_grad_enabled()
        for parameter in module._parameters.values():
            if parameter is not None:
                ran = self._training.ran.get(id(parameter))
                self._training.ran[id(parameter)] = (parameter, grad or (ran is not None and ran[1]))
                if self._is_checkpoint_deaf:
                    self._checkpointed.add(id(parameter))
                if id(parameter) not in self._training.names:
                    self._training.names[id(parameter)] = f"a parameter of {type(module).__name__}, which is part of no model"
        self._calls.append((module, grad, self._storages_of(args), self._storages_of(output)))
        if type(module) is nn.Dropout:
            self._dropouts.check_layer(module, args, output)
            self._witnesses.saw_dropout(module, args, output)
        if type(module) in _LINEAR and isinstance(output, torch.Tensor):
            self._check_dtype(module, args, output)

    def _storages_of(self, data: Any) -> Set[int]:
        found = set()
        for tensor in _hooks.tensors_in(data):
            tensor = _hooks.local(tensor)
            if not hasattr(tensor, "untyped_storage") or tensor.layout != torch.strided:
                continue
            storage = tensor.untyped_storage()
            # While it is referred to weakly, no other storage gets its identity.
            self._storages.append(sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(storage))
            found.add(storage._cdata)
        return found

    def _check_dtype(self, module: Any, args: Any, output: torch.Tensor) -> None:
        expected = _autocast_dtype(output.device.type)
        if expected is None:
            return
        given = next(_hooks.tensors_in(args), None)
        if given is None or not given.is_floating_point() or given.dtype == torch.float64 or module._forward_hooks:
            return
        self._training.check("autocast_dtype")
        if output.dtype != expected:
            self._training.find("autocast_dtype", [self._training.module_name(module)], f"returns {output.dtype} instead of {expected}")

    def end_backward(self) -> None:
        if self._lost:
            # A part that is detached at first gets a gradient later.
            self._lost = [(first, [item for item in lost if item[0].grad is None], seen) for first, lost, seen in self._lost]
            self._lost = [lost for lost in self._lost if lost[1]]
        if self._training.iteration < self._training.look_until:
            for parameter, _ in self._training.ran.values():
                if parameter.grad is not None:
                    self._had_gradient.add(id(parameter))

    def check_modes(self, optimizer: Any) -> None:
        if all(any(modes) for _, modes in self._training.forwards.values()):
            if self._training.forwards:
                self._training.check("eval_in_training")
            return
        ids = {id(p) for p in parameters_of(optimizer)}
        forwards = [(root, modes) for root, modes in self._training.forwards.values() if any(id(p) in ids for p in root.parameters())]
        if forwards:
            self._training.check("eval_in_training")
        if any(any(modes) for _, modes in forwards):
            return  # a part of what learns is in eval mode on purpose
        for root, _ in forwards:
            for name, module in root.named_modules():
                is_dropout = isinstance(module, _DROPOUTS) and module.p > 0
                is_norm = isinstance(module, _NORMS) and module.track_running_stats
                if (is_dropout or is_norm) and not module.training:
                    seen = f"the model is in eval mode in the forward pass that it learns from, and so is its {name}"
                    self._training.find("eval_in_training", [type(root).__name__], seen)
                    break

    def finish_iteration(self, was_replaced: bool) -> None:
        """was_replaced: whether there are other modules or parameters than before."""
        training = self._training
        assert training.record is not None
        if was_replaced:
            self._had_gradient = set()
        if training.compiles:
            for rule in ("missing_gradient", "autocast_dtype"):
                training.record.not_checked(rule, "torch.compile() shows no modules")
        elif training.iteration < training.look_until:
            self._check_missing()
        self._calls, self._storages = [], []
        training.forwards.clear()

    def _check_missing(self) -> None:
        """Parameters whose module's result was used, and that never got a gradient."""
        steps = [o for o, state in self._training.optimizers.items() if state.num_steps > 0]
        in_steps = {id(p): p for o in steps for p in parameters_of(o) if p.requires_grad}
        missing = {key: p for key, p in in_steps.items() if key in self._training.ran and key not in self._had_gradient and p.grad is None}
        last = self._training.iteration == self._training.look_until - 1
        if not last:
            samples = {key: sample_of(p) for key, p in missing.items()}
            self._without_gradient = {key: (self._training.iteration, s) for key, s in samples.items() if s is not None}
            return
        self._training.check("missing_gradient")
        lost: Dict[Tuple[str, str, int], List[Tuple[torch.Tensor, torch.Tensor]]] = {}
        for key, (first, before) in self._without_gradient.items():
            parameter = missing.get(key)
            if parameter is None:
                continue
            module = next((m for m, *_ in self._calls if any(p is parameter for p in m._parameters.values())), None)
            user = self._find_user(module)
            if user is None and key in self._checkpointed and not self._training.ran[key][1]:
                seen = "it ran without gradients", "a checkpoint none of whose inputs wants a gradient", first
                lost.setdefault(seen, []).append((parameter, before))
            elif user is not None:
                why = "its result was detached" if self._training.ran[key][1] else "it ran without gradients"
                lost.setdefault((why, self._training.module_name(user), first), []).append((parameter, before))
        for (why, user, first), items in lost.items():
            self._lost.append((first, items, f"{why}, and {user} uses it"))
        self._without_gradient = {}

    def finish(self) -> None:
        """Tells of what never got a gradient: only the end tells that."""
        for first, lost, seen in self._lost:
            # What changes is a copy that something else writes.
            names = [self._training.name_of(p) for p, before in lost if p.grad is None and torch.equal(before, sample_of(p))]
            if names:
                self._training.find("missing_gradient", names, seen, iteration=first)

    def _find_user(self, module: Any) -> Any:
        """The module with gradients that got the module's result, by way of those without; None: not known."""
        storages: Set[int] = set()
        for called, _, given, returned in self._calls:
            if called is module:
                storages |= returned
            elif given & storages:
                parameters = [p for p in called._parameters.values() if p is not None]
                if any(id(p) in self._had_gradient for p in parameters):
                    return called
                storages |= returned
        return None


def _autocast_dtype(kind: str) -> Optional[torch.dtype]:
    """Of a kind of device, where autocast is on; older versions of PyTorch have functions of their own for the host."""
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    return torch.get_autocast_cpu_dtype() if kind == "cpu" and torch.is_autocast_cpu_enabled() else None


def _is_compiled(module: nn.Module) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
