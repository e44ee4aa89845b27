"""Steps of optimizers: what they have, what they write, and what they keep from one to the next."""

from __future__ import annotations

import gc
import weakref
from typing import Any, Dict, List, Optional, Tuple

import torch

from . import _hooks
from ._sound_training import OptimizerState, Training, guarded, identity, is_nonzero, parameters_of, sample_of

_COUNTED = 8  # parameters of which an optimizer's own count is read
_MAX_RECREATED = 256
_ROUNDED_STEPS = 8  # after which an update that never shows is lost


class _Recreated:
    """An optimizer that may have been made in the place of another one."""

    def __init__(self, first: torch.Tensor):
        self.parameter = weakref.ref(first)
        self.before = sample_of(first)
        self.number = 1  # of those that stepped once, one after another
        self.lost_state = False  # if it is replaced now


class Steps:
    """Looks at the parameters of optimizers, by identity."""

    def __init__(self, training: Training):
        self._training = training
        self._orphans: Dict[int, Tuple[int, torch.Tensor, Any]] = {}  # beside a weak reference, as identities come again
        self._were_held = _hooks.WeakIds()  # parameters that an optimizer had which may be gone
        # Optimizers that were made, and whether those were looked for that were made before the observation began.
        self._made: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._has_searched = False
        # By parameter: the optimizer that used its gradient last, and which gradient that was.
        self._applied: Dict[int, Tuple[Any, Any]] = {}
        self._twice: List[int] = []
        self._recreated: Dict[Tuple[Any, ...], _Recreated] = {}  # by type and identities of parameters

    def add_optimizer(self, optimizer: Any) -> None:
        """It was made; others may step for it."""
        self._made.add(optimizer)

    def begin_step(self, optimizer: Any) -> None:
        state = self._training.state_of(optimizer)
        state.groups = optimizer.param_groups
        if not state.trainable:
            state.trainable = {id(p) for p in parameters_of(optimizer) if p.requires_grad}

    def finish(self) -> None:
        """Tells of steps that changed nothing: only the end tells that."""
        for state in self._training.optimizers.values():
            self.end(state)

    @guarded
    def end(self, state: OptimizerState) -> None:
        """The optimizer steps no more."""
        self._training.check("step_without_gradients")
        if state.num_idle_steps >= 3 and state.num_idle_steps == state.num_steps:
            seen = f"stepped {state.num_steps} times after backward passes, and none of its parameters ever had a gradient"
            self._training.find("step_without_gradients", [state.name], seen, iteration=0)
        rates = {id(p): group.get("lr") for group in state.groups for p in group["params"]} if state.first_values else {}
        names = []
        for parameter, before, iteration in state.first_values:
            self._training.check("update_rounded_away")
            if state.num_steps >= _ROUNDED_STEPS and rates.get(id(parameter)) != 0 and _is_equal(before, sample_of(parameter)):
                names.append(self._training.name_of(parameter))
        if names:
            kind = str(state.first_values[0][0].dtype).replace("torch.", "")
            seen = f"{state.num_steps} steps with gradients left it as it was: each update is less than half of the last digit of {kind}"
            self._training.find("update_rounded_away", names, seen, iteration=state.first_values[0][2])

    def begin_update(self, optimizer: Any, gradients: List[Tuple[torch.Tensor, torch.Tensor]], has_closure: bool) -> None:
        state = self._training.state_of(optimizer)
        if not has_closure:
            self._check_used_twice(state, gradients)
        self._training.check("frozen_parameter_updated")
        frozen = [p for p, _ in gradients if not p.requires_grad and id(p) in state.trainable]
        state.frozen = [(p, sample_of(p)) for p in frozen]
        state.written, state.counted = [], []
        if len(self._training.optimizers) > 1:
            self._check_two(optimizer, gradients)
        if not has_closure and not gradients and self._training.num_backwards > state.num_backwards:
            state.num_idle_steps += 1
        if state.num_steps == 1 and state.is_pytorch:
            self._keep_first_values(state, gradients)
        if state.is_pytorch and not has_closure and not _hooks.is_compiling():
            state.counted = _counts(optimizer, [p for p, _ in gradients])
            # Fused kernels leave the version of what they write as it was.
            fused = {id(p) for group in optimizer.param_groups if group.get("fused") for p in group["params"]}
            if fused and self._training.record is not None:
                self._training.record.not_checked("parameter_not_written", "a fused optimizer leaves no mark on what it writes")
            held = [p for p, _ in gradients if p.requires_grad and not _hooks.is_sharded(p) and id(p) not in fused]
            state.written = [(p, p._version) for p in held]

    def _keep_first_values(self, state: OptimizerState, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Of parameters with few digits, as far as their first elements have gradients."""
        for parameter, gradient in gradients:
            if parameter.dtype in (torch.float16, torch.bfloat16) and parameter.requires_grad:
                values, slope = sample_of(parameter), sample_of(gradient)
                if values is not None and slope is not None and bool(slope.any()):
                    state.first_values.append((parameter, values, self._training.iteration))

    def _check_used_twice(self, state: OptimizerState, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        if state.num_steps == 0:
            return
        self._training.check("gradient_used_twice")
        if self._training.num_backwards != state.num_backwards or not gradients or len(state.used) != len(gradients):
            return
        if any(identity(p.grad) != (key, version) or p.grad is None for p, key, version in state.used):
            return
        sample = sample_of(gradients[0][1])
        if sample is not None and state.sample is not None and torch.equal(sample, state.sample) and bool(sample.any()):
            seen = f"{state.name} stepped twice with the same gradients, without a backward pass between"
            self._training.find("gradient_used_twice", [], seen, _hooks.place_of_caller())

    def _check_two(self, optimizer: Any, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Looks for gradients that another optimizer used as they are."""
        if not self._training.state_of(optimizer).is_pytorch:
            return
        self._training.check("parameter_in_two_optimizers")
        rates = {id(p): group.get("lr") for group in optimizer.param_groups for p in group["params"]}
        shared = []
        for parameter, gradient in gradients:
            key = (self._training.num_backwards, *identity(gradient))
            other, used = self._applied.get(id(parameter), (None, None))
            if rates.get(id(parameter)) == 0:
                continue
            if used == key and other is not None and other() is not None and other() is not optimizer and is_nonzero(gradient):
                shared.append(parameter)
            self._applied[id(parameter)] = (weakref.ref(optimizer), key)
        if not shared:
            return
        self._twice.append(self._training.iteration)
        if len(set(self._twice)) == 2:
            seen = "two optimizers stepped with the same gradient of it"
            self._training.find("parameter_in_two_optimizers", [self._training.name_of(p) for p in shared], seen, iteration=self._twice[0])

    def _check_counted(self, optimizer: Any, state: OptimizerState) -> None:
        """Looks whether the optimizer's own count of steps went up by more than one, or down."""
        counted, state.counted = state.counted, []
        if not counted or getattr(optimizer, "found_inf", None) is not None:
            return
        held = [p for p, _ in counted if p in optimizer.state]
        after = {id(p): count for p, count in _counts(optimizer, held)}
        for parameter, before in counted:
            if id(parameter) not in after:
                continue
            self._training.check("step_not_counted")
            # 0: a hook of the program's own left it out.
            if after[id(parameter)] - before not in (0, 1):
                seen = f"{state.name} counted from {before:g} to {after[id(parameter)]:g} in one step"
                self._training.find("step_not_counted", [self._training.name_of(parameter)], seen)
                return

    def check_recreated(self, optimizer: Any) -> None:
        first = next(parameters_of(optimizer), None)
        if first is None:
            return
        key = (type(optimizer), *map(id, parameters_of(optimizer)))
        known, new = self._recreated.get(key), _Recreated(first)
        # Others may lie where parameters were that are gone, and some programs begin anew with each sample.
        if known is not None and known.parameter() is first and not _is_equal(known.before, new.before):
            self._training.check("optimizer_recreated")
            new.number = known.number + 1 if known.lost_state and not optimizer.state else 1
            if new.number >= 3:
                seen = f"the third {type(optimizer).__name__} of these parameters that steps once and has no state of the one before"
                self._training.find("optimizer_recreated", [], seen, _hooks.place_of_caller())
        if len(self._recreated) >= _MAX_RECREATED:
            self._recreated = {key: entry for key, entry in self._recreated.items() if entry.parameter() is not None}
        self._recreated[key] = new

    def end_step(self, optimizer: Any) -> None:
        state = self._training.state_of(optimizer)
        written, state.written = state.written, []
        if written:
            self._training.check("parameter_not_written")
            missed = [p for p, version in written if p._version == version]
            rates = {id(p): group.get("lr") for group in optimizer.param_groups for p in group["params"]} if missed else {}
            missed = [p for p in missed if rates.get(id(p)) != 0]
            if missed:
                seen = f"{state.name}.step() left it as it was, with a gradient"
                self._training.find("parameter_not_written", [self._training.name_of(p) for p in missed], seen)
        self._check_counted(optimizer, state)
        frozen, state.frozen = state.frozen, []
        moved = [p for p, before in frozen if before is not None and not torch.equal(before, sample_of(p))]
        if moved:
            seen = f"has a gradient, and {state.name} changed it although it requires none any more"
            self._training.find("frozen_parameter_updated", [self._training.name_of(p) for p in moved], seen)
        state.num_steps += 1
        self._training.num_steps += 1
        self._training.num_own_steps += self._training.models.may_be_of_one_rank(optimizer)
        self._training.stepped = weakref.ref(optimizer)  # the same object for the same optimizer
        recreated = self._recreated.get((type(optimizer), *map(id, parameters_of(optimizer))))
        if recreated is not None:
            # An optimizer without state has nothing to lose.
            has_state = any(isinstance(v, torch.Tensor) and v.dim() > 0 for s in optimizer.state.values() for v in s.values())
            recreated.lost_state = state.num_steps == 1 and has_state

    def keep_used(self, optimizer: Any) -> None:
        """Notes the gradients that the step used, which the next one must not find."""
        state = self._training.state_of(optimizer)
        state.num_backwards = self._training.num_backwards
        held = [p for p in parameters_of(optimizer) if p.grad is not None]
        state.used = [(p, *identity(p.grad)) for p in held]
        state.kept, state.added = [], []
        state.sample = sample_of(held[0].grad) if held else None

    def check_orphans(self) -> None:
        """Parameters that get gradients, and that no optimizer has."""
        held = {id(p) for o in (*self._made, *self._training.optimizers) for p in parameters_of(o)}
        in_use = any(p.grad is not None for o in self._training.optimizers for p in parameters_of(o))
        known = {id(p) for _, module in self._training.modules for p in module._parameters.values() if p is not None}
        seen_before, self._orphans = self._orphans, {}
        if self._training.iteration < self._training.look_until:
            for parameter, _ in self._training.ran.values():
                if id(parameter) in held:
                    self._were_held.add(parameter)
        for root, _ in self._training.forwards.values():
            self._training.check("parameter_in_no_optimizer")
            named = [(p, module.training) for module in root.modules() for p in module._parameters.values() if p is not None]
            named += [(p, True) for p, grad in self._training.ran.values() if grad and id(p) not in known and p not in self._were_held]
            if in_use and not any(id(p) in held for p, _ in named):
                continue  # nothing of it is meant to learn
            for parameter, trains in named:
                if id(parameter) in held or not trains or not parameter.requires_grad or not parameter.is_leaf:
                    continue
                if parameter.grad is None or not is_nonzero(parameter.grad):
                    continue
                sample = sample_of(parameter)
                if sample is None or self._has_master_copy(parameter):
                    continue
                first, before, seen = seen_before.get(id(parameter), (0, None, None))
                if seen is None or seen() is not parameter:
                    first, before = self._training.iteration, None
                if before is not None and torch.equal(before, sample):
                    self._find_orphan(parameter, first)
                self._orphans[id(parameter)] = (first, sample, weakref.ref(parameter))

    def _has_master_copy(self, parameter: torch.Tensor) -> bool:
        """Whether an optimizer may hold a copy with more digits."""
        if parameter.dtype not in (torch.float16, torch.bfloat16):
            return False
        held = (p for o in self._training.optimizers for p in parameters_of(o))
        return any(p.dtype == torch.float32 and p.numel() == parameter.numel() for p in held)

    def _find_orphan(self, parameter: torch.Tensor, first: int) -> None:
        if not self._has_searched:
            self._has_searched = True  # it takes up to a second
            self._made.update(item for item in gc.get_objects() if issubclass(type(item), torch.optim.Optimizer))
        if any(p is parameter for o in self._made for p in parameters_of(o)):
            return
        models = {id(p) for _, module in self._training.modules for p in module._parameters.values()}
        seen = "gets gradients, is in no optimizer, and does not change"
        for optimizer in self._training.optimizers:
            for held in parameters_of(optimizer):
                if id(held) not in models and held.shape == parameter.shape and held.grad is None:
                    seen += f"; {type(optimizer).__name__} holds another tensor of its shape, which no model has any more"
                    break
        self._training.find("parameter_in_no_optimizer", [self._training.name_of(parameter)], seen, iteration=first)


def _is_equal(a: Optional[torch.Tensor], b: Optional[torch.Tensor]) -> bool:
    return a is not None and b is not None and torch.equal(a, b)


def _counts(optimizer: Any, parameters: List[torch.Tensor]) -> List[Tuple[torch.Tensor, float]]:
    """How often the optimizer stepped by its own count, of the first parameters; 0 where it has no state yet."""
    found = []
    for parameter in parameters[:_COUNTED]:
        count = optimizer.state[parameter].get("step") if parameter in optimizer.state else 0
        if isinstance(count, torch.Tensor):
            count = float(count) if count.device.type == "cpu" else None
        if count is not None:
            found.append((parameter, float(count)))
    return found
