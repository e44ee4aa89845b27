"""Checks and dumps the state of a training, by name, in the iterations that the configuration selects."""

from __future__ import annotations

import collections
import ctypes
import gc
import hashlib
import itertools
import json
import random
import sys
import weakref
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import torch
from torch.nn.parameter import is_lazy

from . import _hooks


_INDICES = {
    "torch.sparse_csr": ("crow_indices", "col_indices"),
    "torch.sparse_bsr": ("crow_indices", "col_indices"),
    "torch.sparse_csc": ("ccol_indices", "row_indices"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices"),
    "torch.sparse_coo": ("indices",),
    "torch.jagged": ("offsets",),
}


def parts_of(tensor: torch.Tensor) -> Dict[str, torch.Tensor]:
    """Returns what this rank holds of it, by "", or of a sparse or nested one its indices and values, by their names."""
    held = _hooks.local(tensor).detach()
    if held.is_nested and held.layout == torch.strided:
        return {"sizes": held._nested_tensor_size(), "values": held.values()}
    names = _INDICES.get(str(held.layout))
    if names is None:
        return {"": held if held.layout == torch.strided else held.to_dense()}
    if held.layout == torch.sparse_coo:
        held = held.coalesce()
    return {name: getattr(held, name)() for name in (*names, "values")}


def digest(*tensors: torch.Tensor) -> torch.Tensor:
    """16 bytes that stand for what the tensors hold."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        for part in parts_of(tensor).values():
            held = part.contiguous().cpu()
            found.update(f"{held.dtype} {tuple(held.shape)}".encode())
            found.update(ctypes.string_at(held.data_ptr(), held.numel() * held.element_size()))
    return torch.tensor(list(found.digest()), dtype=torch.uint8)


class RandomGenerators:
    """Their states, which are read and not advanced.

    A program that draws from none but PyTorch's does not seed the others, which then differ from run to run. So Python's and NumPy's
    count from the first time on that they have changed.
    """

    def __init__(self) -> None:
        self._first: Dict[str, torch.Tensor] = {}

    def digests(self) -> Dict[str, torch.Tensor]:
        states = {"torch": digest(torch.get_rng_state())}
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = digest(torch.cuda.get_rng_state())
        others = {"python": _digest_of_bytes(repr(random.getstate()).encode())}
        numpy = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "random"):
            state = json.dumps(numpy.random.get_state(legacy=False), default=lambda item: item.tolist())
            others["numpy"] = _digest_of_bytes(state.encode())
        for name, state in others.items():
            if not torch.equal(self._first.setdefault(name, state), state):
                states[name] = state
        return states


def _digest_of_bytes(data: bytes) -> torch.Tensor:
    return torch.tensor(list(hashlib.blake2b(data, digest_size=16).digest()), dtype=torch.uint8)


class _Named:
    """Objects in the order in which they came, with names of their own. None of them is kept alive: programs copy models and make
    optimizers for each task or batch."""

    def __init__(self) -> None:
        self._items: List[Tuple[str, "weakref.ref[Any]"]] = []
        self._counts: Dict[str, int] = collections.defaultdict(int)
        self._taken: Set[str] = set()

    def __iter__(self) -> Iterator[Tuple[str, Any]]:
        for name, reference in self._items:
            item = reference()
            if item is not None:
                yield name, item

    def __contains__(self, item: Any) -> bool:
        return any(known is item for _, known in self)

    @property
    def num_added(self) -> int:
        return len(self._taken)

    def add(self, item: Any, kind: str) -> None:
        """Its name is the kind, or, where that was a name before, with a number."""
        name = None
        while name is None or name in self._taken:
            self._counts[kind] += 1
            name = kind if self._counts[kind] == 1 else f"{kind}{self._counts[kind]}"
        self._taken.add(name)
        self._items = [known for known in self._items if known[1]() is not None]
        self._items.append((name, weakref.ref(item)))

    def collect(self) -> None:
        """Has those gone that nothing but themselves refers to, so that all ranks know of the same ones."""
        if len(self._items) < len(self._taken) or any(reference() is None for _, reference in self._items):
            gc.collect()


class Models:
    """The models and optimizers that were seen, in the order in which they came, and how their tensors are called."""

    def __init__(self) -> None:
        self._models = _Named()  # the first one by "", so that its names are its own
        self._optimizers = _Named()
        self._stepped: List[torch.optim.Optimizer] = []  # in this iteration
        self._scalers: List[Any] = []
        self._names: Dict[int, str] = {}
        # DistributedDataParallels, in order of making, which is the same on all ranks; and those of each module, by identity.
        self._ddps: List["weakref.ref[Any]"] = []
        self._ddps_of: Dict[int, Tuple["weakref.ref[Any]", List[Any]]] = {}
        self._shared: Optional[Set[int]] = None  # identities of their parameters

    def add_model(self, module: torch.nn.Module) -> None:
        model = _hooks.unwrap(module)
        if model in self._models:
            return
        self._models.add(model, type(model).__name__ if self._models.num_added else "")
        self._names = {}
        for prefix, known in self._prefixed():
            for name, parameter in known.named_parameters():
                self._names.setdefault(id(parameter), prefix + name)

    def add_ddp(self, ddp: Any) -> None:
        if not any(known is ddp for known in self.ddps()):
            self._ddps = [known for known in self._ddps if known() is not None] + [weakref.ref(ddp)]
            self._ddps_of, self._shared = {}, None

    def ddps(self) -> List[Any]:
        return [ddp for ddp in (reference() for reference in self._ddps) if ddp is not None]

    def ddps_of(self, module: torch.nn.Module) -> List[Any]:
        """Returns the DistributedDataParallel around a module, or those inside of it, which its forward pass calls."""
        reference, found = self._ddps_of.get(id(module), (None, []))
        if reference is None or reference() is not module:
            around = _hooks.find_ddp(module)
            ddps = [around] if around is not None else [part for part in module.modules() if _hooks.is_ddp(part)]
            for ddp in ddps:
                self.add_ddp(ddp)  # where it was made before the observation began
            found = [weakref.ref(ddp) for ddp in ddps]
            self._ddps_of[id(module)] = (weakref.ref(module), found)
        return [ddp for ddp in (known() for known in found) if ddp is not None]

    def ddp_of(self, optimizer: torch.optim.Optimizer) -> Optional[Any]:
        """Returns a DistributedDataParallel that learns by it, where one was made."""
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return next((ddp for ddp in self.ddps() if any(id(p) in held for p in ddp.module.parameters())), None)

    def are_of_replicas(self, parameters: Any) -> bool:
        """Whether a DistributedDataParallel keeps any of them alike; True where there is none, as nothing tells."""
        ddps = self.ddps()
        kept = {id(p) for ddp in ddps for p in _hooks.kept_alike(ddp)}
        return not ddps or any(id(p) in kept for p in _hooks.tensors_in(parameters))

    def may_be_of_one_rank(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a model that is apart learns by it: a probe, or what else rank 0 trains. What no model has may be a master copy."""
        held = [group["params"] for group in optimizer.param_groups]
        return self.is_apart(itertools.chain(*held)) and all(id(p) in self._names for p in itertools.chain(*held))

    def is_apart(self, parameters: Iterable[torch.Tensor]) -> bool:
        """Whether no DistributedDataParallel has any of them, where there is one."""
        if not self.ddps():
            return False
        if self._shared is None:
            self._shared = {id(p) for ddp in self.ddps() for p in ddp.module.parameters()}
        return not any(id(p) in self._shared for p in parameters)

    def add_root(self, root: torch.nn.Module) -> None:
        """Adds the model whose pass begins the run, and each that is in DistributedDataParallel: before it, where it has none of these,
        as it may be of one rank."""
        if len(self._ddps) > 1:
            gc.collect()  # of those that the program has no more, so that all ranks know of the same ones
        has_ddp = bool(self.ddps_of(root))
        for model in [root] * has_ddp + self.ddps() + [root]:
            if not any(module is _hooks.unwrap(model) for _, module in self.modules()):
                self.add_model(model)

    def globs_of(self, ddp: Any) -> List[str]:
        """Globs of the names of the parameters that it keeps alike, and of those of no other model."""
        kept = set(map(id, _hooks.kept_alike(ddp)))
        found = [self.name_of(p) for p in ddp.module.parameters(recurse=False) if id(p) in kept]
        for child in ddp.module.children():
            parameters = list(child.parameters())
            name = next((name for name, module in self.modules() if module is child), "")
            if name and all(id(p) in kept for p in parameters):
                # Tied parameters may all have the names of another child.
                found += [f"{name}.*"] if any(self.name_of(p).startswith(f"{name}.") for p in parameters) else []
            else:
                found += [self.name_of(p) for p in parameters if id(p) in kept]
        return found

    def _prefixed(self) -> Iterator[Tuple[str, torch.nn.Module]]:
        for name, model in self._models:
            yield f"{name}." if name else "", model

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> bool:
        """It steps, or is given by the program. Returns whether it is new."""
        is_new = optimizer not in self._optimizers
        if is_new:
            kind = type(optimizer).__name__
            self._optimizers.add(optimizer, f"own {kind}" if self.may_be_of_one_rank(optimizer) else kind)
        if not any(known is optimizer for known in self._stepped):
            self._stepped.append(optimizer)
        return is_new

    def finish_iteration(self) -> None:
        self._stepped = []

    def add_scaler(self, scaler: Any) -> None:
        if not any(known is scaler for known in self._scalers):
            self._scalers.append(scaler)

    def collect(self) -> None:
        self._models.collect()
        self._optimizers.collect()

    @property
    def num_added(self) -> int:
        """Returns how many models were seen so far."""
        return self._models.num_added

    def modules(self) -> Iterator[Tuple[str, torch.nn.Module]]:
        for prefix, model in self._prefixed():
            for name, module in model.named_modules():
                yield (prefix + name).rstrip("."), module

    def parameters(self) -> Dict[str, torch.Tensor]:
        """Those that are there; the first pass of a layer such as nn.LazyLinear makes its own."""
        return {
            prefix + name: parameter
            for prefix, model in self._prefixed()
            for name, parameter in model.named_parameters()
            if not is_lazy(parameter)
        }

    def name_of(self, parameter: torch.Tensor) -> str:
        return self._names.get(id(parameter), "unknown")

    def buffers(self) -> Dict[str, torch.Tensor]:
        return {prefix + name: buffer for prefix, model in self._prefixed() for name, buffer in model.named_buffers()}

    def gradients(self, optimizer: torch.optim.Optimizer) -> Dict[str, torch.Tensor]:
        """Those of the parameters that the optimizer changes."""
        return {
            name: parameter.grad for name, parameter in self._parameters_of(optimizer) if parameter.grad is not None
        }

    def updated(self, optimizer: torch.optim.Optimizer) -> Dict[str, torch.Tensor]:
        """The parameters that the optimizer changes."""
        return dict(self._parameters_of(optimizer))

    def optimizer_state(self) -> Dict[str, Dict[str, Any]]:
        """By parameter, and of that by the optimizer's own names: "exp_avg"."""
        found: Dict[str, Dict[str, Any]] = {}
        for _, optimizer in self._optimizers:
            for name, parameter in self._parameters_of(optimizer):
                state = optimizer.state.get(parameter)
                if isinstance(state, dict):
                    found[name] = {
                        key: value if isinstance(value, torch.Tensor) else torch.tensor(value)
                        for key, value in state.items()
                        if isinstance(value, (torch.Tensor, bool, int, float))
                    }
        return found

    def _parameters_of(self, optimizer: torch.optim.Optimizer) -> Iterator[Tuple[str, torch.Tensor]]:
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                if not is_lazy(parameter):
                    yield self._names.get(id(parameter), f"group{g}.{i}"), parameter

    def learning_rates(self) -> List[float]:
        """Returns those of all groups that stepped in this iteration, but for those that are tensors, which may lie on a device."""
        rates = [group.get("lr") for o in self._stepped if not self.may_be_of_one_rank(o) for group in o.param_groups]
        return [rate for rate in rates if isinstance(rate, (int, float))]

    def options(self, only_stepped: bool = False) -> Dict[str, torch.Tensor]:
        """Learning rates and what else is a number in the groups of the optimizers: "SGD.0.lr".

        only_stepped: of those that stepped in this iteration.
        """
        found = {}
        for name, optimizer in self._optimizers:
            if only_stepped and not any(known is optimizer for known in self._stepped) or self.may_be_of_one_rank(optimizer):
                continue
            for g, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if key == "params":
                        continue
                    if isinstance(value, (bool, int, float)):
                        found[f"{name}.{g}.{key}"] = torch.tensor(value, dtype=torch.float64)
                    elif isinstance(value, torch.Tensor):
                        found[f"{name}.{g}.{key}"] = value.detach().clone()
                    elif isinstance(value, (tuple, list)) and all(isinstance(v, (int, float)) for v in value):
                        found[f"{name}.{g}.{key}"] = torch.tensor(value, dtype=torch.float64)
        return found

    def scalers(self) -> Dict[str, torch.Tensor]:
        """Returns the scale of each GradScaler, and what it becomes another one by: "0.scale"."""
        return {
            f"{s}.{key.lstrip('_')}": torch.tensor(value, dtype=torch.float64)
            for s, scaler in enumerate(self._scalers)
            for key, value in scaler.state_dict().items()
        }

    def flags(self) -> Tuple[Dict[str, torch.Tensor], Dict[str, torch.Tensor]]:
        """Returns whether modules are in training mode, and whether parameters want gradients. With DistributedDataParallel, of what is
        inside of it."""
        shared = {id(item) for ddp in self.ddps() for item in (*ddp.module.modules(), *ddp.module.parameters())}
        training = {name or type(m).__name__: torch.tensor(m.training) for name, m in self.modules() if not shared or id(m) in shared}
        requires_grad = {name: torch.tensor(p.requires_grad) for name, p in self.parameters().items() if not shared or id(p) in shared}
        return training, requires_grad
