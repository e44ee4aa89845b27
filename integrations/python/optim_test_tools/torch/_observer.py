"""Observes a training by its calls of PyTorch: iterations, their parts, and the tensors that they make."""

from __future__ import annotations

import json
import os
import sys
import warnings
from threading import get_ident
from typing import Any, Dict, List, Optional

import torch

from .. import _ott
from .._errors import AbortedError, Error
from .._run import TrainingRun
from .._stopwatch import Stopwatch
from . import _hooks, _job, _modules
from ._checkpoints import Checkpoints
from ._collectives import Collectives
from ._loaders import Loaders
from ._operations import Operations
from ._parts import Parts
from ._sound import Sound
from ._sound_training import parameters_of
from ._spawn import SpawnedRank
from ._stacks import write as write_stacks
from ._state import Models
from ._step_hooks import StepHooks
from ._steps import Steps
from ._tensors import Tensors
from ._traces import Traces


class Observer:
    """Observes the training of this process from install() to finish().

    Steps tells what an iteration is. Its parts are measurements: "data of Dataset, train.py:40" in loaders, "data before
    train.py:120" from an iteration's end to its first forward pass, "forward", "backward", "clipping", "optimizer", "evaluation"
    (forward passes without gradients, and the loaders that feed them), "checkpoint". Inside of "forward" are modules: "module
    h.2.mlp, train.py:288".
    """

    def __init__(self, config: _job.Config, name: str, activations: Optional[str] = None):
        self._config = config
        self._activations = activations
        self._name = name
        self._process = os.getpid()
        self._directory = os.getcwd()  # in which the run lies, though the program changes to another one
        self._thread: Optional[int] = None
        self._patches = _hooks.Patches(self.fail)
        self._step_hooks = StepHooks(self._patches, self._begin_step, self._end_step)
        self._said: List[str] = []
        self._run: Optional[TrainingRun] = None
        self._failed = False
        self._started_ranks = False
        self._is_on = False
        self._cross_checks = False
        self.stopwatch = Stopwatch()
        self.models = Models()
        self.collectives = Collectives(self)
        self.operations = Operations(self.models, self.fail)
        self.tensors = Tensors(self.models, self.operations, activations)
        self._modules = _modules.Modules(self.models, self.fail)
        self._parts = Parts(self._modules, self.operations)
        self._loaders = Loaders()
        self._checkpoints = Checkpoints(self)
        self._traces = Traces()
        self.sound = Sound(self.models, self.collectives, self.operations.paused)
        self._forward_line = ""
        self._gap = "data before the first forward pass"
        self._module_hook: Optional[Any] = None
        self._forward_end: Optional[Any] = None
        self._before_forward = True
        self._batch: Any = None
        self._steps = Steps()
        self._in_step = 0
        self._step_frame: Any = None  # of the call of the outermost step
        # The optimizer whose step began and whose closure has no gradients yet.
        self._closure_of: Optional[Any] = None
        self._micro_step = 0
        # Whether all passes since the last backward one may be of this rank alone; None: there was none.
        self._passes_are_own: Optional[bool] = None
        self.takes_local_gradients = False

    # Questions that others ask.

    def is_on(self) -> bool:
        return self._is_on

    def measures_this_thread(self) -> bool:
        return self._is_on and get_ident() == self._thread

    def is_before_first_step(self) -> bool:
        """Returns False in forked processes, which take no step."""
        return self._steps.num == 0 and os.getpid() == self._process

    def say(self, text: str) -> None:
        """Once for each text, on rank 0."""
        if text in self._said or os.getpid() != self._process:
            return
        self._said.append(text)
        if _job.rank() == 0:
            print(f"ott: {text}", file=sys.stderr, flush=True)

    def fail(self, error: Exception) -> None:
        self._is_on = False
        self.sound.end_forward()
        if not self._failed:
            self._failed = True
            print(f"ott: the training is no longer observed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    # Hooks into PyTorch.

    def install(self) -> None:
        import torch.utils.data

        # The hook is called once, for what torch.compile() returned, as within it no module is watched.
        warnings.filterwarnings("ignore", message=".*torch.compile.module.* when there are global hooks")
        patches = self._patches
        self._watch_modules()
        patches.add(self._unwatch_modules)
        patches.wrap(torch.autograd, "backward", self._backward)
        self._step_hooks.install()
        patches.wrap(torch.optim.Optimizer, "__init__", self._make_optimizer)
        patches.wrap(torch, "compile", self._compile)
        clip = sys.modules["torch.nn.utils.clip_grad"]
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            patches.wrap(clip, name, self._clip, also=(torch.nn.utils,))
        patches.wrap(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", self._next_batch)
        patches.wrap(torch.utils.data.DataLoader, "__iter__", self._start_loader)
        self._checkpoints.install(patches)
        self._traces.install(patches)
        for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
            scaler = getattr(owner, "GradScaler", None)
            if scaler is not None and "step" in vars(scaler):
                patches.wrap(scaler, "step", self._scaler_step)
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available():
            patches.wrap(distributed, "init_process_group", self._init_processes, also=(distributed.distributed_c10d,))
        self._install_distributed()
        self.sound.install(patches)
        patches.wrap(sys.modules["torch.multiprocessing.spawn"], "start_processes", self._start_processes, also=(torch.multiprocessing,))

    def _install_distributed(self) -> None:
        """Hooks into what a program may have imported by the time at which its ranks found together."""
        self.collectives.install(self._patches)
        self._checkpoints.install_distributed(self._patches)
        # A stage waits for the one before: all would wait where the first forward pass began the run.
        schedules = sys.modules.get("torch.distributed.pipelining.schedules")
        if schedules is not None:
            for name in ("PipelineScheduleSingle", "PipelineScheduleMulti", "_PipelineScheduleRuntime"):
                if hasattr(schedules, name) and "step" in vars(getattr(schedules, name)):
                    self._patches.wrap(getattr(schedules, name), "step", self._step_pipeline)

    def _init_processes(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        self._install_distributed()
        _job.announce()
        return result

    def _step_pipeline(self, original: Any, schedule: Any, *args: Any, **kwargs: Any) -> Any:
        self.start(None, schedule)
        return original(schedule, *args, **kwargs)

    def _start_processes(self, original: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        self._started_ranks = True
        return original(SpawnedRank(fn, self._config, self._name, self._activations), *args, **kwargs)

    def begin_joins(self) -> None:
        """The program lets ranks have unlike numbers of batches. Collective over them."""
        if self._is_on and self._cross_checks:
            self.fail(Error("replicas are checked since before the first Join, under which ranks have iterations of their own numbers"))

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
        self._step_hooks.watch(type(optimizer))

    def _make_optimizer(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(optimizer, *args, **kwargs)
        self.sound.makes_optimizer(optimizer)
        self._step_hooks.watch(type(optimizer))
        return result

    def _compile(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self.sound.compiles = True  # what it traces must have no hooks of ours
        result = original(*args, **kwargs)
        _hooks.keep_from_being_compiled()
        self._step_hooks.watch_all()
        return result

    # Its beginning and its end.

    def start(self, root: Optional[torch.nn.Module], schedule: Any = None) -> None:
        """Lets the ranks find together, with the first forward pass or step of an optimizer. Collective over them.

        schedule: of a pipeline, if it is about to begin; one that has begun is found.
        """
        if self._run is not None or self._failed or os.getpid() != self._process:
            return
        self._thread = get_ident()
        self._install_distributed()
        try:
            job, replicas = _job.find_ranks(root)
            if root is not None:
                self.models.add_root(root)
            pipeline = _job.ranks_of_stages(schedule or _job.schedule_that_calls())
            config = _job.make_config(self._config, self._name, root, job.size, self, pipeline, replicas)
            self._run = TrainingRun(config, job, self._directory)
            self._run.on_hang(self._keep_stacks)
            self._traces.begin(self._run.run_dir, job.rank)
            self.sound.start(self._run.run_dir, job, config, self.say)
        except Exception as error:  # noqa: BLE001  the training goes on
            self.fail(error)
            return
        self._is_on = True
        self._cross_checks = "cross_check" in config
        # A copy of each gradient, which checks do not need.
        self.takes_local_gradients = "dump" in config or "local_grads" in json.dumps(config.get("cross_check", {}))
        self.tensors.offer_parameters()
        self._log_operations()
        if root is None:  # else its forward pass, or a step, begins now
            self._begin_gap()

    @_hooks.guarded
    def finish(self) -> None:
        """Ends the last iteration, writes and prints what was measured. Collective over the ranks."""
        if self._run is None and not self._failed and not self._started_ranks:
            why = "no model ran with gradients in this process, and no torch.optim.Optimizer stepped; a Process that it starts is not observed"
            self.say(f"nothing was observed: {'torch.compile() hides all of the training' if _modules.compiles() else why}")
        if not self.is_on():
            return
        self._recover()
        if self._steps.any():
            self._finish_iteration()
        self._parts.end()
        self.operations.end()
        assert self._run is not None
        self.sound.finish()
        self._run.finish()
        self._say_what_is_unsound()
        if self._steps.num == 0:
            ends = "they end with step() of a torch.optim.Optimizer, which torch.compile() hides"
            self.say(f"no iteration was seen: {ends}; optimizers of fastai and Keras are none")
        self.say(f"`ott report {self._shown(self._run.run_dir)}` tells more")

    @_hooks.guarded
    def keep(self) -> None:
        """Writes what this rank saw of the rules so far, as it failed."""
        if self.is_on():
            self.sound.keep()

    def _say_what_is_unsound(self) -> None:
        """Prints what the records of all ranks add up to, which are written by now."""
        assert self._run is not None
        if self._run.ranks.rank == 0:
            text = _ott.describe_unsound(self._run.run_dir)
            if text:
                print(f"ott: NOT SOUND\n{text}", end="", file=sys.stderr, flush=True)

    def _shown(self, path: str) -> str:
        """As seen from where the program was started."""
        relative = os.path.relpath(path, self._directory)
        return path if relative.startswith(os.pardir) else relative

    def forget(self) -> None:
        """In a forked process, which is no rank."""
        self._is_on = False

    def take_hooks_back(self) -> None:
        self._patches.remove()

    def close(self) -> None:
        """Takes everything back; the run directory stays."""
        self._is_on = False
        self._failed = True  # so that no hook that something kept, as schedules of PyTorch 1.13 do, begins another run
        self.take_hooks_back()
        if self._run is not None and os.getpid() == self._process:
            self.operations.end()
            self._parts.end()
            self._run.close()
            self._run = None

    # Parts of an iteration.

    def _begin(self, name: str, may_be_ended: bool = False) -> bool:
        return self.measures_this_thread() and self._parts.begin(name, may_be_ended)

    def _begin_gap(self) -> None:
        """Counts what comes before a forward pass as data, whatever it is."""
        if self._before_forward:
            self._begin(self._gap, may_be_ended=True)

    def _begin_step_part(self) -> None:
        self._begin("optimizer", may_be_ended=True)

    def _end(self) -> None:
        self._parts.end()
        if self._in_step > 0:
            self._begin_step_part()
        else:
            self._begin_gap()

    def measure(self, name: str, original: Any, *args: Any, **kwargs: Any) -> Any:
        began = self._begin(name)
        try:
            return original(*args, **kwargs)
        finally:
            if began:
                self._end()

    def _recover(self) -> None:
        """Ends a forward pass that raised where the version at hand does not tell of that, and a step that raised, of which none tells."""
        if get_ident() != self._thread:
            return
        if self._forward_end is not None:
            self._after_module(None, None, None)
        if self._in_step > 0 and not _hooks.is_running(self._step_frame):
            self._in_step, self._step_frame, self._closure_of = 0, None, None
            self.operations.end_updates()
            self._parts.end()

    # Loaders.

    def _start_loader(self, original: Any, loader: Any) -> Any:
        if self._run is None or self.measures_this_thread():
            self.sound.start_loader(loader)
        return self.measure(self._loaders.name_of(getattr(loader, "dataset", None)), original, loader)

    def _next_batch(self, original: Any, iterator: Any) -> Any:
        if not self.measures_this_thread():
            batch = original(iterator)
            if self._run is None:
                self._batch = batch
                self.sound.next_batch(batch, iterator)
            return batch
        self._recover()
        evaluates = self._loaders.next_is_for_evaluation(iterator)
        if not evaluates:
            self._end_pending_iteration()
            self._before_forward = True
        name = "evaluation" if evaluates else self._loaders.name_of(getattr(iterator, "_dataset", None))
        batch = self.measure(name, original, iterator)
        if not evaluates:
            self._batch = batch
            self.sound.next_batch(batch, iterator)
        return batch

    # Modules: the outermost one's forward pass. Within it no module is watched.

    def _before_module(self, module: Any, args: Any) -> None:
        # Modules of torch.jit.script take no hooks.
        if _hooks.is_compiling() or _hooks.is_transforming() or _hooks.is_tracing() or isinstance(module, torch.jit.ScriptModule):
            return
        self._begin_forward(module, args, _hooks.keyword_arguments(2))

    @_hooks.guarded
    def _begin_forward(self, module: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        # Within a model that is not observed, modules without parameters are seen by themselves.
        if any(map(_hooks.is_abstract, [next(module.parameters(), None), *_hooks.tensors_in([args, kwargs])])):
            return
        trains = torch.is_grad_enabled()
        if not trains and self._forward_end is None:
            self.sound.check_evaluated(module)
        if self._run is None and trains and any(p.requires_grad for p in module.parameters()):
            self.start(module)
        if not self.measures_this_thread():
            return
        self._recover()
        if trains and not self._in_step and not self._parts.is_open:  # else it recomputes for a backward pass that steps
            self._end_pending_iteration()
        if not self._begin("forward" if trains else "evaluation"):
            return
        self._loaders.feeds(training=trains)
        if trains:
            self._before_forward = False
            if not self._forward_line:
                self._forward_line = _hooks.place_of_caller()
                if self._forward_line:
                    # The stopwatch finds interned names fastest.
                    self._gap = sys.intern(f"data before {self._forward_line}")
            self._begin_training_forward(module, args, kwargs)
            self._look_into_modules()
        else:
            self.sound.begin_evaluation(module, [args, kwargs])
        self._unwatch_modules()
        self._forward_end = module.register_forward_hook(_hooks.ModuleHook(self._after_module), **_hooks.ALWAYS)

    @_hooks.guarded
    def _after_module(self, module: Any, args: Any, output: Any) -> None:
        handle, self._forward_end = self._forward_end, None
        if handle is not None:
            handle.remove()
            self.sound.end_forward()
            self._watch_modules()
            self._end()

    def _begin_training_forward(self, module: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        self.models.add_model(module)
        self._log_operations()  # unless the iteration before ended within a backward pass, it has begun
        self.operations.name_models()
        for ddp in self.models.ddps_of(module):
            self.collectives.attach(ddp)
        inputs = list(_hooks.tensors_in([args, kwargs]))
        if not any(map(_is_rich, inputs)):
            inputs = list(_hooks.tensors_in(self._batch)) or inputs
        # Samples of the rank's own are neither those of an evaluation with gradients, nor what a model outside of
        # DistributedDataParallel gets, nor a single number.
        is_replica = bool(self.models.ddps_of(module)) or not self.models.ddps()
        self._passes_are_own = self._passes_are_own is not False and not is_replica and self.models.is_apart(module.parameters())
        # Lightning leaves DistributedDataParallel itself in eval mode after an evaluation.
        has_samples = is_replica and _hooks.unwrap(module).training and any(map(_is_rich, inputs))
        self.operations.add("batch", "load", "", [], inputs)
        self.sound.begin_forward(module, inputs, has_samples)
        if self._micro_step == 0 and self.operations.is_on:
            self.operations.add_shards()
        if self.tensors.active:
            self.tensors.add_batch(self._micro_step, inputs, has_samples)

    def _look_into_modules(self) -> None:
        assert self._run is not None
        iteration = self._run.iteration
        measures = iteration >= _job.WARMUP_ITERATIONS and _modules.is_selected(iteration)
        takes = self.tensors.takes_activations
        if not measures and not takes:
            return
        seen = not self.sound.compiles and self._modules.begin(measures, self.tensors.add_activation if takes else None)
        if takes and not seen:
            self.say("activations are not dumped: torch.compile() shows no modules")

    # Backward passes.

    def _backward(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        loss = args[0] if args else kwargs.get("tensors")
        if not self.measures_this_thread() or _hooks.is_abstract(loss):
            return original(*args, **kwargs)
        self._recover()
        began = self._begin("backward")
        if began:
            self._before_forward = False
            if not self._passes_are_own:
                self._add_loss(loss)
                self._micro_step += 1
            self._passes_are_own = None
            self.sound.begin_backward(loss, kwargs.get("inputs") is not None)
            self.collectives.begin_backward()
        try:
            return original(*args, **kwargs)
        finally:
            self.operations.leave()
            if began:
                if self.collectives.end_reductions() and self.operations.is_on:
                    for name, parameter in self.models.parameters().items():
                        if parameter.grad is not None:
                            self.operations.add("reduce_gradient", "collective", name, [], [parameter.grad])
                self._end()
                self.sound.end_backward()
                if self._closure_of is not None:
                    self._begin_update(has_closure=True)

    @_hooks.guarded
    def _add_loss(self, loss: Any) -> None:
        if self.tensors.active:
            self.tensors.add_loss(self._micro_step, loss)

    def _clip(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        if self.measures_this_thread():
            args, kwargs = self.sound.clips(args, kwargs)
        norm = self.measure("clipping", original, *args, **kwargs)
        if self.measures_this_thread():
            self.sound.end_clip(norm)
        if self.measures_this_thread() and isinstance(norm, torch.Tensor) and self.tensors.active:
            self._add_norm(norm, args[0] if args else kwargs.get("parameters"))
        return norm

    @_hooks.guarded
    def _add_norm(self, norm: torch.Tensor, parameters: Any) -> None:
        self.tensors.add_norm(norm, parameters)

    # Optimizers.

    @_hooks.guarded
    def _begin_step(self, optimizer: Any, has_closure: bool, frame: Any) -> None:
        if self.collectives.has_joined or _hooks.is_abstract(next(parameters_of(optimizer), None)):
            return
        if self._run is None:
            self.start(self.models.ddp_of(optimizer))
        if self._steps.num == 0 and not self._parts.is_open:
            self._thread = get_ident()  # the one that trains; another one may have called a model first
        if not self.measures_this_thread():
            return
        self._recover()
        if self.models.add_optimizer(optimizer):
            self._steps.meet(optimizer)
        if self._in_step == 0:
            if (has_closure or not self._forward_line) and self._steps.has(optimizer):
                self._end_pending_iteration()  # no forward pass tells of its end
            self._checkpoints.begin_step()
            self.sound.begin_step(optimizer)
            self._before_forward = False
            self._step_frame = frame
            self._closure_of = optimizer
            self._begin_step_part()
            if not has_closure:
                self._begin_update(has_closure=False)
        self._in_step += 1

    @_hooks.guarded
    def _begin_update(self, has_closure: bool) -> None:
        """The gradients are there: in a step with a closure, after its first backward pass."""
        optimizer, self._closure_of = self._closure_of, None
        self.sound.begin_update(optimizer, has_closure)
        if self.tensors.active:
            self.tensors.add_gradients(optimizer)
        if self.operations.is_on:
            with self.operations.paused():
                parameters, state = self.models.updated(optimizer), self.models.optimizer_state()
            self.operations.begin_updates(type(optimizer).__name__, parameters, state)

    @_hooks.guarded
    def _end_step(self, optimizer: Any) -> None:
        if not self.measures_this_thread() or self._in_step == 0:
            return
        self._in_step -= 1
        if self._in_step > 0:
            return
        self.operations.end_updates()
        self._step_frame = self._closure_of = None
        self.sound.end_step(optimizer)
        if not self._parts.is_open:  # else it is a step within a backward pass, which goes on
            self._parts.end()
        self._end_iteration_after(optimizer)

    def _scaler_step(self, original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        steps = self._steps.num
        self.models.add_scaler(scaler)
        self.sound.begin_scaler_step(scaler, optimizer)
        try:
            result = original(scaler, optimizer, *args, **kwargs)
        finally:
            self.sound.end_scaler_step()
        if self.measures_this_thread() and self._steps.num == steps:
            self._end_skipped_step(optimizer)
        return result

    @_hooks.guarded
    def _end_skipped_step(self, optimizer: Any) -> None:
        """Ends the iteration also if gradients are infinite and a scaler leaves the step out."""
        self.models.add_optimizer(optimizer)
        self.sound.skip_step(optimizer)
        self._end_iteration_after(optimizer)

    def _end_iteration_after(self, optimizer: Any) -> None:
        if self._steps.add(optimizer, is_own=self.models.may_be_of_one_rank(optimizer)):
            self._finish_iteration()

    def _end_pending_iteration(self) -> None:
        if self._in_step == 0 and self._steps.may_be_over():
            self._finish_iteration()

    def _finish_iteration(self) -> None:
        self._parts.end()
        self.operations.end()
        self.tensors.finish_iteration(
            {"steps": self._steps.num - self._steps.num_own, "micro_steps": self._micro_step, "reductions": self.collectives.num_reductions}
        )
        self._steps.finish_iteration()
        self._micro_step = 0
        self._batch = None
        assert self._run is not None
        self.sound.finish_iteration(self._run.iteration)
        self.models.finish_iteration()
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
        texts = write_stacks(os.path.join(self._run.run_dir, f"rank_{rank:05d}", "stacks.txt"), rank)
        if rank in verdict.get("culprits", []):
            print(f"ott: rank {rank} stands here, {texts[0]}", file=sys.stderr, flush=True)

    @_hooks.guarded
    def add_local_gradients(self, parameters: Any, gradients: Any) -> None:
        self.tensors.add_local_gradients(parameters, gradients)


def _is_rich(tensor: torch.Tensor) -> bool:
    return tensor.layout != torch.strided or tensor.numel() > 1
