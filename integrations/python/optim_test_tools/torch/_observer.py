"""What a training does, seen from its calls of PyTorch: iterations, their parts, and the tensors that they make."""

from __future__ import annotations

import collections
import fnmatch
import functools
import hashlib
import itertools
import json
import os
import sys
import threading
import warnings
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import torch

from .. import _ott
from .._dumper import TensorDumper
from .._errors import AbortedError, Error
from .._run import TrainingRun, ranks
from .._stopwatch import Stopwatch
from . import _hooks, _modules
from ._collectives import Collectives, group_ranks
from ._operations import Operations
from ._stacks import write as write_stacks
from ._state import Models, digest, rng_digests

# torch.optim hides it.
_optimizer_module = sys.modules["torch.optim.optimizer"]
_HAS_STEP_HOOKS = hasattr(_optimizer_module, "register_optimizer_step_pre_hook")

_WARMUP_ITERATIONS = 3
_CHECK_EVERY = 100
_HANG_SECONDS = 120.0
# Ranks come to the first forward pass at different times: data are read, kernels are compiled.
_SECONDS_TO_MEET = 600.0


# Of observers, which all ranks make in one order.
_numbers = itertools.count()


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """What goes wrong in an observation ends the observation, and never the training."""

    @functools.wraps(method)
    def guarded(self: "Observer", *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except AbortedError:
            raise  # as the configuration wants
        except Exception as error:  # noqa: BLE001  whatever it is
            self.fail(error)
            return None

    return guarded


class Observer:
    """Observes the training of this process from install() to finish().

    An iteration ends with the step of an optimizer: of several, of the one that steps last in the first iteration. Its
    parts are measurements: "data of Dataset, train.py:40" in loaders, "data before train.py:120" from an iteration's end to its first
    forward pass, "forward", "backward", "clipping", "optimizer", "evaluation" (forward passes without gradients, and the
    loaders that feed them), "checkpoint". Inside of "forward" are modules: "module h.2.mlp, train.py:288".
    """

    def __init__(
        self,
        config: Union[None, str, "os.PathLike[str]", Mapping[str, Any]],
        name: str,
        activations: Optional[str] = None,
    ):
        self._config = config
        self._activations = activations
        self._name = name
        self._process = os.getpid()
        self._thread: Optional[int] = None
        self._patches = _hooks.Patches()
        self._said: List[str] = []
        self._run: Optional[TrainingRun] = None
        self._failed = False
        self.stopwatch = Stopwatch()
        self.dumper = TensorDumper()
        self.models = Models()
        self.collectives = Collectives(self)
        self.operations = Operations(self.models)
        # The part that is open, and whether it is one that fills a gap, to be ended by the next one.
        self._part: Optional[Any] = None
        self._part_is_gap = False
        self._part_is_step = False
        self._forward_line = ""
        self._dataset_names: Dict[type, str] = {}
        self._modules = _modules.Modules(self.models)
        self._module_hook: Optional[Any] = None
        self._forward_end: Optional[Any] = None
        self._before_forward = True
        self._loaded_last: Any = None
        self._evaluation_loaders = _hooks.WeakIds()
        self._batch: Any = None
        # Optimizers that stepped in this iteration, and the one whose step ends it.
        self._stepped: List[Any] = []
        self._last_optimizer: Optional["weakref.ref[Any]"] = None
        self._in_step = 0
        # The optimizer whose step began and whose closure has no gradients yet.
        self._closure_of: Optional[Any] = None
        self._micro_step = 0
        self._num_steps = 0
        self.takes_local_gradients = False
        self._unused_checkpoint: Optional[str] = None
        self._norms: List[torch.Tensor] = []
        self._num_activations: Dict[str, int] = collections.defaultdict(int)
        # Of all iterations, as those that are checked may happen to have the same.
        self._learning_rates = hashlib.blake2b(digest_size=16)

    # What may be asked.

    def is_on(self) -> bool:
        return self._run is not None and not self._failed and os.getpid() == self._process

    def measures_this_thread(self) -> bool:
        return self.is_on() and threading.get_ident() == self._thread

    def say(self, text: str) -> None:
        """Once for each text, on rank 0."""
        if text in self._said or os.getpid() != self._process:
            return
        self._said.append(text)
        if _rank() == 0:
            print(f"ott: {text}", file=sys.stderr, flush=True)

    def fail(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            print(f"ott: the training is no longer observed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    # Where it hooks in.

    def install(self) -> None:
        import torch.utils.data

        # The hook is called once, for what torch.compile() returned, as within it no module is watched.
        warnings.filterwarnings("ignore", message=".*torch.compile.module.* when there are global hooks")
        patches = self._patches
        self._watch_modules()
        patches.add(self._unwatch_modules)
        patches.wrap(torch.autograd, "backward", self._backward)
        # Older versions know no hooks of all optimizers.
        if _HAS_STEP_HOOKS:
            before = _optimizer_module.register_optimizer_step_pre_hook(self._before_step)
            after = _optimizer_module.register_optimizer_step_post_hook(self._after_step)
            patches.add(before.remove)
            patches.add(after.remove)
        else:
            patches.wrap(torch.optim.Optimizer, "__init__", self._make_optimizer)
        patches.wrap(torch.optim.Optimizer, "load_state_dict", self._load_optimizer)
        clip = sys.modules["torch.nn.utils.clip_grad"]
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            patches.wrap(clip, name, self._clip, also=(torch.nn.utils,))
        patches.wrap(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", self._next_batch)
        patches.wrap(torch.utils.data.DataLoader, "__iter__", self._start_loader)
        patches.wrap(torch, "save", self._checkpoint)
        patches.wrap(torch, "load", self._load)
        for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
            scaler = getattr(owner, "GradScaler", None)
            if scaler is not None and "step" in vars(scaler):
                patches.wrap(scaler, "step", self._scaler_step)
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available():
            patches.wrap(distributed, "init_process_group", self._init_processes)
        self._install_distributed()
        patches.wrap(sys.modules["torch.multiprocessing.spawn"], "start_processes", self._start_processes, also=(torch.multiprocessing,))

    def _install_distributed(self) -> None:
        """What a program may have imported by the time at which its ranks found together."""
        self.collectives.install(self._patches)
        # A stage waits for the one before: all would wait where the first forward pass began the run.
        schedules = sys.modules.get("torch.distributed.pipelining.schedules")
        if schedules is not None:
            for name in ("PipelineScheduleSingle", "PipelineScheduleMulti", "_PipelineScheduleRuntime"):
                if hasattr(schedules, name) and "step" in vars(getattr(schedules, name)):
                    self._patches.wrap(getattr(schedules, name), "step", self._step_pipeline)

    def _init_processes(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        self._install_distributed()
        return result

    def _step_pipeline(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self.start(None)
        return original(*args, **kwargs)

    def _start_processes(self, original: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return original(SpawnedRank(fn, self._config, self._name, self._activations), *args, **kwargs)

    def _watch_modules(self) -> None:
        if self._module_hook is None:
            self._module_hook = torch.nn.modules.module.register_module_forward_pre_hook(self._before_module)

    def _unwatch_modules(self) -> None:
        if self._module_hook is not None:
            self._module_hook.remove()
            self._module_hook = None

    def observe_optimizer(self, optimizer: Any) -> None:
        """Needed where an optimizer was made before install(), and PyTorch has no hooks of all optimizers."""
        self.models.add_optimizer(optimizer)
        if not _HAS_STEP_HOOKS:
            self._patches.wrap(type(optimizer), "step", self._step)

    def _make_optimizer(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(optimizer, *args, **kwargs)
        self._patches.wrap(type(optimizer), "step", self._step)
        return result

    # Its beginning and its end.

    def start(self, root: Optional[torch.nn.Module]) -> None:
        """Lets the ranks find together, with the first forward pass or step of an optimizer. Collective over them."""
        if self._run is not None or self._failed or os.getpid() != self._process:
            return
        self._thread = threading.get_ident()
        try:
            job = self._ranks()
            config = self._make_config(root, job.size)
            self._run = TrainingRun(config, job)
            self._run.on_hang(self._keep_stacks)
        except Exception as error:  # noqa: BLE001  the training goes on
            self.fail(error)
            return
        # A copy of each gradient, which checks do not need.
        self.takes_local_gradients = "dump" in config or "local_grads" in json.dumps(config.get("cross_check", {}))
        if root is not None:
            self.models.add_model(root)
        self._offer_parameters()
        self._log_operations()
        self._begin_gap()

    def _ranks(self) -> Any:
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return ranks(timeout=_SECONDS_TO_MEET)
        rank, size = distributed.get_rank(), distributed.get_world_size()
        if size == 1:
            return ranks("local")
        # By the job's own store, so that no port must be free on purpose.
        store = distributed.distributed_c10d._get_default_store()
        key = f"ott/address {next(_numbers)}"
        if rank == 0:
            store.set(key, f"{_address()} {_free_port()}")
        address, port = store.get(key).decode().split()
        return _ott.tcp_ranks(address, int(port), rank, size, _SECONDS_TO_MEET)

    def _make_config(self, root: Optional[torch.nn.Module], world_size: int) -> Dict[str, Any]:
        if isinstance(self._config, Mapping):
            config = dict(self._config)
        else:
            config = json.loads(_ott.load_config(None if self._config is None else os.fspath(self._config)))
        config["run_dir"] = config.get("run_dir") or os.environ.get("OTT_RUN_DIR") or f"ott_runs/{self._name}"
        stopwatch = dict(config.get("stopwatch", {"num_warmup_iters": _WARMUP_ITERATIONS}))
        stopwatch["collective_measurements"] = [*stopwatch.get("collective_measurements", []), "dist.*"]
        stopwatch["sampled_measurements"] = [*stopwatch.get("sampled_measurements", []), _modules.SAMPLED]
        config["stopwatch"] = stopwatch
        config.setdefault("hang", {"after_seconds": _HANG_SECONDS})
        if "cross_check" not in config and world_size > 1 and root is not None:
            check = self._default_check(root, world_size)
            if check is not None:
                config["cross_check"] = check
        return config

    def _default_check(self, root: torch.nn.Module, world_size: int) -> Optional[Dict[str, Any]]:
        """What is sure to be alike on all ranks, and what is sure not to be."""
        ddp = _hooks.find_ddp(root)
        model = _hooks.unwrap(root)
        replicated = ["state.*"]
        if ddp is not None and len(group_ranks(ddp.process_group)) == world_size:
            replicated.append("parameters.*")
        elif not _is_sharded_over_all(model, world_size):
            self.say(
                "replicas are not checked, as this model is neither in DistributedDataParallel nor sharded over all ranks: say "
                "what they share by cross_check in a --config"
            )
            return None
        return {"iterations": {"first": True, "every": _CHECK_EVERY}, "replicated": replicated, "distinct": ["data.*"]}

    @_guarded
    def finish(self) -> None:
        """Ends the last iteration, writes and prints what was measured. Collective over the ranks."""
        if not self.is_on():
            return
        self._recover()
        if self._stepped:
            self._finish_iteration()
        self._end_part()
        self.operations.end()
        assert self._run is not None
        self._run.finish()
        self.say(f"`ott report {self._run.run_dir}` tells more")

    def take_hooks_back(self) -> None:
        self._patches.remove()

    def close(self) -> None:
        """Takes everything back; the run directory stays."""
        self.take_hooks_back()
        if self._run is not None and os.getpid() == self._process:
            self.operations.end()
            self._end_part()
            self._run.close()
            self._run = None

    # Parts of an iteration. One is open at a time; what is called inside of it is part of it.

    def _begin(self, name: str) -> bool:
        if not self.measures_this_thread():
            return False
        if self._part is not None:
            # What a closure of step() does has names of its own, as in Lightning all of a training step does.
            if not self._part_is_gap and not self._part_is_step:
                return False
            self._end_part()
        self._part = _ott.Scope(name)
        self._part.__enter__()
        self.operations.phase = name
        return True

    def _end_part(self) -> None:
        self._modules.end()
        part, self._part, self._part_is_gap, self._part_is_step = self._part, None, False, False
        self.operations.phase = ""
        if part is not None:
            part.__exit__(None, None, None)

    def _begin_gap(self) -> None:
        """Counts what comes before a forward pass as data, whatever it is."""
        if self._before_forward and self._begin(f"data before {self._forward_line or 'the first forward pass'}"):
            self._part_is_gap = True

    def _begin_optimizer(self) -> None:
        if self._begin("optimizer"):
            self._part_is_step = True

    def _end(self) -> None:
        self._end_part()
        if self._in_step > 0:
            self._begin_optimizer()
        else:
            self._begin_gap()

    def _measure(self, name: str, original: Any, *args: Any, **kwargs: Any) -> Any:
        began = self._begin(name)
        try:
            return original(*args, **kwargs)
        finally:
            if began:
                self._end()

    def _recover(self) -> None:
        """Ends a forward pass that raised where the version at hand does not tell of that."""
        if self._forward_end is not None and threading.get_ident() == self._thread:
            self._after_module(None, None, None)

    # Loaders.

    def _start_loader(self, original: Any, loader: Any) -> Any:
        return self._measure(self._name_of_data(getattr(loader, "dataset", None)), original, loader)

    def _next_batch(self, original: Any, iterator: Any) -> Any:
        if not self.measures_this_thread():
            return original(iterator)
        self._recover()
        # By identity: samplers may share a dataset.
        loaded = getattr(iterator, "_index_sampler", iterator)
        evaluates = loaded in self._evaluation_loaders
        if not evaluates:
            self._end_pending_iteration()
            self._before_forward = True
        self._loaded_last = loaded
        name = "evaluation" if evaluates else self._name_of_data(getattr(iterator, "_dataset", None))
        self._batch = self._measure(name, original, iterator)
        return self._batch

    def _name_of_data(self, dataset: Any) -> str:
        """The measurement of a loader: its dataset, and where that is written, or else the line that waits for it."""
        # Inside of PyTorch's own, such as Subset.
        while type(dataset).__module__.startswith("torch.") and hasattr(dataset, "dataset"):
            dataset = dataset.dataset
        kind = type(dataset)
        if kind not in self._dataset_names:
            read = (getattr(kind, name, None) for name in ("__getitems__", "__getitem__", "__iter__"))
            place = next(filter(None, map(_hooks.place_of, filter(None, read))), "") or _hooks.place_of_caller()
            self._dataset_names[kind] = f"data of {kind.__name__}, {place}".rstrip(", ")
        return self._dataset_names[kind]

    # Modules: the outermost one's forward pass. Within it no module is watched.

    def _before_module(self, module: Any, args: Any) -> None:
        if _hooks.is_compiling():
            return
        self._begin_forward(module, args, _hooks.keyword_arguments(2))

    @_guarded
    def _begin_forward(self, module: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        trains = torch.is_grad_enabled()
        if self._run is None and trains and any(p.requires_grad for p in module.parameters()):
            self.start(module)
        if not self.measures_this_thread():
            return
        if trains and not self._in_step:
            self._end_pending_iteration()
        if not self._begin("forward" if trains else "evaluation"):
            return
        if trains:
            self._before_forward = False
            self._loaded_last = None
            self._forward_line = self._forward_line or _hooks.place_of_caller()
            self._begin_training_forward(module, args, kwargs)
            self._look_into_modules()
        elif self._loaded_last is not None:
            self._evaluation_loaders.add(self._loaded_last)
        self._unwatch_modules()
        always = {"always_call": True} if _hooks.has_always_call() else {}
        self._forward_end = module.register_forward_hook(self._after_module, **always)

    def _after_module(self, module: Any, args: Any, output: Any) -> None:
        handle, self._forward_end = self._forward_end, None
        if handle is not None:
            handle.remove()
            self._watch_modules()
            self._end()

    def _begin_training_forward(self, module: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        self.models.add_model(module)
        self.operations.name_models()
        ddp = _hooks.find_ddp(module)
        if ddp is not None:
            self.collectives.attach(ddp)
        inputs = list(_hooks.tensors_in([args, kwargs])) or list(_hooks.tensors_in(self._batch))
        self.operations.add("batch", "load", "", [], inputs)
        if not self.dumper.active:
            return
        with self.operations.paused():
            if inputs:
                self._add(f"data.batch.{self._micro_step}", digest(*inputs))
            if self._micro_step == 0:
                training, requires_grad = self.models.flags()
                self._add("state.training", training)
                self._add("state.requires_grad", requires_grad)
                self._add("rng", rng_digests())

    def _look_into_modules(self) -> None:
        assert self._run is not None
        iteration = self._run.iteration
        measures = iteration >= _WARMUP_ITERATIONS and _modules.is_selected(iteration)
        takes = self._activations is not None and self.dumper.active
        if not measures and not takes:
            return
        seen = self._modules.begin(self.measures_this_thread, measures, self._take_activation if takes else None)
        if takes and not seen:
            self.say("activations are not dumped: torch.compile() shows no modules")

    def _take_activation(self, name: str, output: Any) -> None:
        if fnmatch.fnmatchcase(name, self._activations or ""):
            count = self._num_activations[name]
            self._num_activations[name] += 1
            tensors = list(_hooks.tensors_in(output))
            self._add(f"activations.{name}.{count}", tensors[0] if len(tensors) == 1 else dict(enumerate(tensors)))

    # Backward passes.

    def _backward(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.measures_this_thread():
            return original(*args, **kwargs)
        self._recover()
        began = self._begin("backward")
        if began:
            self._before_forward = False
            self._add_loss(args, kwargs)
            self._micro_step += 1
        try:
            return original(*args, **kwargs)
        finally:
            if began:
                if self.collectives.end_reductions():
                    for name, parameter in self.models.parameters().items():
                        if parameter.grad is not None:
                            self.operations.add("reduce_gradient", "collective", name, [], [parameter.grad])
                self._end()
                if self._closure_of is not None:
                    self._begin_update()

    @_guarded
    def _add_loss(self, args: Any, kwargs: Any) -> None:
        if self.dumper.active:
            losses = list(_hooks.tensors_in(args[0] if args else kwargs.get("tensors")))
            if len(losses) == 1:
                self._add(f"loss.{self._micro_step}", losses[0])

    def _clip(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        norm = self._measure("clipping", original, *args, **kwargs)
        if self.measures_this_thread() and isinstance(norm, torch.Tensor) and self.dumper.active:
            self._add_norm(norm)
        return norm

    @_guarded
    def _add_norm(self, norm: torch.Tensor) -> None:
        # A sharded one is added up only by a collective, which is not for an observer to begin.
        if not _hooks.is_sharded(norm):
            self._norms.append(norm.detach().clone())

    # Optimizers.

    def _step(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        self._before_step(optimizer, args, kwargs)
        try:
            return original(optimizer, *args, **kwargs)
        finally:
            self._after_step(optimizer, args, kwargs)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _hooks.is_compiling():
            # PyTorch gives the optimizer among the arguments.
            has_closure = any(callable(item) and item is not optimizer for item in (*args, kwargs.get("closure")))
            self._begin_step(optimizer, has_closure)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _hooks.is_compiling():
            self._end_step(optimizer)

    @_guarded
    def _begin_step(self, optimizer: Any, has_closure: bool) -> None:
        if self._run is None:
            self.start(None)
        if not self.measures_this_thread():
            return
        self._recover()
        self.models.add_optimizer(optimizer)
        if self._in_step == 0:
            self._say_unused_checkpoint()
            self._before_forward = False
            self._closure_of = optimizer
            self._begin_optimizer()
            if not has_closure:
                self._begin_update()
        self._in_step += 1

    @_guarded
    def _begin_update(self) -> None:
        """The gradients are there: in a step with a closure, after its first backward pass."""
        optimizer, self._closure_of = self._closure_of, None
        if self.dumper.active:
            self._add("grads", self.models.gradients(optimizer))
        if self.operations.is_on:
            with self.operations.paused():
                parameters, state = self.models.updated(optimizer), self.models.optimizer_state()
            self.operations.begin_updates(type(optimizer).__name__, parameters, state)

    @_guarded
    def _end_step(self, optimizer: Any) -> None:
        if not self.measures_this_thread() or self._in_step == 0:
            return
        self._in_step -= 1
        if self._in_step > 0:
            return
        self.operations.end_updates()
        self._closure_of = None
        self._end_part()
        self._end_iteration_after(optimizer)

    def _scaler_step(self, original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        steps = self._num_steps
        result = original(scaler, optimizer, *args, **kwargs)
        if self.measures_this_thread() and self._num_steps == steps:
            self._end_skipped_step(optimizer)
        return result

    @_guarded
    def _end_skipped_step(self, optimizer: Any) -> None:
        """Where gradients are infinite, a scaler leaves the step out, and the iteration ends all the same."""
        self.models.add_optimizer(optimizer)
        self._end_iteration_after(optimizer)

    def _end_iteration_after(self, optimizer: Any) -> None:
        self._num_steps += 1
        again = any(known is optimizer for known in self._stepped)
        self._stepped.append(optimizer)
        last = self._last_optimizer() if self._last_optimizer is not None else None
        if last is optimizer or (last is not None and again):
            self._finish_iteration()

    def _end_pending_iteration(self) -> None:
        """The first iteration, of which only the next one's beginning tells which step was its last."""
        if self._stepped and self._last_optimizer is None and self._in_step == 0:
            self._finish_iteration()

    def _finish_iteration(self) -> None:
        self._last_optimizer = weakref.ref(self._stepped[-1])
        self._end_part()
        self.operations.end()
        self._learning_rates.update(repr(self.models.learning_rates()).encode())
        if self.dumper.active:
            self._add_state()
        self._stepped = []
        self._norms = []
        self._num_activations.clear()
        self._micro_step = 0
        self._batch = None
        assert self._run is not None
        try:
            self._run.finish_iter()
        except AbortedError:
            raise
        except Error as error:
            self.say(str(error))
        self._before_forward = True
        self._log_operations()
        self._begin_gap()

    def _log_operations(self) -> None:
        if _ott.logs_operations() and not self.operations.is_on:
            self.operations.begin()

    # On a thread of the watchdog.
    def _keep_stacks(self, verdict: Dict[str, Any]) -> None:
        assert self._run is not None
        rank = self._run.ranks.rank
        texts = write_stacks(os.path.join(self._run.run_dir, f"rank_{rank:05d}", "stacks.txt"))
        if rank in verdict.get("culprits", []):
            print(f"ott: rank {rank} stands here, {texts[0]}", file=sys.stderr, flush=True)

    # Tensors.

    def _add(self, path: str, data: Any) -> None:
        with self.operations.paused():
            data = _plain(data)
            if not isinstance(data, dict) or data:
                self.dumper.add(path, data, "binary")

    def _add_state(self) -> None:
        # First what may be the cause of the rest: of what differs, a verdict names the first.
        counts = {"steps": self._num_steps, "micro_steps": self._micro_step, "reductions": self.collectives.num_reductions}
        self._add("state.counts", {name: torch.tensor(count) for name, count in counts.items()})
        self._add("state.options", self.models.options())
        self._add("state.learning_rates_so_far", torch.tensor(list(self._learning_rates.digest()), dtype=torch.uint8))
        self._add("state.gradient_norm_at_clipping", {str(i): norm for i, norm in enumerate(self._norms)})
        self._add("parameters", self.models.parameters())
        self._add("buffers", self.models.buffers())
        self._add("optimizer", self.models.optimizer_state())

    @_guarded
    def add_local_gradients(self, parameters: Any, gradients: Any) -> None:
        """As this rank has computed them, before they are reduced."""
        self._add("local_grads", {self.models.name_of(p): g for p, g in zip(parameters, gradients)})

    def _offer_parameters(self) -> None:
        for name, parameter in self.models.parameters().items():
            held = _hooks.local(parameter).detach()
            if held.is_contiguous() and held.device.type == "cpu":
                _ott.offer(f"parameters.{name}", held)

    # Checkpoints.

    def _checkpoint(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        return self._measure("checkpoint", original, *args, **kwargs)

    def _load(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        result = self._measure("checkpoint", original, *args, **kwargs)
        if os.getpid() == self._process and isinstance(result, dict) and self._num_steps == 0:
            source = args[0] if args else kwargs.get("f")
            for key, value in result.items():
                if isinstance(value, dict) and value.get("state") and "param_groups" in value:
                    self._unused_checkpoint = f"{source if isinstance(source, (str, os.PathLike)) else 'a checkpoint'} has an optimizer's state in {key!r}"
        return result

    def _load_optimizer(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._unused_checkpoint = None
        return original(*args, **kwargs)

    def _say_unused_checkpoint(self) -> None:
        if self._unused_checkpoint is not None and self._num_steps == 0:
            self.say(f"{self._unused_checkpoint}, which no optimizer loaded before the first step: momenta begin at zero")
        self._unused_checkpoint = None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return _hooks.local(value).detach() if isinstance(value, torch.Tensor) else value


def _is_sharded_over_all(model: torch.nn.Module, world_size: int) -> bool:
    """Whether the parameters are FSDP2's, on a mesh of one dimension that has all ranks."""
    meshes = [p.device_mesh for p in model.parameters() if _hooks.is_sharded(p)]
    return bool(meshes) and all(mesh.ndim == 1 and mesh.size() == world_size for mesh in meshes)


class SpawnedRank:
    """What torch.multiprocessing starts instead of a function: the function, observed."""

    def __init__(self, fn: Any, *observer: Any):
        self._fn = fn
        self._observer = observer

    def __call__(self, *args: Any) -> Any:
        from . import finish, renew

        renew(*self._observer)
        result = self._fn(*args)
        finish()
        return result


def _rank() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


def _address() -> str:
    return os.environ.get("MASTER_ADDR") or "127.0.0.1"


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]
