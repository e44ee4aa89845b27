"""Collectives of torch.distributed as measurements "dist.NAME", with group and size in the flight recorder."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .. import _ott
from . import _hooks

# Every rank must have come to these before any leaves them, if the backend makes the caller wait.
_SYNCHRONIZING = {
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "_all_gather_base",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "monitored_barrier",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "_reduce_scatter_base",
}
_OTHERS = {
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "_broadcast_coalesced",
    "gather",
    "gather_object",
    "reduce",
    "scatter",
    "scatter_object_list",
}
# Those whose result all ranks of the group have, bit for bit.
SHARED_RESULTS = ("all_reduce", "broadcast", "all_gather", "all_gather_into_tensor")
# Those that the functional collectives of DTensor call as well.
_FUNCTIONAL = {
    "all_gather_single",
    "all_gather_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "broadcast",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
}
# PyTorch tells isend and irecv by identity, so they stay; they are measured where their results are waited for.
_PEERS = {"send": "send", "recv": "receive", "isend": "send", "irecv": "receive"}
# c10d::OpType of messages, which is a number in Python: SEND, RECV, RECVANYSOURCE.
_MESSAGES = {12: "isend", 13: "irecv", 14: "irecv"}

# Those that a stage of a pipeline written by hand begins with, while the stage before waits in its first forward pass. So does the
# wait for what irecv() gets.
_BETWEEN_STAGES = {"send", "recv", "batch_isend_irecv"}

# Why replicas may differ, as those of local SGD do between two averages.
OWN_HOOK = "a communication hook of the program's own decides what replicas share"

# Why ranks are not compared where Join lets them have unlike numbers of batches.
JOINS = "under Join ranks have iterations of their own numbers"

# The measurement from DDP's last bucket on, whose gradients a rank has computed, to the end of the backward pass.
GRADIENTS = "dist.gradients"


class Collectives:
    """Measures the calls while a run is on. Calls inside of others are part of these."""

    def __init__(self, observer: Any):
        self._observer = observer
        self.fail = observer.fail
        self._inside = False
        self._told: Dict[str, Tuple[Any, ...]] = {}
        self._labels: Dict[int, Tuple[Any, str, List[int]]] = {}
        self._parameters: Dict[int, List[str]] = {}  # their names, by the identity of the function
        self._gradients_wait = False
        self._is_backward = False
        self.joins = False  # whether the program let ranks have unlike numbers of batches
        self.has_joined = False  # whether this rank has none left and takes part in what the others do
        self._in_own_hook = False  # a communication hook of the program's own
        self.num_reductions = 0
        self._attached = _hooks.WeakIds()
        self._own_hooks = _hooks.WeakIds()
        self._hooked = _hooks.WeakIds()
        self._reducers: "weakref.WeakKeyDictionary[Any, _Reducer]" = weakref.WeakKeyDictionary()
        # What isend() and irecv() gave out: the call and the peer.
        self._messages: "weakref.WeakKeyDictionary[Any, Tuple[str, int]]" = weakref.WeakKeyDictionary()

    def install(self, patches: _hooks.Patches) -> None:
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available():
            return
        c10d = sys.modules["torch.distributed.distributed_c10d"]
        for name in sorted(_SYNCHRONIZING | _OTHERS | {"send", "recv"}):
            if hasattr(distributed, name):
                patches.wrap(distributed, name, self._around(name), also=(c10d,))
        if hasattr(distributed, "Work"):
            patches.wrap(distributed.Work, "wait", self._around("wait"))
            patches.wrap(distributed.ProcessGroup, "send", self._around_message("isend"))
            patches.wrap(distributed.ProcessGroup, "recv", self._around_message("irecv"))
        functional = sys.modules.get("torch.distributed._functional_collectives")
        if functional is not None:
            for name in sorted(_FUNCTIONAL):
                for version in (name, f"{name}_autograd"):
                    patches.wrap(functional, version, self._around(name, True))
            patches.wrap(functional, "wait_tensor", self._around("wait"))
        ddp = sys.modules["torch.nn.parallel"].DistributedDataParallel
        patches.wrap(ddp, "register_comm_hook", self._register_comm_hook)
        join = sys.modules["torch.distributed.algorithms.join"].Join
        patches.wrap(join, "notify_join_context", self._notify_join)
        patches.wrap(join, "__enter__", self._enter_join)
        patches.wrap(join, "__exit__", self._exit_join)

    def _around(self, name: str, is_functional: bool = False) -> Any:
        """is_functional: one of those whose results are waited for by themselves, where they are used."""

        def call(original: Any, *args: Any, **kwargs: Any) -> Any:
            is_receive = name == "wait" and not self._observer.is_on() and _is_receive(args[0])
            if (name in _BETWEEN_STAGES or is_receive) and not self._inside:
                self._observer.start(None)
            if self._inside or not self._observer.measures_this_thread() or _is_of_others(args, kwargs):
                return original(*args, **kwargs)
            given, named = self._by_position(original.function, args, kwargs)
            is_async = bool(named.get("async_op"))
            if is_async and self._in_own_hook:
                return original(*args, **kwargs)
            called, peer = self._message(args[0]) if name == "wait" and not is_functional else (name, -1)
            measurement = self._prepare(called, given, kwargs, is_functional, is_async, peer)
            operations = self._observer.operations
            operation = None
            if operations.is_on and name not in _PEERS and name != "wait":
                inputs, outputs = _inputs_and_outputs(name.strip("_"), given, named)
                inputs = list(_hooks.tensors_in(list(given[:1]))) if is_functional else inputs
                operation = operations.start(name.strip("_"), "collective", "", inputs)
            self._inside = True
            try:
                with _ott.Scope(measurement):
                    result = original(*args, **kwargs)
            finally:
                self._inside = False
            if name == "wait":
                operations.waited(args[0])
            elif operation is not None:
                if is_functional:
                    outputs = list(_hooks.tensors_in(result))
                elements = [tensor.elem for tensor in outputs if hasattr(tensor, "elem")]  # of what is waited for once it is used
                awaited = [(result, outputs)] if is_async else [(element, [element]) for element in elements]
                operations.finish_when_waited(operation, awaited, [] if awaited else outputs)
            if not is_async and not is_functional and name in SHARED_RESULTS:
                group, ranks, waits = self._group_of(given, kwargs, False)
                if waits:
                    self._observer.sound.transferred(group, ranks, given)
            return result

        return call

    def _by_position(self, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Returns the arguments, also those by position that the program gives by name; and all of them by their names."""
        names = self._parameters.get(id(function))
        if names is None:
            code = getattr(inspect.unwrap(function), "__code__", None)  # None: it is of C++, and takes none by name
            names = self._parameters[id(function)] = list(code.co_varnames[: code.co_argcount]) if code is not None else []
        named = itertools.takewhile(kwargs.__contains__, names[len(args) :])
        given = (*args, *(kwargs[name] for name in named))
        return given, dict(zip(names, given), **kwargs)

    def _around_message(self, name: str) -> Any:
        """Of the methods that isend() and irecv() call, with the peer's rank in the group."""

        def call(original: Any, *args: Any, **kwargs: Any) -> Any:
            work = original(*args, **kwargs)
            if work is not None and len(args) > 2:
                self._messages[work] = name, group_ranks(args[0])[args[2]]
            return work

        return call

    def _message(self, work: Any) -> Tuple[str, int]:
        """Returns "isend" or "irecv" and the peer, -1 if that is not known; or "wait", of what is none of both."""
        try:
            return self._messages.get(work) or (_MESSAGES.get(work._get_op_type(), "wait"), -1)
        except (AttributeError, RuntimeError, TypeError):  # PyTorch 1.13 has no _get_op_type()
            return "wait", -1

    def _prepare(
        self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], is_functional: bool, is_async: bool, peer: int
    ) -> str:
        """The measurement's name, of which the flight recorder knows group and size by now."""
        group, ranks, waits = self._group_of(args, kwargs, is_functional)
        measurement = "dist." + name.strip("_") + (f" of ranks {group}" if group else "")
        asynchronous = is_async or name == "wait" or is_functional
        if name != "wait" and name not in _PEERS and name != "batch_isend_irecv":
            self._observer.sound.collective(name.strip("_"), group, ranks, args, kwargs)
        if asynchronous and name != "wait" and name not in _PEERS:
            measurement += " (async)"
        measurement = sys.intern(measurement)
        size = -1
        if name in _SYNCHRONIZING and not name.endswith("object"):
            size = sum(t.numel() * t.element_size() for t in _hooks.tensors_in(list(args[:1])))
        # Each rank calls batch_isend_irecv as often as it has messages, and meets nobody there.
        role = "work" if name == "batch_isend_irecv" else _PEERS.get(name, "collective")
        if name in ("send", "recv"):
            peer = next((value for value in (*args[1:2], kwargs.get("dst"), kwargs.get("src")) if value is not None), -1)
        if name in _PEERS and (not isinstance(peer, int) or peer < 0):
            peer, role = -1, "work"  # from whomever it comes
        synchronizes = name in _SYNCHRONIZING and waits and not asynchronous
        told = (group, size, peer, synchronizes)
        if self._told.get(measurement) != told:
            self._told[measurement] = told
            _ott.set_operation(measurement, role, group, ranks, size, peer, synchronizes)
        return measurement

    def _group_of(
        self, args: Tuple[Any, ...], kwargs: Dict[str, Any], is_functional: bool
    ) -> Tuple[str, List[int], bool]:
        """Returns the name of the group, "" for all ranks; its ranks; whether its calls wait on the host."""
        distributed = sys.modules["torch.distributed"]
        group = kwargs.get("group", kwargs.get("process_group"))
        for argument in args:
            if group is None and isinstance(argument, distributed.ProcessGroup):
                group = argument
        if not distributed.is_initialized():
            return "", [], False
        if is_functional:
            group = _group_of_mesh(args, kwargs)
        key = id(group) if group is not None else 0
        known = self._labels.get(key)
        # Another group may lie where one was that is gone.
        if known is None or (group is not None and known[0]() is not group):
            ranks = group_ranks(group)
            is_world = len(ranks) == distributed.get_world_size()
            labelled = ("" if is_world else format_ranks(ranks), [] if is_world else ranks)
            known = self._labels[key] = (weakref.ref(group) if group is not None else None, *labelled)
        _, label, ranks = known
        return label, ranks, distributed.get_backend(group) in ("gloo", "mpi")

    # DistributedDataParallel reduces gradients in C++, where only a communication hook sees it.

    def attach(self, ddp: Any) -> None:
        """Has the buckets of a DistributedDataParallel seen; they are reduced as without it, bit for bit."""
        if ddp in self._attached:
            return
        self._attached.add(ddp)
        if ddp in self._own_hooks:
            return
        size = ddp.process_group.size()
        if getattr(ddp, "gradient_as_bucket_view", False) and size & (size - 1):
            self._observer.say(
                "the reductions of DistributedDataParallel(gradient_as_bucket_view=True) on a number of ranks that is no "
                "power of 2 are not observed: a hook would round otherwise"
            )
            return
        if getattr(ddp, "mixed_precision", None) is not None or any(
            getattr(module, "sparse", False) for module in ddp.module.modules()
        ):
            self._observer.say("the reductions of this DistributedDataParallel are not observed: a hook would change them")
            return
        try:
            self._reducers[ddp] = reducer = _Reducer(ddp.process_group)
            ddp.register_comm_hook(reducer, self._reduce)
            _show_hooks(ddp, [])
            self._hooked.add(ddp)
        except (RuntimeError, ValueError, TypeError) as error:
            self._observer.say(f"the reductions of DistributedDataParallel are not observed: {error}")

    def has_own_hook(self, ddp: Any) -> bool:
        return ddp in self._own_hooks

    def sees_reductions_of(self, ddp: Any) -> bool:
        return ddp in self._own_hooks or ddp in self._hooked

    def _register_comm_hook(self, original: Any, ddp: Any, state: Any, hook: Any) -> Any:
        if hook == self._reduce:
            return original(ddp, state, hook)

        @functools.wraps(hook)  # PyTorch looks at its name and annotations
        def observed(state, bucket):  # type: ignore[no-untyped-def]
            self._begin_reduction(bucket)
            return self._call_own_hook(hook, state, bucket)

        if ddp in self._hooked:  # PyTorch takes one hook, up to the first backward pass
            ddp._check_comm_hook(hook)
            self._reducers[ddp].hook = functools.partial(self._call_own_hook, hook, state)
            self._hooked.discard(ddp)
        else:
            original(ddp, state, observed)
        self._own_hooks.add(ddp)
        if self._observer.tensors.are_replicas_by_default:
            self._observer.tensors.leaves_parameters_out = True
            self._observer.say(f"parameters are not checked any more, as {OWN_HOOK}")
        _show_hooks(ddp, [(hook, state)])
        return None

    def _call_own_hook(self, hook: Any, state: Any, bucket: Any) -> Any:
        """Calls that do not wait are not looked at in it: those in callbacks of its futures come on this thread, or on another one where
        a rank came late."""
        self._in_own_hook = True
        try:
            return hook(state, bucket)
        finally:
            self._in_own_hook = False

    def _enter_join(self, original: Any, join: Any) -> Any:
        if getattr(join, "_enable", True) and not self.joins:
            self.joins = True
            self._observer.begin_joins()
        return original(join)

    def _exit_join(self, original: Any, *args: Any) -> Any:
        self.has_joined = True
        try:
            return original(*args)
        finally:
            self.has_joined = False

    def _notify_join(self, original: Any, joinable: Any) -> Any:
        """A forward pass within join(): its gradients may be divided by the number of ranks that still have batches."""
        work = original(joinable)
        if joinable in self._reducers:
            self._reducers[joinable].joining = None if getattr(joinable, "_divide_by_initial_world_size", True) else work
        return work

    # Without annotations, which PyTorch compares with those of its own.
    def _reduce(self, reducer, bucket):  # type: ignore[no-untyped-def]
        """Does what DistributedDataParallel does without a hook: divides as it does, and adds up."""
        buffer = bucket.buffer()
        self._begin_reduction(bucket)
        if reducer.hook is not None:
            return reducer.hook(bucket)
        buffer.mul_(1.0 / reducer.num_ranks())
        work = reducer.group.allreduce([buffer])
        return work.get_future().then(_first_tensor)

    @_hooks.guarded
    def _begin_reduction(self, bucket: Any) -> None:
        if not self._observer.is_on():
            return
        if self._observer.takes_local_gradients and self._observer.tensors.active:
            self._observer.add_local_gradients(bucket.parameters(), bucket.gradients())
        if bucket.is_last():
            self.num_reductions += 1
            # A rank without batches that has joined takes part outside of a backward pass.
            if self._is_backward and not self._gradients_wait:
                self._gradients_wait = True
                self._observer.stopwatch.start(GRADIENTS)

    def begin_backward(self) -> None:
        self._is_backward = True

    def end_reductions(self) -> bool:
        """Called as a backward pass has ended, in whichever way. Whether gradients were reduced in it."""
        reduced, self._gradients_wait = self._gradients_wait, False
        self._is_backward = False
        if reduced:
            self._observer.stopwatch.end(GRADIENTS)
        return reduced


