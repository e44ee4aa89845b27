"""The ranks of a training and the configuration that its run begins with."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import os
import secrets
import socket
import sys
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Union

import torch

from .. import _ott
from .._errors import Error
from .._run import ranks
from .._stopwatch import Stopwatch
from . import _hooks, _modules
from ._collectives import JOINS, OWN_HOOK, format_ranks, group_ranks

Config = Union[None, str, "os.PathLike[str]", Mapping[str, Any]]

WARMUP_ITERATIONS = 3
_CHECKED_ITERATIONS = {"first": True, "every": 100}
# Fields of cross_check that say what ranks share.
_WHAT_IS_CHECKED = ("replicated", "distinct", "kinds", "tensor_kinds", "sharded", "same_data_along", "reference_run")
_HANG_SECONDS = 120.0
# Ranks come to the first forward pass at different times: data are read, kernels are compiled. It is half of the time after which
# NCCL ends a training, as where one rank alone trains, the others wait for it meanwhile.
_SECONDS_TO_MEET = 300.0
# And to the end of init_process_group(), where they say that they are observed.
_SECONDS_TO_ANNOUNCE = 60.0

# Parts of "state." that ranks share whatever their gradients are.
_STATE_BUT_NORMS = ("counts", "learning_rates_so_far", "options", "requires_grad", "training")

# Counts observers, which all ranks make in one order.
_numbers = itertools.count()
_is_announced = False


def announce() -> None:
    """Tells the other ranks that this one is observed, as the process group begins."""
    global _is_announced
    distributed = _initialized_distributed()
    if distributed is not None:
        distributed.distributed_c10d._get_default_store().set(_announcement(distributed.get_rank()), "1")
        _is_announced = True


def _announcement(rank: int) -> str:
    return f"ott/rank {rank} is observed"


def _check_announced(store: Any, size: int) -> None:
    """Raises TimeoutError if a rank is not observed, as one that Lightning starts by itself: for it none must wait."""
    if _are_announced(store, range(size), _SECONDS_TO_ANNOUNCE):
        return
    seconds = 0.01 + 2 / size  # each, as the store of a loaded machine answers late
    missing = [rank for rank in range(size) if not _are_announced(store, [rank], seconds)]
    if missing:  # else the last one came meanwhile
        raise TimeoutError(
            f"rank {format_ranks(missing)} did not say in {_SECONDS_TO_ANNOUNCE:.0f} s that it is observed: start all ranks by torchrun"
        )


def _are_announced(store: Any, of_ranks: Iterable[int], seconds: float) -> bool:
    # In version 1.13 the store of a process group has no check().
    try:
        store.wait(list(map(_announcement, of_ranks)), datetime.timedelta(seconds=seconds))
    except RuntimeError:
        return False
    return True


def find_ranks(root: Optional[torch.nn.Module]) -> Tuple[Any, Dict[str, Any]]:
    """The ranks of this job, found by its own process group where it has one, and the mesh of those that train replicas of one model.

    The mesh is empty unless each rank's model is in DistributedDataParallel over a part of the ranks, and not all models have the same
    modules and shapes. Collective over the ranks.
    """
    distributed = _initialized_distributed()
    if distributed is None:
        if _calls_by_rpc():
            raise Error("processes that call each other by torch.distributed.rpc do not all train: only those of a process group are observed")
        return ranks(timeout=_SECONDS_TO_MEET), {}
    rank, size = distributed.get_rank(), distributed.get_world_size()
    if size == 1:
        return ranks("local"), {}
    # By the job's own store, so that no port must be free on purpose, and with a name: ranks that other processes started, such as
    # one `timeout` each, are else taken for those of another job.
    store = distributed.distributed_c10d._get_default_store()
    if _is_announced:
        _check_announced(store, size)
    key = f"ott/address {next(_numbers)}"
    if rank == 0:
        store.set(key, f"{os.environ.get('MASTER_ADDR') or '127.0.0.1'} {_free_port()} {secrets.token_hex(8)}")
    address, port, job = store.get(key).decode().split()
    mesh = _mesh_of_replicas(root, size)
    model = _digest_of_model(root) if root is not None and mesh else "not of a part of the ranks"
    said = [f"ott/{what} {job}" for what in (json.dumps(mesh), model)]
    for what in said:
        store.add(what, 1)
    found = _ott.tcp_ranks(address, int(port), rank, size, _SECONDS_TO_MEET, job)  # returns once all have come
    if rank == 0:
        _forget(store, key)
    say_the_same = [_take_count(store, what) == size for what in said]
    return found, mesh if say_the_same == [True, False] else {}


def _take_count(store: Any, what: str) -> int:
    """Returns how many ranks said it; the last of them that asks removes it."""
    count = store.add(what, 0)
    if store.add(f"{what}, asked", 1) == count:
        _forget(store, what)
        _forget(store, f"{what}, asked")
    return int(count)


def _mesh_of_replicas(root: Optional[torch.nn.Module], world_size: int) -> Dict[str, Any]:
    group = group_ranks(root.process_group) if isinstance(root, torch.nn.parallel.DistributedDataParallel) else ()
    return _mesh_of("replica", group, world_size) if 0 < len(group) < world_size else {}


def _digest_of_model(root: torch.nn.Module) -> str:
    parts = [f"{name} {type(module).__name__}" for name, module in root.named_modules()]
    parts += [f"{name} {list(parameter.shape)}" for name, parameter in root.named_parameters()]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _forget(store: Any, key: str) -> None:
    """All ranks have read it. Ranks that torchrun starts anew may get the same store, and must not take the address for theirs."""
    try:
        store.delete_key(key)
    except RuntimeError:
        pass  # of a kind of store that cannot, which no other start gets


def rank() -> int:
    distributed = _initialized_distributed()
    return int(os.environ.get("RANK", "0")) if distributed is None else int(distributed.get_rank())


def make_config(
    given: Config,
    name: str,
    root: Optional[torch.nn.Module],
    world_size: int,
    observer: Any,
    pipeline: Sequence[int],
    replicas: Mapping[str, Any],
) -> Dict[str, Any]:
    """Returns what the user configured, and what an observation adds to it."""
    if isinstance(given, Mapping):
        config = dict(given)
    else:
        config = json.loads(_ott.load_config(None if given is None else os.fspath(given)))
    config["run_dir"] = config.get("run_dir") or os.environ.get("OTT_RUN_DIR") or f"ott_runs/{name}"
    stopwatch = dict(config.get("stopwatch", {"num_warmup_iters": WARMUP_ITERATIONS}))
    stopwatch["collective_measurements"] = [*stopwatch.get("collective_measurements", []), "dist.*"]
    stopwatch["sampled_measurements"] = [*stopwatch.get("sampled_measurements", []), _modules.SAMPLED]
    if root is not None and any(p.is_cuda for p in root.parameters()) and "device_sync" not in stopwatch:
        # Times of the device beside the host's, for which nothing waits.
        if _can_time_devices():
            stopwatch["device_sync"] = "DEVICE_SYNC_EVENTS"
        else:
            observer.say("times are those of the host: this build of optim_test_tools has no CUDA, or finds no device")
    mesh, work_differs_along = replicas, ["outer", "inner"]
    if len(pipeline) > 1:
        mesh, work_differs_along = _mesh_of("pipeline", pipeline, world_size), ["pipeline"]
    if mesh and not config.get("mesh"):
        config["mesh"] = [mesh]
        stopwatch["work_differs_along"] = work_differs_along
    config["stopwatch"] = stopwatch
    config.setdefault("hang", {"after_seconds": _HANG_SECONDS})
    if observer.collectives.joins:
        config.pop("cross_check", None)
        observer.say(f"replicas are not checked, as {JOINS}")
    elif not any(config.get("cross_check", {}).get(field) for field in _WHAT_IS_CHECKED) and world_size > 1 and root is not None:
        check = _default_check(root, world_size, observer)
        if check is not None:
            config["cross_check"] = {**config.get("cross_check", {"iterations": _CHECKED_ITERATIONS}), **check}
        elif "cross_check" not in config:
            observer.say(
                "replicas are not checked, as this model is neither in DistributedDataParallel nor sharded over all ranks: say "
                "what they share by cross_check in a --config"
            )
    return config


def schedule_that_calls() -> Any:
    """The schedule of torch.distributed.pipelining whose step is under way; None: there is none."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.distributed.pipelining.schedules" and "self" in frame.f_locals:
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


