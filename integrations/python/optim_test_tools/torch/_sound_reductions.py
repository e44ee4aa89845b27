"""Reductions of gradients over ranks: that there is one, not two, and what programs do instead."""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import nn

from . import _hooks
from ._sound_training import OptimizerState, Training, has_norm, hash_text, holds_numbers, parameters_of, sample_digest, sample_of

# Steps without a reduction and without an average of parameters, after which none is waited for.
_MAX_LOCAL_STEPS = 1000
# A share of a model's elements: reductions of fewer are none of its gradients.
_SHARE_OF_LOGS = 0.001
_MAX_TRANSFERS = 16  # of a group in an iteration


class Reductions:
    """Looks at what DistributedDataParallel reduces, and at collectives of the program's own."""

    def __init__(self, training: Training):
        self._training = training
        self._ddp_forwards = _hooks.WeakIds()
        self._reductions_before = 0
        # Elements of the program's own collectives: since the last step, or since the forward pass after it.
        self._num_elements = 0
        self._has_forward = False
        # Models whose steps had no reduction: since which iteration, what was seen, how many steps.
        self._local: Dict[str, Tuple[int, str, int]] = {}
        self._largest = 0  # of their numbers of parameters
        # A gradient that is reduced once more: the parameter, and its gradient before.
        self._again: Optional[Tuple[torch.Tensor, torch.Tensor]] = None
        self.was_local = False  # whether a step of this iteration had no reduction
        # By group: its ranks, how many results were read, and their digest.
        self.transfers: Dict[str, Tuple[List[int], int, str]] = {}
        self._num_transfers: Dict[str, int] = {}
        # Sums of this iteration, by group: its ranks, given, got, error; and how many calls there were before and are now.
        self.sums: Dict[str, Tuple[List[int], float, float, float]] = {}
        self.num_calls: Dict[str, List[int]] = {}
        self._given: Optional[Tuple[float, float]] = None
        # By group: its ranks, and the parameters whose gradients the program itself reduced in this iteration.
        self.by_hand: Dict[str, Tuple[List[int], List[torch.Tensor]]] = {}
        self._gradients: Dict[int, torch.Tensor] = {}  # by identity of the gradient, after the backward pass of this number
        self._gradients_of = -1

    def begin_forward(self, module: Any) -> None:
        for ddp in self._training.models.ddps_of(module):
            self._ddp_forwards.add(ddp)
        if not self._has_forward:
            self._look_for_average()
            self._has_forward, self._num_elements = True, 0

    def _look_for_average(self) -> None:
        """Forgets steps without a reduction if parameters were averaged after them, as local SGD does."""
        if self._local and 2 * self._num_elements >= self._largest:
            self._local = {}
            self._not_checked("the program averages parameters by itself, after steps without a reduction")

    def _not_checked(self, reason: str) -> None:
        assert self._training.record is not None
        self._training.record.not_checked("gradients_not_reduced", reason)

    def collective(self, name: str, label: str, ranks: List[int], args: Sequence[Any], kwargs: Dict[str, Any]) -> None:
        """Called before the collective."""
        self._given = _given(name, args, kwargs)
        if "object" in name or name in ("barrier", "monitored_barrier", "broadcast_coalesced"):
            return
        tensors = list(_hooks.tensors_in(list(args[:1])))
        self._num_elements += sum(tensor.numel() for tensor in tensors)
        if name == "all_reduce" and len(tensors) == 1 and self._training.group is None:
            self._note_gradient(label, ranks, tensors[0])
        is_reduced = self._training.collectives.num_reductions > self._reductions_before
        if name != "all_reduce" or not is_reduced or self._again is not None or not tensors:
            return
        for ddp in self._training.models.ddps():
            if ranks and ranks != self._training.group:
                continue
            for parameter in ddp.module.parameters():
                if parameter.grad is tensors[0]:
                    sample = sample_of(parameter.grad)
                    self._again = (parameter, sample) if sample is not None else None

    def _note_gradient(self, label: str, ranks: List[int], tensor: torch.Tensor) -> None:
        """Notes the parameter, if it is a gradient of an optimizer's."""
        training = self._training
        if self._gradients_of != training.num_backwards:
            self._gradients_of = training.num_backwards
            self._gradients = {id(p.grad): p for o in training.optimizers for p in parameters_of(o) if p.grad is not None}
        parameter = self._gradients.get(id(tensor))
        if parameter is not None and parameter.grad is tensor:
            self.by_hand.setdefault(label, (ranks, []))[1].append(parameter)

    def transferred(self, label: str, ranks: List[int], args: Sequence[Any]) -> None:
        """Called after a collective whose result all ranks of the group have."""
        number = self._num_transfers.get(label, 0)
        tensors = list(_hooks.tensors_in(list(args[:1])))
        if number >= _MAX_TRANSFERS or any(t.device.type != "cpu" or not holds_numbers(t) for t in tensors):
            return
        self._num_transfers[label] = number + 1
        self._add_sum(label, ranks, tensors, 1 + number / _MAX_TRANSFERS)
        _, count, before = self.transfers.get(label, (ranks, 0, ""))
        self.transfers[label] = (ranks, count + 1, hash_text(before + sample_digest(tensors)))

    def _add_sum(self, label: str, ranks: List[int], results: List[torch.Tensor], factor: float) -> None:
        """Adds a weighted sum of some elements, which a sum over ranks and a gathering leave as it is."""
        given, self._given = self._given, None
        if given is None:
            return
        size = len(ranks) or sys.modules["torch.distributed"].get_world_size()
        parts = [part for tensor in results for part in (tensor.reshape(size, -1) if len(results) == 1 and given[1] < 0 else [tensor])]
        got = sum(_weighted_sum(part)[0] for part in parts)
        _, before, got_before, error = self.sums.get(label, (ranks, 0.0, 0.0, 0.0))
        error += factor * 4 * size * abs(given[1])
        self.sums[label] = (ranks, before + factor * given[0], got_before + factor * got, error)
        self.num_calls.setdefault(label, [0, 0])[1] += 1

    def begin_update(self) -> None:
        """Looks whether a gradient that was averaged was added up over the ranks once more."""
        again, self._again = self._again, None
        if self._training.group is None or self._training.collectives.num_reductions == self._reductions_before:
            return
        self._training.check("gradients_reduced_twice")
        if again is None or again[0].grad is None:
            return
        parameter, before = again
        now, size = sample_of(parameter.grad), len(self._training.group)
        if now is not None and bool(before.any()) and torch.allclose(now, before * size, rtol=1e-5, atol=0.0):
            seen = f"DistributedDataParallel averaged it, and an all_reduce made it {size} times as large"
            self._training.find("gradients_reduced_twice", [self._training.name_of(parameter)], seen)

    def end_step(self, optimizer: Any, state: OptimizerState) -> None:
        if self._training.num_backwards == state.num_backwards:
            return
        ddps = self._training.models.ddps()
        ids = {id(p) for p in parameters_of(optimizer)} if ddps else set()
        for ddp in ddps:
            if ddp.process_group.size() < 2 or not any(id(p) in ids for p in ddp.parameters()):
                continue
            if ddp in self._ddp_forwards and not self._training.collectives.sees_reductions_of(ddp):
                self._not_checked("the reductions of this DistributedDataParallel are not observed")
                continue
            self._training.check("gradients_not_reduced")
            if self._training.collectives.num_reductions == self._reductions_before:
                self._look_for_own_reduction(ddp)

    def _look_for_own_reduction(self, ddp: Any) -> None:
        size = sum(p.numel() for p in ddp.parameters() if p.requires_grad)
        if 2 * self._num_elements >= size:
            return  # the gradients, by the program itself
        self.was_local = True
        if self._num_elements > _SHARE_OF_LOGS * size:
            self._not_checked("collectives of the program's own may be what reduces gradients")
            return
        name = type(_hooks.unwrap(ddp)).__name__
        self._largest = max(self._largest, size)
        first, seen, number = self._local.get(name, (self._training.iteration, self._describe(ddp), 0))
        self._local[name] = (first, seen, number + 1)
        if number + 1 == _MAX_LOCAL_STEPS:
            self._find_local()

    def _describe(self, ddp: nn.Module) -> str:
        if ddp not in self._ddp_forwards:
            return "the module inside of DistributedDataParallel was called, and not DistributedDataParallel"
        if not ddp.require_backward_grad_sync:
            return "all backward passes were within no_sync()"
        return "no bucket of gradients was reduced in the backward pass"

    def _find_local(self) -> None:
        for name, (first, seen, number) in self._local.items():
            what = f"{seen}, and no parameters were averaged in {number} {'step' if number == 1 else 'steps'}"
            self._training.find("gradients_not_reduced", [name], what, iteration=first)

    def finish_iteration(self) -> None:
        self._ddp_forwards = _hooks.WeakIds()
        self._reductions_before = self._training.collectives.num_reductions
        self._num_elements, self._has_forward = 0, False
        self._again, self.was_local = None, False
        self._num_transfers, self.sums, self.by_hand = {}, {}, {}
        for calls in self.num_calls.values():
            calls[0] = calls[1]

    def finish(self) -> None:
        self._look_for_average()
        self._find_local()


