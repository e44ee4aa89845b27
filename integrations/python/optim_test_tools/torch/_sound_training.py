"""What the rules of a sound step share: what is known of the training, and where findings go."""

from __future__ import annotations

import functools
import hashlib
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn

from . import _hooks
from ._collectives import JOINS
from ._sound_record import Record
from ._state import parts_of

LOOKED_INTO_ITERATIONS = 2
_SAMPLE = 64


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """An error ends the checks, and neither the observation nor the training; what is computed is in no log of operations. For methods
    of classes that have a _training."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        training: Training = self._training
        if _hooks.is_compiling() or not training.is_on:  # the first ends what is traced
            return None
        begin = time.perf_counter()
        try:
            with training.paused():
                return method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  whatever it is
            training.end_by(error)
            return None
        finally:
            training.seconds += time.perf_counter() - begin

    return run


class OptimizerState:
    """What is known of an optimizer."""

    def __init__(self, optimizer: Any):
        self.name = type(optimizer).__name__
        self.groups = optimizer.param_groups  # as of its last step; also once the optimizer is gone
        # Others may leave a step out, or write through .data.
        self.is_pytorch = type(optimizer).__module__.startswith("torch.optim.")
        self.num_steps = 0
        self.num_skipped = 0
        self.num_backwards = 0  # of the process, as it stepped last
        # Gradients that a step used and that were not cleared since: (parameter, identity, version).
        self.used: List[Tuple[torch.Tensor, int, int]] = []
        self.kept: List[str] = []
        # Those of them that a backward pass added to: (parameter, identity).
        self.added: List[Tuple[torch.Tensor, int]] = []
        self.sample: Optional[torch.Tensor] = None
        self.written: List[Tuple[torch.Tensor, int]] = []
        # Parameters, and how often the optimizer stepped by its own count.
        self.counted: List[Tuple[torch.Tensor, float]] = []
        # Steps after a backward pass that found no gradients at all.
        self.num_idle_steps = 0
        # Parameters with few digits as they were in the second step, and when that was.
        self.first_values: List[Tuple[torch.Tensor, torch.Tensor, int]] = []
        self.zeroed: Optional[Tuple[int, str]] = None
        # Where gradients of the last step were zeroed, and since then those of passes that no step used.
        self.cleared = ""
        self.thrown: List[str] = []
        self.num_batches = 0  # of loaders, as it stepped last
        self.num_steps_of_all = 0  # of all optimizers, as it stepped last
        # A gradient as the last backward pass, or clipping it, left it: parameter, identity, version.
        self.fresh: Optional[Tuple[torch.Tensor, int, int]] = None
        self.wasteful: List[int] = []  # iterations in a row in which that was done with each batch but the last one
        self.trainable: Set[int] = set()
        # Parameters that were trainable, with a gradient, and their values before the step.
        self.frozen: List[Tuple[torch.Tensor, Optional[torch.Tensor]]] = []


class Training:
    """The training that is looked at, as far as more than one kind of rule asks for it."""

    def __init__(self, models: Any, collectives: Any, paused: Callable[[], Any]):
        # Before the run starts, too: loaders begin and checkpoints are read before the first forward pass.
        self.is_on = True
        self.seconds = 0.0  # that the checks took
        self.models = models
        self.collectives = collectives
        self.paused = paused
        self.record: Optional[Record] = None
        self.say: Callable[[str], None] = lambda text: None
        self.on_error: Callable[[], None] = lambda: None
        self.silenced: Set[str] = set()
        self._early: List[Tuple[str, Sequence[str], str]] = []  # findings before the run starts
        self.iteration = 0
        self.optimizers: "weakref.WeakKeyDictionary[Any, OptimizerState]" = weakref.WeakKeyDictionary()
        self.on_gone: Callable[[OptimizerState], None] = lambda state: None
        self.num_backwards = 0
        self.num_steps = 0
        self.num_own_steps = 0  # of optimizers that may be of one rank
        self.num_schedule_steps = 0
        self.num_batches = 0  # of loaders
        self.iterators: Set[int] = set()  # of loaders, that gave batches since the last step
        self.stepped: Optional["weakref.ref[Any]"] = None  # the optimizer that stepped last
        self.compiles = False
        # Modules, and what they are made of.
        self.modules: List[Tuple[str, nn.Module]] = []
        self._structure: Tuple[int, ...] = ()
        self.names: Dict[int, str] = {}
        self._by_name: Dict[str, int] = {}
        self.ties: List[Tuple[str, ...]] = []
        self.look_until = LOOKED_INTO_ITERATIONS
        # Parameters whose module ran, and whether it did with gradients.
        self.ran: Dict[int, Tuple[Any, bool]] = {}
        # Outermost modules of this iteration, and their modes in its forward passes.
        self.forwards: Dict[int, Tuple[nn.Module, List[bool]]] = {}
        # The ranks that are replicas; None: not known.
        self.group: Optional[List[int]] = None
        self.shares_parameters = False
        self.has_peers = False
        self.norms: List[str] = []
        # True if losses and norms of this iteration are finite.
        self.is_finite = True
        self.values_every = 1
        self.seconds_of_values = 0.0  # that reading them took in this iteration

    def end_by(self, error: Exception) -> None:
        self.is_on = False
        self.on_error()
        if self.record is not None:
            self.record.end_all(f"the checks ended in iteration {self.iteration}: {type(error).__name__}: {error}")
            try:
                self.record.write()
            except OSError:
                pass
        self.say(f"steps are no longer checked: {type(error).__name__}: {error}")

    def find(self, rule: str, names: Sequence[str], seen: str, place: str = "", iteration: Optional[int] = None) -> None:
        if self.record is None:
            self._early.append((rule, names, seen))
            return
        iteration = self.iteration if iteration is None else iteration
        if self.record.find(rule, iteration, names, seen, place) and rule not in self.silenced:
            what = ", ".join([*names[:4], *([place] if place else [])])
            self.say(f"iteration {iteration}, {rule}: {what + ': ' if what else ''}{seen}")

    def start(self, record: Record) -> None:
        self.record = record
        for rule, names, seen in self._early:
            self.check(rule)
            self.find(rule, names, seen)

    def not_checked(self, rule: str, reason: str) -> None:
        if self.record is not None:
            self.record.not_checked(rule, reason)

    def fact(self, rule: str, name: str, group: Sequence[int], iteration: int, value: str, kinds: Sequence[str] = ()) -> None:
        """As that of Record, while all ranks have the same iterations."""
        assert self.record is not None
        if self.collectives.joins:
            self.record.not_checked(rule, JOINS)
        else:
            self.record.fact(rule, name, group, iteration, value, kinds)

    def check(self, rule: str) -> None:
        if self.record is not None:
            self.record.check(rule)

    def name_of(self, parameter: torch.Tensor) -> str:
        return self.names.get(id(parameter)) or self.models.name_of(parameter)

    def module_name(self, module: Any) -> str:
        return next((name for name, known in self.modules if known is module and name), type(module).__name__)

    def state_of(self, optimizer: Any) -> OptimizerState:
        state = self.optimizers.get(optimizer)
        if state is None:
            state = self.optimizers[optimizer] = OptimizerState(optimizer)
            # A program's main() may return before the observation ends.
            weakref.finalize(optimizer, self.on_gone, state).atexit = False
        return state

    def looks_at_values(self) -> bool:
        return self.iteration < LOOKED_INTO_ITERATIONS or self.iteration % self.values_every == 0

    def read_structure(self) -> None:
        self.modules = []  # so that models may go that the program has no more
        self.modules = list(self.models.modules())
        self._structure = self._read_identities()
        names: Dict[int, List[str]] = {}
        for prefix, module in self.modules:
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    names.setdefault(id(parameter), []).append(f"{prefix}.{name}".lstrip("."))
        self.names = {key: found[0] for key, found in names.items()}
        self.ties = [tuple(dict.fromkeys(found)) for found in names.values() if len(set(found)) > 1]
        self._by_name = {name: key for key, found in names.items() for name in found}

    def _read_identities(self) -> Tuple[int, ...]:
        found = []
        for _, module in self.modules:
            found += map(id, module._modules.values())
            found += map(id, module._parameters.values())
        return tuple(found)

    def check_structure(self) -> bool:
        """Returns whether modules or parameters were replaced since the last call."""
        if self.ties:
            self.check("tied_weights_broken")
        if self._read_identities() == self._structure and len(self.modules) > 0:
            return False
        ties = self.ties
        self.read_structure()
        self.look_until = self.iteration + 1 + LOOKED_INTO_ITERATIONS
        self.ran = {}
        for names in ties:
            if all(name in self._by_name for name in names) and len({self._by_name[name] for name in names}) > 1:
                self.find("tied_weights_broken", names, "were one parameter before")
        return True


def parameters_of(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def identity(gradient: Optional[torch.Tensor]) -> Tuple[int, int]:
    return (id(gradient), gradient._version) if gradient is not None else (0, -1)


def holds_numbers(held: torch.Tensor) -> bool:
    """Whether its elements lie in memory, as numbers that PyTorch computes with."""
    return held.layout == torch.strided and not (held.is_nested or held.is_quantized or held.is_meta)


def is_nonzero(gradient: torch.Tensor) -> bool:
    held = _hooks.local(gradient)
    if not holds_numbers(held):
        return held._nnz() > 0 if held.is_sparse else True
    return bool(held.any())


def has_norm(gradient: torch.Tensor) -> bool:
    """Whether norms_of() can read what this rank holds of it."""
    held = _hooks.local(gradient)
    # PyTorch computes no norm of numbers of 8 bits.
    return holds_numbers(held) and held.is_floating_point() and held.element_size() > 1 and held.numel() > 0


def norms_of(gradients: List[torch.Tensor]) -> torch.Tensor:
    """The norm of each, on the host, in float32."""
    held = [gradient.detach() for gradient in gradients]
    if hasattr(torch, "_foreach_norm") and len({g.device for g in held}) == 1:
        return torch.stack([norm.float().cpu() for norm in torch._foreach_norm(held)])
    return torch.stack([g.float().norm().cpu() for g in held])


def sample_of(tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """Its first elements; None: not known."""
    if tensor is None:
        return None
    held = _hooks.local(tensor).detach()
    if not holds_numbers(held) or held.numel() == 0:
        return None
    if hasattr(held, "untyped_storage") and held.untyped_storage().nbytes() == 0:
        return None  # FSDP2 takes the memory of whole parameters back after a pass
    return held.reshape(-1)[:_SAMPLE].clone()


def hash_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def sample_digest(tensors: Sequence[torch.Tensor]) -> str:
    """Of some elements, spread over each tensor; empty where there are none."""
    found = hashlib.blake2b(digest_size=8)
    if not tensors:
        return ""
    for tensor in tensors:
        held = _hooks.local(tensor).detach()
        is_coo = held.layout == torch.sparse_coo  # whose parts would be sorted for each batch
        for part in (held._indices(), held._values()) if is_coo else parts_of(held).values():
            flat = part.reshape(-1)
            found.update(repr(flat[:: max(flat.numel() // 256, 1)].tolist()).encode())
        if not held.is_nested:
            found.update(repr(tuple(held.shape)).encode())
    return found.hexdigest()


def sums(tensors: Any) -> str:
    """A digest by sums of 64-bit words, which any order of addition gives."""
    found = []
    for tensor in tensors:
        flat = tensor.detach().reshape(-1)
        if flat.numel() * flat.element_size() % 8 == 0 and flat.storage_offset() * flat.element_size() % 8 == 0 and flat.numel():
            found.append(flat.view(torch.int64).sum())
        elif flat.numel():
            found.append(flat.view(torch.uint8).sum())
    return hash_text(repr([int(value) for value in found]))


def is_rich(tensor: torch.Tensor) -> bool:
    """Whether its first elements are so many numbers that another tensor has the same ones for a reason."""
    sample = sample_of(tensor)
    return sample is not None and sample.is_floating_point() and len(sample[sample != 0].double().unique()) >= 4