def ranks_of_stages(schedule: Any) -> Sequence[int]:
    """The ranks that have the stages of this rank's pipeline; empty: not known."""
    stages = getattr(schedule, "_stages", None) or [getattr(schedule, "_stage", None)]
    return group_ranks(stages[0].group) if hasattr(stages[0], "group") else ()


def _mesh_of(axis: str, ranks: Sequence[int], world_size: int) -> Dict[str, Any]:
    """All ranks as groups like this one, which is along the axis; empty where these are no grid."""
    stride = max(1, ranks[1] - ranks[0]) if len(ranks) > 1 else 1
    num_outer, rest = divmod(world_size, len(ranks) * stride)
    if rest or ranks[0] % (len(ranks) * stride) >= stride or list(ranks) != list(range(ranks[0], ranks[0] + len(ranks) * stride, stride)):
        return {}
    sizes = {"outer": num_outer, axis: len(ranks), "inner": stride}
    return {"axes": [{"name": name, "size": size} for name, size in sizes.items()]}


def _can_time_devices() -> bool:
    stopwatch = Stopwatch()
    if stopwatch.enabled:
        return False  # which TrainingRun says
    try:
        stopwatch.enable(device_sync="events")
    except Error:
        return False
    stopwatch.disable()
    return True


def _default_check(root: torch.nn.Module, world_size: int, observer: Any) -> Optional[Dict[str, Any]]:
    """Returns what is sure to be alike on all ranks, and what is sure not to be."""
    ddps = [ddp for ddp in observer.models.ddps() if len(group_ranks(ddp.process_group)) == world_size]
    replicated = ["state.*"]
    if any(map(observer.collectives.has_own_hook, ddps)):
        replicated = [f"state.{name}*" for name in _STATE_BUT_NORMS]
        observer.say(f"parameters are not checked, as {OWN_HOOK}")
    elif ddps:
        observer.tensors.are_replicas_by_default = True
        replicated += [f"parameters.{glob}" for ddp in ddps for glob in observer.models.globs_of(ddp)]
    elif not _is_sharded_over_all(_hooks.unwrap(root), world_size):
        return None
    return {"replicated": replicated, "distinct": ["data.*"]}


def _is_sharded_over_all(model: torch.nn.Module, world_size: int) -> bool:
    """Returns True if the parameters are FSDP2's, on a mesh of one dimension that has all ranks.

    Under tensor parallelism all ranks of a mesh have one batch.
    """
    if not any(hasattr(module, "set_requires_gradient_sync") for module in model.modules()):
        return False
    meshes = [p.device_mesh for p in model.parameters() if _hooks.is_sharded(p)]
    return bool(meshes) and all(mesh.ndim == 1 and mesh.size() == world_size for mesh in meshes)


def _initialized_distributed() -> Any:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def _calls_by_rpc() -> bool:
    rpc = sys.modules.get("torch.distributed.rpc")
    return rpc is not None and hasattr(rpc, "_is_current_rpc_agent_set") and rpc._is_current_rpc_agent_set()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]
