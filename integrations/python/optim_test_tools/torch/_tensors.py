"""The tensors of an iteration that are checked and dumped, by name, where the configuration selects the iteration."""

from __future__ import annotations

import collections
import fnmatch
import hashlib
from typing import Any, Dict, List, Optional, Set, Tuple

import torch

from .. import _ott
from .._dumper import TensorDumper
from . import _hooks
from ._operations import Operations
from ._state import Models, RandomGenerators, digest, parts_of


class Tensors:
    """Gives tensors to the dumper as they come to be.

    Methods but finish_iteration() and clip() do nothing useful unless `active`, which callers ask first.
    """

    def __init__(self, models: Models, operations: Operations, activations: Optional[str]):
        self._models = models
        self._operations = operations
        self._activations = activations
        self._dumper = TensorDumper()
        self._generators = RandomGenerators()
        self._norms: List[Tuple[str, torch.Tensor]] = []
        self._num_activations: Dict[str, int] = collections.defaultdict(int)
        # So often this iteration had a forward pass of a micro step, or a step of an optimizer.
        self._num_passes: Dict[int, int] = collections.defaultdict(int)
        self._num_steps: Dict[int, int] = collections.defaultdict(int)
        self._has_flags = False  # whether this iteration's were added
        # Whether parameters are compared as the program said nothing of them, and whether they are left out since it did.
        self.are_replicas_by_default = False
        self.leaves_parameters_out = False
        self._batches: Set[int] = set()  # micro steps whose batch was added
        # Those of all iterations, as those that are checked may happen to have the same.
        self._learning_rates = hashlib.blake2b(digest_size=16)

    @property
    def active(self) -> bool:
        """Returns True if this iteration's tensors are wanted."""
        return self._dumper.active

    @property
    def takes_activations(self) -> bool:
        return self._activations is not None and self._dumper.active

    def add_batch(self, micro_step: int, inputs: List[torch.Tensor], has_samples: bool) -> None:
        """Adds what the model is given, and the state in which it begins.

        has_samples: whether these may be samples of the rank's own.
        """
        passes = self._num_passes[micro_step]
        self._num_passes[micro_step] += 1
        with self._operations.paused():
            if inputs:
                # The first such pass of a micro step gets what was loaded. Others get what the program makes, such as noise.
                is_batch = has_samples and micro_step not in self._batches
                self._batches.update([micro_step] if is_batch else [])
                self._add(f"data.batch.{micro_step}" if is_batch else f"inputs.{micro_step}.{passes}", digest(*inputs))
            if micro_step == 0 and passes == 0:
                self._add("rng", self._generators.digests())

    def _add_flags(self) -> None:
        """Once in an iteration, as the first backward pass begins: before it, one rank may evaluate."""
        if not self._has_flags:
            self._has_flags = True
            training, requires_grad = self._models.flags()
            self._add("state.training", training)
            self._add("state.requires_grad", requires_grad)

    def add_activation(self, name: str, output: Any) -> None:
        if fnmatch.fnmatchcase(name, self._activations or ""):
            count = self._num_activations[name]
            self._num_activations[name] += 1
            tensors = list(_hooks.tensors_in(output))
            self._add(f"activations.{name}.{count}", tensors[0] if len(tensors) == 1 else dict(enumerate(tensors)))

    def add_loss(self, micro_step: int, data: Any) -> None:
        self._add_flags()
        losses = list(_hooks.tensors_in(data))
        if len(losses) == 1:
            self._add(f"loss.{micro_step}", losses[0])

    def add_local_gradients(self, parameters: Any, gradients: Any) -> None:
        """Adds gradients as this rank has computed them, before they are reduced."""
        self._add("local_grads", {self._models.name_of(p): g for p, g in zip(parameters, gradients)})

    def add_gradients(self, optimizer: Any) -> None:
        self._add_flags()
        steps = self._num_steps[id(optimizer)]
        self._num_steps[id(optimizer)] += 1
        self._add(f"grads.step_{steps}" if steps else "grads", self._models.gradients(optimizer))

    def add_norm(self, norm: torch.Tensor, parameters: Any) -> None:
        """parameters: whose gradients were clipped."""
        # A sharded one is added up only by a collective, which is not for an observer to begin.
        if not _hooks.is_sharded(norm):
            kind = "state." if self._models.are_of_replicas(parameters) else ""
            with self._operations.paused():
                self._norms.append((f"{kind}gradient_norm_at_clipping.{len(self._norms)}", norm.detach().clone()))

    def finish_iteration(self, counts: Dict[str, int]) -> None:
        """The state that the iteration ends with."""
        self._learning_rates.update(repr(self._models.learning_rates()).encode())
        if self.active:
            self._models.collect()
            # First what may be the cause of the rest: of what differs, a verdict names the first.
            self._add("state.counts", {name: torch.tensor(count) for name, count in counts.items()})
            self._add("state.options", self._models.options())
            self._add("state.scaler", self._models.scalers())
            rates = torch.tensor(list(self._learning_rates.digest()), dtype=torch.uint8)
            self._add("state.learning_rates_so_far", rates)
            if not self.leaves_parameters_out:
                for path, norm in self._norms:
                    self._add(path, norm)
                self._add("parameters", self._models.parameters())
            self._add("buffers", self._models.buffers())
            self._add("optimizer", self._models.optimizer_state())
        self._norms, self._has_flags = [], False
        self._batches.clear()
        for counts_of_iteration in (self._num_activations, self._num_passes, self._num_steps):
            counts_of_iteration.clear()

    def offer_parameters(self) -> None:
        """To be moved by rounding where the configuration says so."""
        for name, parameter in self._models.parameters().items():
            held = _hooks.local(parameter).detach()
            if held.is_contiguous() and held.device.type == "cpu":
                _ott.offer(f"parameters.{name}", held)

    def _add(self, path: str, data: Any) -> None:
        with self._operations.paused():
            data = _plain(data)
            if not isinstance(data, dict) or data:
                self._dumper.add(path, data, "binary")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if not isinstance(value, torch.Tensor):
        return value
    parts = parts_of(value)
    return parts.get("", parts)
