"""Gradients from the backward pass to the step: zeroed once, there, and finite."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Sequence, Tuple

import torch
from torch import nn

from . import _hooks
from ._sound_training import OptimizerState, Training, guarded, has_norm, identity, is_nonzero, norms_of, parameters_of, sample_of


class Gradients:
    """Looks at gradients by identity and version, and at their norms."""

    def __init__(self, training: Training):
        self._training = training
        self._found_nonfinite = False
        # Losses of the backward passes since gradients were zeroed or used last.
        self._losses = _hooks.WeakIds()
        self._twice = 0  # iteration + 1 in which a loss went backward again
        # Optimizers that never stepped and zeroed new gradients: name, how often, since which iteration, a parameter and its first elements.
        self._thrown_away: Dict[int, Tuple[str, int, int, torch.Tensor, Any]] = {}

    def install(self, patches: _hooks.Patches) -> None:
        patches.wrap(torch.optim.Optimizer, "zero_grad", self._zero_optimizer)
        patches.wrap(nn.Module, "zero_grad", self._zero_module)

    def begin_backward(self, loss: Any, has_inputs: bool) -> None:
        """has_inputs: it is told which tensors get gradients."""
        training = self._training
        if loss is not None and loss.numel() == 1 and loss.device.type == "cpu":
            training.is_finite = training.is_finite and bool(torch.isfinite(loss.detach()).all())
        if loss is not None and loss.numel() == 1 and not has_inputs:
            training.check("backward_twice")
            if loss in self._losses and any(p.grad is not None for o in training.optimizers for p in parameters_of(o)):
                self._twice = training.iteration + 1
            self._losses.add(loss)
        for state in training.optimizers.values():
            if state.used:
                training.check("gradients_not_zeroed")
                self._keep(state)

    def _keep(self, state: OptimizerState) -> None:
        """Notes the gradients of the step before that are still there."""
        state.used = [used for used in state.used if used[0].grad is not None and identity(used[0].grad) == used[1:]]
        state.kept = []
        for parameter, _, _ in state.used:
            if len(state.kept) == 4:
                break
            if is_nonzero(parameter.grad):
                state.kept.append(self._training.name_of(parameter))
        if not state.kept:
            state.used = []

    def end_backward(self) -> None:
        for state in self._training.optimizers.values():
            # A gradient that was added to is still not cleared; one that was replaced is.
            state.used = [used for used in state.used if used[0].grad is not None and id(used[0].grad) == used[1]]
            state.added += [(p, key) for p, key, version in state.used if p.grad._version != version or _hooks.is_sharded(p)]
            state.used = [(p, key, p.grad._version) for p, key, _ in state.used]
        self.keep_fresh(self._training.optimizers)

    def keep_fresh(self, optimizers: Iterable[Any]) -> None:
        """Notes what the last backward pass, or clipping, made of a gradient of each optimizer."""
        for optimizer in optimizers:
            held = next((p for p in parameters_of(optimizer) if p.grad is not None), None)
            self._training.state_of(optimizer).fresh = (held, *identity(held.grad)) if held is not None else None

    def untouched(self) -> List[Any]:
        """Optimizers whose gradient is as it was noted."""
        held = [(o, state.fresh) for o, state in self._training.optimizers.items()]
        return [o for o, fresh in held if fresh is not None and identity(fresh[0].grad) == fresh[1:]]

    def _zero_optimizer(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        self._zeroes([optimizer])
        return original(optimizer, *args, **kwargs)

    def _zero_module(self, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if self._training.is_on:
            ids = {id(p) for p in module.parameters()}
            self._zeroes([o for o in list(self._training.optimizers) if any(id(p) in ids for p in parameters_of(o))])
        return original(module, *args, **kwargs)

    @guarded
    def _zeroes(self, optimizers: Sequence[Any]) -> None:
        self._losses, self._twice = _hooks.WeakIds(), 0
        for optimizer in optimizers:
            state = self._training.state_of(optimizer)
            is_fresh = self._training.num_backwards > state.num_backwards
            if not is_fresh:
                state.cleared = _hooks.place_of_caller()
            if is_fresh and any(p.grad is not None for p in parameters_of(optimizer)):
                if state.zeroed is None or state.zeroed[0] < self._training.num_backwards:
                    state.thrown.append(_hooks.place_of_caller())
                # What is not finite is zeroed so that the step leaves the batch out.
                if self._are_finite(optimizer):
                    state.zeroed = (self._training.num_backwards, _hooks.place_of_caller())
                held = next((p for p in parameters_of(optimizer) if p.grad is not None and is_nonzero(p.grad)), None)
                if state.num_steps + state.num_skipped == 0 and held is not None:
                    new = (state.name, 0, self._training.iteration, held, sample_of(held))
                    name, number, *known = self._thrown_away.get(id(optimizer), new)
                    self._thrown_away[id(optimizer)] = (name, number + 1, *known)

    @staticmethod
    def _are_finite(optimizer: Any) -> bool:
        held = [_hooks.local(p.grad) for p in parameters_of(optimizer) if p.grad is not None and has_norm(p.grad)]
        return not held or bool(torch.isfinite(norms_of(held)).all())

    def begin_update(self, optimizer: Any, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        training = self._training
        state = training.state_of(optimizer)
        if self._thrown_away:
            # Also where another optimizer with the same parameters steps for it.
            ids = {id(p) for p in parameters_of(optimizer)}
            self._thrown_away = {key: entry for key, entry in self._thrown_away.items() if id(entry[3]) not in ids}
        self._check_thrown(optimizer, state)
        training.check("gradients_zeroed_before_step")
        if state.zeroed is not None and state.zeroed[0] == training.num_backwards and not any(is_nonzero(g) for _, g in gradients):
            seen = "the step found no gradients, which were there before"
            names = [training.name_of(p) for p in list(parameters_of(optimizer))[:1]]
            training.find("gradients_zeroed_before_step", names, seen, state.zeroed[1])
        state.zeroed = None
        if self._twice:
            seen = "backward() was called twice for one loss, so its gradients count twice"
            training.find("backward_twice", [], seen, iteration=self._twice - 1)
        self._losses, self._twice = _hooks.WeakIds(), 0
        if state.kept and state.num_steps > 0:
            kept = list(dict.fromkeys(training.name_of(p) for p, key in state.added if id(p.grad) == key))
            if kept:
                training.find("gradients_not_zeroed", kept, "the gradient of the step before was still there, and was added to")
        state.kept, state.added = [], []
        if training.looks_at_values() or not training.is_finite:
            begin = time.perf_counter()
            self._check_finite(optimizer, gradients)
            training.seconds_of_values += time.perf_counter() - begin

    def _check_thrown(self, optimizer: Any, state: OptimizerState) -> None:
        """Looks for steps that use the last of several batches of a loader, as gradients were zeroed before each of them."""
        training = self._training
        num_backwards, num_batches = training.num_backwards - state.num_backwards, training.num_batches - state.num_batches
        is_alone = training.num_steps == state.num_steps_of_all
        thrown, state.thrown, state.num_batches, state.num_steps_of_all = state.thrown, [], training.num_batches, training.num_steps + 1
        if num_batches:
            training.check("gradients_thrown_away")
        # What measures gradients, or makes new ones of them, zeroes them elsewhere, has other batches, or writes the result;
        # what another optimizer steps by is none of this one's.
        iterators, training.iterators = training.iterators, set()
        is_alike = set(thrown) == {state.cleared} and len(iterators) == 1 and num_backwards == num_batches == len(thrown) + 1
        if not is_alone or not is_alike or optimizer not in self.untouched():
            state.wasteful = []
            return
        state.wasteful.append(training.iteration)
        if len(state.wasteful) == 3:
            seen = f"gradients of {len(thrown)} of {num_batches} batches were zeroed before each step, which uses those of the last one"
            training.find("gradients_thrown_away", [state.name], seen, thrown[0], state.wasteful[0])

    def finish(self) -> None:
        """Tells of optimizers that never stepped: only the end tells that."""
        self._training.check("optimizer_never_steps")
        for name, number, first, parameter, before in self._thrown_away.values():
            # What changes is stepped by something that is not seen, as within torch.compile().
            if number >= 3 and before is not None and torch.equal(before, sample_of(parameter)):
                seen = f"zeroed new gradients {number} times, and step() was never called"
                self._training.find("optimizer_never_steps", [name], seen, iteration=first)

    def _check_finite(self, optimizer: Any, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        if getattr(optimizer, "found_inf", None) is not None:
            assert self._training.record is not None
            self._training.record.not_checked("nonfinite_gradient", "a fused optimizer leaves steps out by itself")
            return
        named = [(p, _hooks.local(g)) for p, g in gradients if has_norm(g)]
        if not named:
            return
        self._training.check("nonfinite_gradient")
        norms = norms_of([g for _, g in named])
        if bool(torch.isfinite(norms).all()):
            return
        bad = [(p, g) for (p, g), norm in zip(named, norms.tolist()) if norm - norm != 0 and not bool(torch.isfinite(g).all())]
        if bad and not self._found_nonfinite:
            self._found_nonfinite = True  # what follows from it is none
            count = int((~torch.isfinite(bad[0][1])).sum())
            seen = f"{count} of {bad[0][1].numel()} elements are not finite"
            self._training.find("nonfinite_gradient", [self._training.name_of(p) for p, _ in bad], seen)
