"""What ranks must have in common though nothing says that they are replicas: the same results of the same."""

from __future__ import annotations

from typing import Any, Dict, List, Set, Tuple

import torch

from . import _hooks
from ._collectives import all_ranks
from ._sound_training import Training, hash_text, holds_numbers, is_rich, sums

_MAX_PARAMETERS = 64
_MAX_ELEMENTS = 1 << 16


class Witnesses:
    """Looks at models whose passes call collectives, as tensor parallelism by hand does, outside of DistributedDataParallel and FSDP.

    Ranks that hold the same value of a parameter, with the same gradient as backward passes made it and the same rates, hold the same
    after the step; and what they hold alike, they drop alike. Ranks that train by themselves call no collective in their passes.
    """

    def __init__(self, training: Training):
        self._training = training
        self.is_in_pass = False
        self._groups: Set[Tuple[int, ...]] = set()
        # By parameter: its name and what its step begins with.
        self._given: Dict[str, Tuple[torch.Tensor, str]] = {}
        self._before_step: Tuple[int, Set[Tuple[int, ...]], Dict[str, Tuple[torch.Tensor, str]]] = (0, set(), {})
        self._dropouts: List[Tuple[str, str]] = []

    def begin_forward(self) -> None:
        self.is_in_pass = True
        self._add_results()

    def collective(self, name: str, ranks: List[int]) -> None:
        if self.is_in_pass and "object" not in name and name != "barrier":
            self._groups.add(tuple(ranks or all_ranks()))

    def end_backward(self) -> None:
        """Reads parameters and the gradients that backward passes made of them, before anything is clipped."""
        self.is_in_pass = False
        if not self._groups or self._training.group is not None or not self._training.looks_at_values():
            return
        options = {name: value.tolist() for name, value in self._training.models.options().items() if value.device.type == "cpu"}
        rates = hash_text(repr(options))
        for name, parameter in self._training.models.parameters().items():
            gradient = parameter.grad
            if gradient is None or _hooks.is_sharded(parameter) or parameter.numel() > _MAX_ELEMENTS or not holds_numbers(gradient):
                continue
            if len(self._given) < _MAX_PARAMETERS or name in self._given:
                given = hash_text(sums([parameter, gradient]) + rates) if is_rich(gradient) else ""
                self._given[name] = (parameter, given)

    def finish_iteration(self) -> None:
        groups = set() if self._training.group is not None else self._groups
        for name, value in self._dropouts:
            self._add(groups, "dropout_differs", name, self._training.iteration, value)
        self._before_step = (self._training.iteration, groups, self._given)
        self._groups, self._given, self._dropouts = set(), {}, []

    def finish(self) -> None:
        self._add_results()

    def _add_results(self) -> None:
        """What became of parameters: before the next forward pass, as some programs send them after the step."""
        iteration, groups, given = self._before_step
        self._before_step = (0, set(), {})
        for name, (parameter, before) in given.items():
            self._add(groups, "replicas_differ", name, iteration, f"{before} {sums([parameter])}" if before else "")

    def saw_dropout(self, module: Any, args: Any, output: Any) -> None:
        if self._training.group is not None or not module.training or module.inplace or module.p == 0:
            return
        given = next(_hooks.tensors_in(args), None)
        if given is None or not isinstance(output, torch.Tensor) or given.device.type != "cpu" or not self._training.has_peers:
            return
        if _hooks.is_sharded(given) or _hooks.is_sharded(output) or not is_rich(given):
            return
        name = self._training.module_name(module)
        # A module that is called twice has two results.
        number = sum(known.split(" call ")[0] == name for known, _ in self._dropouts)
        self._dropouts.append((f"{name} call {number}" if number else name, f"{sums([given])} {sums([output])}"))

    def _add(self, groups: Set[Tuple[int, ...]], rule: str, name: str, iteration: int, value: str) -> None:
        for group in groups:
            if len(group) > 1:
                self._training.fact(rule, name, group, iteration, value, ["is_result"])