def _show_hooks(ddp: Any, hooks: List[Tuple[Any, Any]]) -> None:
    """Has a DistributedDataParallel, and thus its copies and pickles, hold the program's hook instead of the last one, which is ours."""
    if hasattr(ddp, "_comm_hooks"):
        ddp._comm_hooks[-1:] = hooks


class _Reducer:
    """What reduces the gradients of a DistributedDataParallel."""

    def __init__(self, group: Any):
        self.group = group
        self.hook: Optional[Callable[[Any], Any]] = None  # of the program, where it came after ours
        self.joining: Any = None  # what adds up the ranks that still have batches, where gradients are divided by their number

    def num_ranks(self) -> int:
        """Returns by what gradients are divided."""
        if self.joining is None:
            return self.group.size()
        future = self.joining.get_future()
        future.wait()
        return int(_first_tensor(future))


def _inputs_and_outputs(name: str, args: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
    """Returns what this rank gives to a collective and what it gets. args, named: the arguments, by position and by name."""
    if "object" in name:
        return [], []
    first, second = (list(_hooks.tensors_in(list(args[i : i + 1]))) for i in (0, 1))
    if name.startswith(("all_gather", "all_to_all", "reduce_scatter", "scatter")):
        return second, first
    if name == "gather":
        return first, second
    if name == "broadcast":
        return (first if _is_root(named) else []), first
    if name == "broadcast_coalesced":  # DistributedDataParallel's: group, tensors, size of its buckets, rank in the group
        return (second if args[3] == args[0].rank() else []), second
    return first, (first if name != "reduce" or _is_root(named) else [])


def _is_root(named: Dict[str, Any]) -> bool:
    """Returns True if a collective from one rank, or to one, is from or to this one. named: its arguments."""
    distributed = sys.modules["torch.distributed"]
    for end in ("src", "dst"):
        if named.get(end) is not None:
            return named[end] == distributed.get_rank()
        if named.get(f"group_{end}") is not None:
            return named[f"group_{end}"] == distributed.get_rank(named.get("group"))
    return False


def _is_receive(work: Any) -> bool:
    """False as well for NCCL's, whose wait does not stop the host."""
    try:
        work._source_rank()
    except (AttributeError, RuntimeError):
        return False
    return True


def _is_of_others(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """Returns True for a call with a group that this rank is not in, which does nothing but warn."""
    other = sys.modules["torch.distributed.distributed_c10d"].GroupMember.NON_GROUP_MEMBER
    return any(argument is other for argument in (*args, *kwargs.values()))


def _group_of_mesh(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The process group of a functional collective, which takes a mesh, (mesh, dimension), or a process group."""
    for given in (kwargs.get("group"), *args):
        mesh, dimension = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if hasattr(mesh, "get_group"):
            return mesh.get_group(dimension)
        if isinstance(given, sys.modules["torch.distributed"].ProcessGroup):
            return given
    return None


def _first_tensor(future: Any) -> torch.Tensor:
    value = future.value()
    return value[0] if isinstance(value, (list, tuple)) else value


# The ranks of groups, by id. PyTorch forgets those of a group that the program has ended, and that a model may still have.
_ranks_of_groups: Dict[int, List[int]] = {}


def group_ranks(group: Optional[Any]) -> List[int]:
    """The ranks of the job that are in a group."""
    distributed = sys.modules["torch.distributed"]
    if group is None:
        return list(range(distributed.get_world_size()))
    if hasattr(distributed, "get_process_group_ranks"):
        try:
            _ranks_of_groups[id(group)] = list(distributed.get_process_group_ranks(group))
        except KeyError:
            pass
        return _ranks_of_groups.get(id(group), [])
    known = sys.modules["torch.distributed.distributed_c10d"]._pg_group_ranks.get(group)
    return sorted(known) if known else list(range(distributed.get_world_size()))


def ranks_along(mesh: Any, dimension: int) -> Tuple[int, ...]:
    """The ranks along a dimension of a mesh, this one among them, also once the program has ended their group. Empty if this rank is in no place of it."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return ()
    place = list(coordinate)
    place[dimension] = slice(None)
    return tuple(mesh.mesh[tuple(place)].tolist())


def all_ranks() -> List[int]:
    return group_ranks(None)


def format_ranks(ranks: List[int]) -> str:
    """'0-3', '0,2', '0-14 by 2'."""
    if len(ranks) > 2:
        stride = ranks[1] - ranks[0]
        if all(b - a == stride for a, b in zip(ranks, ranks[1:])):
            return f"{ranks[0]}-{ranks[-1]}" + ("" if stride == 1 else f" by {stride}")
    return ",".join(str(rank) for rank in ranks[:16])