def _given(name: str, args: Sequence[Any], kwargs: Dict[str, Any]) -> Optional[Tuple[float, float]]:
    """What a rank gives to a collective that leaves sums as they are, and the error; the error is negative where results lie in one tensor."""
    number = 1 if name.startswith("all_gather") else 0
    if name not in ("all_reduce", "all_gather", "all_gather_into_tensor") or len(args) <= number or not isinstance(args[number], torch.Tensor):
        return None
    total = sys.modules["torch.distributed"].ReduceOp.SUM
    is_other = name == "all_reduce" and kwargs.get("op", args[1] if len(args) > 1 else total) != total
    tensor = args[number]
    if is_other or tensor.device.type != "cpu" or not has_norm(tensor) or _hooks.is_sharded(tensor):
        return None
    given, error = _weighted_sum(tensor)
    return given, -error if name == "all_gather_into_tensor" else error


def _weighted_sum(tensor: torch.Tensor) -> Tuple[float, float]:
    """Of some elements, and what rounding may make of it."""
    flat = tensor.detach().reshape(-1)
    flat = flat[:: max(flat.numel() // 256, 1)].double()
    weighted = flat * torch.arange(1, flat.numel() + 1, dtype=torch.float64).sin()
    error = torch.finfo(tensor.dtype).eps * float(weighted.abs().sum()) + torch.finfo(tensor.dtype).tiny
    total = float(weighted.sum())
    return (total, error) if math.isfinite(total) else (0.0, math.inf)
