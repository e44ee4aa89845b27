"""What ranks have in common, or each of its own: facts that are compared from disk."""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch import nn

from . import _hooks
from ._collectives import OWN_HOOK, group_ranks, ranks_along
from ._sound_record import RULES
from ._sound_reductions import Reductions
from ._sound_training import LOOKED_INTO_ITERATIONS, Training, hash_text, holds_numbers, is_rich, parameters_of, sample_digest, sums

_SHOWN_OPTIONS = 32
_SHARE_OF_VALUES = 0.01
_SECONDS_OF_VALUES = 0.0005  # which small models may take in each iteration
_FIRST_SHARDS = 4  # iterations in which parts of parameters are compared
_MAX_VALUES_EVERY = 1 << 12
_REPLICAS_UNKNOWN = (
    "it is not known which ranks are replicas, as the model is neither in DistributedDataParallel nor sharded over all ranks"
)


class Replicas:
    """Records facts of each iteration, by which ranks are compared, and looks for reductions."""

    def __init__(self, training: Training, reductions: Reductions):
        self._training = training
        self._reductions = reductions
        self._gradients: Dict[str, str] = {}
        self._rolling: Dict[str, Any] = {}
        # By group: its ranks, how many calls, and a digest of them.
        self._collective_calls: Dict[str, Tuple[List[int], int, Any]] = {}
        self._all_ranks: List[int] = []  # also once the process group is gone
        self._modes = ""
        self._num_backwards = 0  # as this iteration began
        self._has_samples = False  # whether this iteration's were noted
        self._options: Tuple[Dict[str, Any], str] = ({}, "")  # of optimizers, and what ranks compare of them
        self._reduced: Dict[str, str] = {}  # by group, what was reduced by hand in the iteration before
        self._stepped: List[Tuple[int, str, List[int], List[torch.Tensor]]] = []  # iteration, name, group, and what it has
        self._num_slow_looks = 0
        self._iteration_began = time.perf_counter()

    def install(self, patches: _hooks.Patches) -> None:
        patches.wrap(sys.modules["torch.nn.parallel"].DistributedDataParallel, "__init__", self._make_ddp)

    def _make_ddp(self, original: Any, ddp: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(ddp, *args, **kwargs)
        self._training.models.add_ddp(ddp)
        if isinstance(ddp.module, nn.ParameterList):
            self._training.collectives.attach(ddp)  # replicate() makes it in the first pass of a model, and never calls it
        return result

    def start(self, num_ranks: int) -> None:
        self._training.has_peers = num_ranks > 1
        self._all_ranks = list(range(num_ranks))

    def finish(self) -> None:
        training = self._training
        assert training.record is not None
        self._add_stepped()
        if training.group is None and training.has_peers:
            for rule in RULES:
                is_of_replicas = rule.endswith("_differ") and rule != "collectives_differ" or rule == "same_data_on_ranks"
                if is_of_replicas and not (rule == "replicas_differ" and self._reduced):
                    training.record.not_checked(rule, _REPLICAS_UNKNOWN)
        if training.values_every > 1:
            for rule in ("nonfinite_gradient", "gradients_differ", "replicas_differ"):
                training.record.not_checked(rule, f"values were looked at in one of {training.values_every} iterations at the end")

    def begin_forward(self, module: Any, root: nn.Module, samples: Sequence[torch.Tensor]) -> None:
        self._add_stepped()
        self._find_group(root, next(iter(self._training.models.ddps_of(module)), None))
        # As the pass begins that goes backward first: before it, one rank may evaluate.
        if self._training.has_peers and self._training.num_backwards == self._num_backwards:
            self._modes = self._describe_modes()
        if self._training.group is not None and samples and not self._has_samples:
            self._has_samples = True
            self._fact("same_data_on_ranks", "the batch", sample_digest(samples), "is_distinct")

    def _find_group(self, root: nn.Module, ddp: Any) -> None:
        if self._training.group is not None or not self._training.has_peers:
            return
        if ddp is not None:
            self._training.group, self._training.shares_parameters = group_ranks(ddp.process_group), True
        else:
            meshes = [p.device_mesh for p in root.parameters() if _hooks.is_sharded(p)]
            if meshes and all(mesh.ndim == 1 and mesh == meshes[0] for mesh in meshes) and all(
                any(type(placement).__name__ != "Replicate" for placement in p.placements)
                for p in root.parameters()
                if _hooks.is_sharded(p)
            ) and hasattr(root, "set_requires_gradient_sync"):
                self._training.group = [int(rank) for rank in meshes[0].mesh.flatten().tolist()]
        if self._training.group is not None and len(self._training.group) < 2:
            self._training.group = None

    def _describe_modes(self) -> str:
        """Of the models that ranks share."""
        ddps = [ddp.module for ddp in self._training.models.ddps()]
        held = [module for model in ddps for module in model.modules()] or [module for _, module in self._training.modules]
        modes = [module.training for module in held]
        wants = [p.requires_grad for module in held for p in module._parameters.values() if p is not None]
        return f"{sum(modes)} of {len(modes)} modules train, {sum(wants)} of {len(wants)} parameters #{hash_text(repr((modes, wants)))}"

    def begin_update(self, optimizer: Any) -> None:
        """Reads the gradients that replicas share, as the step uses them."""
        if not self._training.shares_parameters or not self._training.looks_at_values():
            return
        begin = time.perf_counter()
        ids = {id(p) for p in parameters_of(optimizer)}
        held = [p for p in self._replicated_parameters() if id(p) in ids and p.grad is not None]
        if held and all(holds_numbers(p.grad) for p in held):
            # Names differ if each rank has an optimizer of its own part; then nothing is compared.
            name = f"gradients of {len(held)} parameters from {self._training.name_of(held[0])} on"
            self._gradients[name] = hash_text(self._gradients.get(name, "") + sums([p.grad for p in held]))
        self._training.seconds_of_values += time.perf_counter() - begin

    def finish_iteration(self) -> None:
        self._add_facts()
        self._training.norms, self._modes, self._gradients = [], "", {}
        self._has_samples, self._num_backwards = False, self._training.num_backwards
        self._training.seconds_of_values = 0.0
        self._iteration_began = time.perf_counter()

    def _fact(self, rule: str, name: str, value: str, *kinds: str, group: Optional[List[int]] = None) -> None:
        group = self._training.group if group is None else group
        if group is not None:
            self._training.fact(rule, name, group, self._training.iteration, value, kinds)

    def _roll(self, name: str, text: str) -> str:
        """The text, and a digest of all of them so far, by which a difference stays where rows are left out."""
        rolling = self._rolling.setdefault(name, hashlib.blake2b(digest_size=8))
        rolling.update(text.encode())
        return f"{text.split('#')[0]}#{rolling.hexdigest()}"

    def _add_facts(self) -> None:
        begin = time.perf_counter()
        looks = self._training.looks_at_values()
        if self._training.group is not None:
            rates = ", ".join(f"{rate:.6g}" for rate in self._training.models.learning_rates()[:4])
            rates += f" after {self._training.num_schedule_steps} steps of schedules" if self._training.num_schedule_steps else ""
            self._fact("rates_differ", "learning rates", self._roll("rates", rates))
            options = self._training.models.options(only_stepped=True)
            numbers = {name: value.tolist() for name, value in options.items() if value.device.type == "cpu" and not name.endswith(".lr")}
            if numbers != self._options[0]:
                shown = list(numbers.items())[:_SHOWN_OPTIONS]
                text = ", ".join(f"{name} {str(value).replace(', ', ' ')}" for name, value in shown)
                self._options = numbers, f"{text}#{hash_text(repr(numbers))}"
            self._fact("rates_differ", "options of optimizers", self._roll("options", self._options[1]))
            if self._modes:
                self._fact("modes_differ", "modes", self._roll("modes", self._modes))
            counts = f"{self._training.num_steps - self._training.num_own_steps} steps, {self._training.collectives.num_reductions} reductions"
            self._fact("reductions_differ", "counts", self._roll("counts", counts))
            # Between two averages of local SGD, ranks differ on purpose.
            shares = self._training.shares_parameters and not self._reductions.was_local
            if self._training.norms and any(map(self._training.collectives.has_own_hook, self._training.models.ddps())):
                self._training.not_checked("clip_norms_differ", OWN_HOOK)
            elif self._training.norms and shares:
                self._fact("clip_norms_differ", "gradient norms", self._roll("norms", ", ".join(self._training.norms)))
            for name, value in self._gradients.items() if shares else ():
                self._fact("gradients_differ", name, value)
            if shares and looks:
                parameters = self._replicated_parameters()
                if parameters:
                    self._fact("replicas_differ", "parameters", sums(parameters))
                    self._fact("replicas_differ", "optimizer state", sums(self._state_of_parameters(parameters)))
        if looks and self._training.has_peers:
            self._add_replicated_shards()
        self._add_reduced(looks)
        for label, (ranks, count, digest) in self._collective_calls.items():
            self._fact("collectives_differ", f"collectives of ranks {label or 'all'}", f"{count} calls#{digest.hexdigest()}", group=ranks)
        for label, (ranks, given, got, error) in self._reductions.sums.items():
            calls = "-".join(map(str, self._reductions.num_calls[label]))
            value = f"{given:.17g} {got:.17g} {error:.3g} {calls}"
            self._fact("transfer_changed", f"sums of ranks {label or 'all'}", value, "is_sum", group=ranks or self._all_ranks)
        for label, (ranks, count, results) in self._reductions.transfers.items():
            self._fact("transfer_differs", f"results of ranks {label or 'all'}", f"{count} results#{results}", group=ranks)
        if looks and self._training.iteration >= LOOKED_INTO_ITERATIONS:
            spent = time.perf_counter() - begin + self._training.seconds_of_values
            self._thin_values(spent, time.perf_counter() - self._iteration_began)

    def _add_reduced(self, looks: bool) -> None:
        """Parameters whose gradients the program reduced by itself, in two iterations in a row: they are replicas."""
        reduced = {}
        for label, (ranks, parameters) in self._reductions.by_hand.items():
            name = f"{len(parameters)} parameters from {self._training.name_of(parameters[0])} on, whose gradients the program reduces"
            group = ranks or self._all_ranks
            if looks and self._reduced.get(label) == name and len(group) > 1 and not any(map(_hooks.is_sharded, parameters)):
                self._stepped.append((self._training.iteration, name, group, parameters))
            reduced[label] = name
        self._reduced = reduced

    def _add_stepped(self) -> None:
        """What became of them: before the next forward pass, as ranks may each step with a part and send it afterwards."""
        for iteration, name, group, parameters in self._stepped:
            self._training.fact("replicas_differ", name, group, iteration, sums(parameters))
        self._stepped = []

    def _thin_values(self, spent: float, whole: float) -> None:
        is_too_much = spent > max(_SHARE_OF_VALUES * self._training.values_every * whole, _SECONDS_OF_VALUES)
        self._num_slow_looks = self._num_slow_looks + 1 if is_too_much else 0
        if self._num_slow_looks == 3 and self._training.values_every < _MAX_VALUES_EVERY:
            self._num_slow_looks = 0
            self._training.values_every *= 2

    def _replicated_parameters(self) -> List[torch.Tensor]:
        """Those that a DistributedDataParallel keeps alike; not those that it was told to leave alone."""
        assert self._training.record is not None
        found = []
        for ddp in self._training.models.ddps():
            if group_ranks(ddp.process_group) != self._training.group:
                continue
            if self._training.collectives.has_own_hook(ddp):
                self._training.record.not_checked("replicas_differ", OWN_HOOK)
                continue
            found += _hooks.kept_alike(ddp)
        return found

    def _state_of_parameters(self, parameters: List[torch.Tensor]) -> List[torch.Tensor]:
        ids = {id(p) for p in parameters}
        known = [o for o, state in self._training.optimizers.items() if state.is_pytorch]
        held = [(o, p) for o in known for p in parameters_of(o) if id(p) in ids]
        return [v for o, p in held for v in o.state.get(p, {}).values() if isinstance(v, torch.Tensor)]

    def _add_replicated_shards(self) -> None:
        """Parameters that ranks along an axis of a mesh hold alike: norm weights under tensor parallelism."""
        found: Dict[Tuple[int, ...], List[torch.Tensor]] = {}
        read_ranks = functools.lru_cache(maxsize=None)(ranks_along)  # most parameters have one mesh, which is slow to read
        for parameter in self._training.models.parameters().values():
            if _hooks.is_sharded(parameter):
                for dimension, placement in enumerate(parameter.placements):
                    ranks = read_ranks(parameter.device_mesh, dimension)
                    if placement.is_replicate() and len(ranks) > 1:
                        found.setdefault(ranks, []).append(parameter)
                    elif placement.is_shard() and len(ranks) > 1 and self._training.iteration < _FIRST_SHARDS:
                        value = sums([_hooks.local(parameter)]) if is_rich(_hooks.local(parameter)) else ""
                        self._fact("shards_alike", self._training.name_of(parameter), value, "is_distinct", group=list(ranks))
        for ranks, parameters in found.items():
            self._fact("replicas_differ", "replicated parameters of a mesh", sums(map(_hooks.local, parameters)), group=list(ranks))

    def collective(self, name: str, label: str, ranks: List[int], args: Sequence[Any]) -> None:
        tensor = next(_hooks.tensors_in(list(args[:2])), None)
        text = name
        if tensor is not None and "object" not in name:
            text += f" {tensor.dtype}"
            if name in ("all_reduce", "broadcast", "reduce", "reduce_scatter_tensor", "all_gather_into_tensor"):
                text += f" {tensor.numel()}"
        _, count, digest = self._collective_calls.setdefault(label, (ranks, 0, hashlib.blake2b(digest_size=8)))
        digest.update(text.encode())
        self._collective_calls[label] = (ranks, count + 1, digest)
