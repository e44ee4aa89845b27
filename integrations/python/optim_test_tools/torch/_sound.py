"""Rules that every training step keeps, looked at as the program runs: what is wrong without any reference.

Each rule is in _sound_record.RULES. Where one cannot be looked at, that is recorded, and it is not counted as kept. Identities,
modes and versions of tensors are looked at in each iteration; values of parameters, gradients and state so often that it takes one
per cent of the time.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import os
import sys
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch import nn

from . import _hooks, _modules
from ._collectives import group_ranks
from ._sound_record import RULES, Record

_LOOKED_INTO_ITERATIONS = 2
_SHARE_OF_VALUES = 0.01
_SECONDS_OF_VALUES = 0.0005  # which small models may take in each iteration
_MAX_VALUES_EVERY = 1 << 12
_SAMPLE = 64
_LINEAR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout) if hasattr(nn, "Dropout1d") else (nn.Dropout,)


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """An error ends the checks, and neither the observation nor the training."""

    @functools.wraps(method)
    def guarded(self: "Sound", *args: Any, **kwargs: Any) -> Any:
        if not self.is_on:
            return None
        begin = time.perf_counter()
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  whatever it is
            self._end_by(error)
            return None
        finally:
            self.seconds += time.perf_counter() - begin

    return guarded


class _Optimizer:
    """What is known of an optimizer."""

    def __init__(self, optimizer: Any):
        self.name = type(optimizer).__name__
        # Others may leave a step out, or write through .data.
        self.is_pytorch = type(optimizer).__module__.startswith("torch.optim.")
        self.num_steps = 0
        self.num_skipped = 0
        self.num_backwards = 0  # of the process, as it stepped last
        # Gradients that a step used and that were not cleared since: (parameter, identity, version).
        self.used: List[Tuple[torch.Tensor, int, int]] = []
        self.kept: List[str] = []
        self.sample: Optional[torch.Tensor] = None
        self.written: List[Tuple[torch.Tensor, int]] = []
        self.zeroed: Optional[Tuple[int, str]] = None
        self.trainable: Set[int] = set()
        # Parameters that were trainable, with a gradient, and their values before the step.
        self.frozen: List[Tuple[torch.Tensor, Optional[torch.Tensor]]] = []


class _Scaler:
    def __init__(self) -> None:
        self.has_scaled = False
        self.num_backwards = 0  # of the process, as it was updated last
        self.unscaled = _hooks.WeakIds()


class Sound:
    """Looks at one training. Called by the observer on the thread that trains, between start() and finish()."""

    def __init__(self, models: Any, collectives: Any):
        # Before start(), too: loaders begin and checkpoints are read before the first forward pass.
        self.is_on = True
        self.seconds = 0.0  # that the checks took
        self._models = models
        self._collectives = collectives
        self._record: Optional[Record] = None
        self._say: Callable[[str], None] = lambda text: None
        self._iteration = 0
        self._silenced: Set[str] = set()
        self._optimizers: "weakref.WeakKeyDictionary[Any, _Optimizer]" = weakref.WeakKeyDictionary()
        self._scalers: "weakref.WeakKeyDictionary[Any, _Scaler]" = weakref.WeakKeyDictionary()
        self._ddps: List["weakref.ref[Any]"] = []  # in order of making, which is the same on all ranks
        self._schedulers: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._in_scaler = False
        self._num_backwards = 0
        self._scaled_losses = _hooks.WeakIds()
        self._last_loss_was_scaled = False
        self._gradients_after_backward: List[Tuple[torch.Tensor, int, int]] = []
        self._clips: List[Tuple[Set[int], Any, float, str]] = []
        # Modules, and what they are made of.
        self._cached_modules: List[Tuple[str, nn.Module]] = []
        self._structure: Tuple[int, ...] = ()
        self._names: Dict[int, str] = {}
        self._by_name: Dict[str, int] = {}
        self._ties: List[Tuple[str, ...]] = []
        self._look_until = _LOOKED_INTO_ITERATIONS
        self._module_hook: Optional[Any] = None
        self._compiles = False
        self._calls: List[Tuple[Any, bool, Set[int], Set[int]]] = []
        self._storages: List[Any] = []
        self._ran: Dict[int, Tuple[Any, bool]] = {}
        self._had_gradient: Set[int] = set()
        self._without_gradient: Dict[int, Tuple[int, torch.Tensor]] = {}
        self._orphans: Dict[int, Tuple[int, torch.Tensor]] = {}
        self._held_by_others: Set[int] = set()
        self._forwards: Dict[int, Tuple[nn.Module, List[bool]]] = {}
        self._ddp_forwards = _hooks.WeakIds()
        self._reductions_before = 0
        self._num_collectives = 0
        self._collectives_before = 0
        self._optimizer_keys: Dict[Tuple[Any, ...], Tuple[Any, int, bool]] = {}
        self._has_peers = False
        # Of the ranks that are replicas; None: not known.
        self._group: Optional[List[int]] = None
        self._shares_parameters = False
        self._rolling: Dict[str, Any] = {}
        # By group: its ranks, how many calls, and a digest of them.
        self._collective_calls: Dict[str, Tuple[List[int], int, Any]] = {}
        self._norms: List[str] = []
        self._modes = ""
        # Whether losses and norms of this iteration are.
        self._is_finite = True
        self._values_every = 1
        self._num_slow_looks = 0
        self._found_nonfinite = False
        self._iteration_began = time.perf_counter()
        # Loaders and samplers.
        self._sampler_epochs: "weakref.WeakKeyDictionary[Any, Tuple[int, int, int]]" = weakref.WeakKeyDictionary()
        self._sampler_begins: List[Tuple[Any, int]] = []
        self._loader: Any = None
        self._num_batches = 0
        self._first_batches: List[str] = []
        self._passes = 0
        self._steps_at_pass = 0
        self._idle_schedulers: List[Tuple[str, str]] = []
        self._num_steps = 0
        self._num_schedule_steps = 0
        self._early_schedulers: "weakref.WeakKeyDictionary[Any, Dict[str, int]]" = weakref.WeakKeyDictionary()
        self._loaded_optimizers: List[Tuple[str, Dict[str, Any]]] = []
        self._loaded_schedulers: List[Dict[str, Any]] = []
        self._optimizer_was_loaded = False

    # Its beginning and its end.

    def install(self, patches: _hooks.Patches) -> None:
        patches.wrap(torch, "compile", self._compile)
        patches.wrap(torch.optim.Optimizer, "zero_grad", self._zero_optimizer)
        patches.wrap(nn.Module, "zero_grad", self._zero_module)
        schedulers = torch.optim.lr_scheduler
        base = getattr(schedulers, "LRScheduler", None) or schedulers._LRScheduler
        patches.wrap(base, "__init__", self._make_scheduler)
        patches.wrap(base, "step", self._step_scheduler)
        patches.wrap(base, "load_state_dict", self._load_scheduler)
        patches.wrap(sys.modules["torch.nn.parallel"].DistributedDataParallel, "__init__", self._make_ddp)
        sampler = sys.modules.get("torch.utils.data.distributed")
        if sampler is not None:
            patches.wrap(sampler.DistributedSampler, "__iter__", self._start_sampler)
        for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
            scaler = getattr(owner, "GradScaler", None)
            if scaler is not None and "scale" in vars(scaler):
                patches.wrap(scaler, "scale", self._scale)
                patches.wrap(scaler, "unscale_", self._unscale)
                patches.wrap(scaler, "update", self._update_scaler)

    def start(self, run_dir: str, ranks: Any, config: Dict[str, Any], say: Callable[[str], None]) -> None:
        """REQUIRES: this rank's folder is there."""
        settings = config.get("sound", {})
        self.is_on = bool(run_dir) and not settings.get("off")
        if not self.is_on:
            return
        self._silenced = set(settings.get("silence", []))
        self._say = say
        unknown = sorted(self._silenced - set(RULES))
        if unknown:
            say(f"sound.silence: there is no rule {', '.join(unknown)}")
        self._record = Record(os.path.join(run_dir, f"rank_{ranks.rank:05d}", "sound.json"))
        self._has_peers = ranks.size > 1
        if not hasattr(torch.Tensor, "untyped_storage"):
            self._record.not_checked("missing_gradient", f"PyTorch {torch.__version__} does not tell which tensors share memory")
        self._write()

    @_guarded
    def _write(self) -> None:
        assert self._record is not None
        self._record.write()

    @_guarded
    def finish(self) -> None:
        """Writes what there is; nothing is looked at afterwards."""
        assert self._record is not None
        self._unhook_modules()
        for name, seen in self._idle_schedulers:
            self._find("scheduler_not_stepped", [name], seen)
        if self._group is None and self._has_peers:
            for rule in RULES:
                if rule.endswith("_differ") and rule != "collectives_differ" or rule == "same_data_on_ranks":
                    self._record.not_checked(rule, "it is not known which ranks are replicas, as the model is neither in DistributedDataParallel nor sharded over all ranks")
        if self._values_every > 1:
            for rule in ("nonfinite_gradient", "replicas_differ"):
                self._record.not_checked(rule, f"values were looked at in every {self._values_every}th iteration at the end")
        self._record.write()
        self.is_on = False

    def _end_by(self, error: Exception) -> None:
        self.is_on = False
        self._unhook_modules()
        if self._record is not None:
            self._record.end_all(f"the checks ended in iteration {self._iteration}: {type(error).__name__}: {error}")
            try:
                self._record.write()
            except OSError:
                pass
        self._say(f"steps are no longer checked: {type(error).__name__}: {error}")

    def _find(self, rule: str, names: Sequence[str], seen: str, place: str = "", iteration: Optional[int] = None) -> None:
        iteration = self._iteration if iteration is None else iteration
        if self._record is not None and self._record.find(rule, iteration, names, seen, place) and rule not in self._silenced:
            what = ", ".join([*names[:4], *([place] if place else [])])
            self._say(f"iteration {iteration}, {rule}: {what + ': ' if what else ''}{seen}")

    def _check(self, rule: str) -> None:
        if self._record is not None:
            self._record.check(rule)

    def _name_of(self, parameter: torch.Tensor) -> str:
        return self._names.get(id(parameter)) or self._models.name_of(parameter)

    def _state_of(self, optimizer: Any) -> _Optimizer:
        state = self._optimizers.get(optimizer)
        if state is None:
            state = self._optimizers[optimizer] = _Optimizer(optimizer)
        return state

    # Forward passes.

    @_guarded
    def begin_forward(self, module: Any, inputs: Sequence[torch.Tensor]) -> None:
        """A forward pass with gradients, of the outermost module."""
        root = _hooks.unwrap(module)
        if not self._cached_modules or not any(known is root for _, known in self._cached_modules):
            self._read_structure()
        self._forwards.setdefault(id(root), (root, []))[1].append(root.training)
        ddp = _hooks.find_ddp(module)
        if ddp is not None:
            self._ddp_forwards.add(ddp)
        self._find_group(root, ddp)
        if not self._modes:
            self._modes = self._describe_modes()
            if self._group is not None and inputs:
                self._fact("same_data_on_ranks", "the batch", _sample_digest(inputs), is_distinct=True)
        self._compiles = self._compiles or _modules.compiles() or any(map(_is_compiled, module.modules()))
        if self._iteration < self._look_until and not self._compiles:
            self._unhook_modules()
            self._module_hook = torch.nn.modules.module.register_module_forward_hook(self._saw_module)

    def _compile(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._compiles = True  # what it traces must have no hooks of ours
        return original(*args, **kwargs)

    def end_forward(self) -> None:
        self._unhook_modules()

    def _unhook_modules(self) -> None:
        hook, self._module_hook = self._module_hook, None
        if hook is not None:
            hook.remove()

    def _find_group(self, root: nn.Module, ddp: Any) -> None:
        if self._group is not None:
            return
        if ddp is not None:
            self._group, self._shares_parameters = group_ranks(ddp.process_group), True
        else:
            meshes = [p.device_mesh for p in root.parameters() if _hooks.is_sharded(p)]
            if meshes and all(mesh.ndim == 1 and mesh == meshes[0] for mesh in meshes) and all(
                any(type(placement).__name__ != "Replicate" for placement in p.placements)
                for p in root.parameters()
                if _hooks.is_sharded(p)
            ) and hasattr(root, "set_requires_gradient_sync"):
                self._group = [int(rank) for rank in meshes[0].mesh.flatten().tolist()]
        if self._group is not None and len(self._group) < 2:
            self._group = None

    def _describe_modes(self) -> str:
        modes = [module.training for _, module in self._cached_modules]
        wants = [p.requires_grad for _, module in self._cached_modules for p in module._parameters.values() if p is not None]
        return f"{sum(modes)} of {len(modes)} modules train, {sum(wants)} of {len(wants)} parameters #{_hash(repr((modes, wants)))}"

    @_guarded
    def _saw_module(self, module: Any, args: Any, output: Any) -> None:
        if _hooks.is_compiling():
            return
        grad = torch.is_grad_enabled()
        for parameter in module._parameters.values():
            if parameter is not None:
                ran = self._ran.get(id(parameter))
                self._ran[id(parameter)] = (parameter, grad or (ran is not None and ran[1]))
                if id(parameter) not in self._names:
                    self._names[id(parameter)] = f"a parameter of {type(module).__name__}, which is part of no model"
        self._calls.append((module, grad, self._storages_of(args), self._storages_of(output)))
        if type(module) in _LINEAR and isinstance(output, torch.Tensor):
            self._check_dtype(module, args, output)

    def _storages_of(self, data: Any) -> Set[int]:
        found = set()
        for tensor in _hooks.tensors_in(data):
            tensor = _hooks.local(tensor)
            if not hasattr(tensor, "untyped_storage") or tensor.layout != torch.strided:
                continue
            storage = tensor.untyped_storage()
            # While it is referred to weakly, no other storage gets its identity.
            self._storages.append(sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(storage))
            found.add(storage._cdata)
        return found

    def _check_dtype(self, module: Any, args: Any, output: torch.Tensor) -> None:
        kind = output.device.type
        if not hasattr(torch, "get_autocast_dtype") or not torch.is_autocast_enabled(kind):
            return
        given = next(_hooks.tensors_in(args), None)
        if given is None or not given.is_floating_point() or given.dtype == torch.float64 or module._forward_hooks:
            return
        self._check("autocast_dtype")
        expected = torch.get_autocast_dtype(kind)
        if output.dtype != expected:
            self._find("autocast_dtype", [self._module_name(module)], f"returns {output.dtype} instead of {expected}")

    def _module_name(self, module: Any) -> str:
        return next((name for name, known in self._cached_modules if known is module and name), type(module).__name__)

    # Backward passes.

    @_guarded
    def begin_backward(self, losses: Any) -> None:
        loss = next(_hooks.tensors_in(losses), None)
        self._last_loss_was_scaled = loss is not None and loss in self._scaled_losses
        if loss is not None and loss.numel() == 1 and loss.device.type == "cpu":
            self._is_finite = self._is_finite and bool(torch.isfinite(loss.detach()).all())
        for state in self._optimizers.values():
            if state.used:
                self._check("gradients_not_zeroed")
                state.used = [used for used in state.used if used[0].grad is not None and _identity(used[0].grad) == used[1:]]
                state.kept = []
                for parameter, _, _ in state.used:
                    if len(state.kept) == 4:
                        break
                    if _is_nonzero(parameter.grad):
                        state.kept.append(self._name_of(parameter))
                if not state.kept:
                    state.used = []

    @_guarded
    def end_backward(self) -> None:
        self._num_backwards += 1
        for state in self._optimizers.values():
            # What was added to is still not cleared; what was replaced is.
            state.used = [(p, key, p.grad._version) for p, key, _ in state.used if p.grad is not None and id(p.grad) == key]
        self._gradients_after_backward = []
        if self._last_loss_was_scaled:
            for optimizer in self._optimizers:
                held = [p for p in _parameters_of(optimizer) if p.grad is not None]
                self._gradients_after_backward += [(p, *_identity(p.grad)) for p in held]
        if self._iteration < self._look_until:
            for parameter, _ in self._ran.values():
                if parameter.grad is not None:
                    self._had_gradient.add(id(parameter))

    # Gradients between the passes.

    def _zero_optimizer(self, original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        self._zeroes([optimizer])
        return original(optimizer, *args, **kwargs)

    def _zero_module(self, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_on:
            ids = {id(p) for p in module.parameters()}
            self._zeroes([o for o in list(self._optimizers) if any(id(p) in ids for p in _parameters_of(o))])
        return original(module, *args, **kwargs)

    @_guarded
    def _zeroes(self, optimizers: Sequence[Any]) -> None:
        for optimizer in optimizers:
            state = self._state_of(optimizer)
            is_fresh = self._num_backwards > state.num_backwards
            if is_fresh and any(p.grad is not None for p in _parameters_of(optimizer)):
                state.zeroed = (self._num_backwards, _hooks.place_of_caller())

    def clips(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Returns the arguments, with a list instead of a generator."""
        if not self.is_on:
            return args, kwargs
        given = args[0] if args else kwargs.get("parameters")
        was_used_up = inspect.isgenerator(given) and inspect.getgeneratorstate(given) == inspect.GEN_CLOSED
        if not isinstance(given, (list, tuple, torch.Tensor)) and given is not None:
            given = list(given)
            args, kwargs = ((given, *args[1:]), kwargs) if args else (args, {**kwargs, "parameters": given})
        self._begin_clip(given, args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value")), was_used_up)
        return args, kwargs

    @_guarded
    def _begin_clip(self, given: Any, limit: Any, was_used_up: bool) -> None:
        parameters = [given] if isinstance(given, torch.Tensor) else list(given or [])
        place = _hooks.place_of_caller()
        self._check("clipped_nothing")
        if was_used_up:
            self._find("clipped_nothing", [], "the generator of parameters was used up before", place)
        unscaled = [state.unscaled for state in self._scalers.values()]
        self._clips.append(({id(p) for p in parameters}, unscaled, float(limit) if limit is not None else 0.0, place))

    @_guarded
    def end_clip(self, norm: Any) -> None:
        if not isinstance(norm, torch.Tensor) or _hooks.is_sharded(norm) or not self._clips:
            return
        ids, _, limit, place = self._clips[-1]
        if norm.device.type == "cpu":
            self._is_finite = self._is_finite and bool(torch.isfinite(norm))
        if self._group is not None:
            self._norms.append(f"{float(norm):.9g}")
        holders = [o for o in self._optimizers if any(id(p) in ids for p in _parameters_of(o))]
        if not holders or norm.device.type != "cpu":
            return
        self._check("clipped_after_step")
        late = all(self._optimizers[o].num_steps > 0 and self._optimizers[o].num_backwards == self._num_backwards for o in holders)
        if late and float(norm) > limit:
            self._find("clipped_after_step", [], f"a norm of {float(norm):.3g} was clipped to {limit:.3g} after the step", place)

    # Scalers.

    def _scale(self, original: Any, scaler: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scaler, outputs, *args, **kwargs)
        if self.is_on and scaler.is_enabled():
            self._scaler(scaler).has_scaled = True
            for tensor in _hooks.tensors_in(result):
                self._scaled_losses.add(tensor)
        return result

    def _unscale(self, original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_on and not self._in_scaler:
            self._scaler(scaler).unscaled.add(optimizer)
        return original(scaler, optimizer, *args, **kwargs)

    def _update_scaler(self, original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        self._scalers.pop(scaler, None)
        if self.is_on:
            self._scaler(scaler)
        return original(scaler, *args, **kwargs)

    def _scaler(self, scaler: Any) -> _Scaler:
        state = self._scalers.get(scaler)
        if state is None:
            state = self._scalers[scaler] = _Scaler()
            state.num_backwards = self._num_backwards
        return state

    @_guarded
    def begin_scaler_step(self, scaler: Any, optimizer: Any) -> None:
        self._in_scaler = True
        if not scaler.is_enabled():
            return
        state = self._scaler(scaler)
        self._check("loss_not_scaled")
        if not state.has_scaled and self._num_backwards > state.num_backwards:
            self._find("loss_not_scaled", [], f"backward() of a loss that was not scaled by {scaler.get_scale():g}", _hooks.place_of_caller())
        ids = {id(p) for p in _parameters_of(optimizer)}
        for clipped, _, limit, place in self._clips:
            if not clipped & ids:
                continue
            self._check("clipped_scaled_gradients")
            scale = scaler.get_scale()
            if optimizer not in state.unscaled and state.has_scaled and scale > 1 and limit < scale:
                self._find("clipped_scaled_gradients", [], f"gradients were scaled by {scale:g} as they were clipped to {limit:g}", place)

    def end_scaler_step(self) -> None:
        self._in_scaler = False

    # Steps.

    @_guarded
    def begin_step(self, optimizer: Any) -> None:
        if not self._cached_modules:
            self._read_structure()
        if not self._optimizer_is_known(optimizer):
            self._check_resumed(optimizer)
            self._check_recreated(optimizer)
        state = self._state_of(optimizer)
        if not state.trainable:
            state.trainable = {id(p) for p in _parameters_of(optimizer) if p.requires_grad}

    def _optimizer_is_known(self, optimizer: Any) -> bool:
        state = self._optimizers.get(optimizer)
        return state is not None and state.num_steps > 0

    @_guarded
    def begin_update(self, optimizer: Any, has_closure: bool) -> None:
        """The gradients are there that this step uses."""
        state = self._state_of(optimizer)
        parameters = list(_parameters_of(optimizer))
        gradients = [(p, p.grad) for p in parameters if p.grad is not None]
        self._check("gradients_zeroed_before_step")
        if state.zeroed is not None and state.zeroed[0] == self._num_backwards and not any(_is_nonzero(g) for _, g in gradients):
            seen = "the step found no gradients, which were there before"
            self._find("gradients_zeroed_before_step", [self._name_of(p) for p in parameters[:1]], seen, state.zeroed[1])
        state.zeroed = None
        if state.kept and state.num_steps > 0 and self._num_backwards > state.num_backwards:
            kept = [self._name_of(p) for p, _, _ in state.used]
            if kept:
                self._find("gradients_not_zeroed", kept, "the gradient of the step before was still there, and was added to")
        state.kept = []
        if not has_closure:
            self._check_used_twice(state, gradients)
            self._check_scaled(optimizer, state, gradients)
        self._check("frozen_parameter_updated")
        frozen = [p for p, _ in gradients if not p.requires_grad and id(p) in state.trainable]
        state.frozen = [(p, _sample_of(p)) for p in frozen]
        if self._looks_at_values() or not self._is_finite:
            self._check_finite(optimizer, gradients)
        state.written = []
        if state.is_pytorch and not has_closure and not _hooks.is_compiling():
            state.written = [(p, p._version) for p, g in gradients if not _hooks.is_sharded(p) and p.requires_grad]

    def _check_used_twice(self, state: _Optimizer, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        if state.num_steps == 0:
            return
        self._check("gradient_used_twice")
        if self._num_backwards != state.num_backwards or not gradients or len(state.used) != len(gradients):
            return
        if any(_identity(p.grad) != (key, version) or p.grad is None for p, key, version in state.used):
            return
        sample = _sample_of(gradients[0][1])
        if sample is not None and state.sample is not None and torch.equal(sample, state.sample) and bool(sample.any()):
            seen = f"{state.name} stepped twice with the same gradients, without a backward pass between"
            self._find("gradient_used_twice", [], seen, _hooks.place_of_caller())

    def _check_scaled(self, optimizer: Any, state: _Optimizer, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        if self._in_scaler or not self._last_loss_was_scaled:
            return
        after = {id(p): (key, version) for p, key, version in self._gradients_after_backward}
        for scaler, known in list(self._scalers.items()):
            self._check("stepped_scaled_gradients")
            if not known.has_scaled or optimizer in known.unscaled or scaler.get_scale() <= 1:
                continue
            same = [p for p, g in gradients if after.get(id(p)) == _identity(g)]
            if same and len(same) == len(gradients):
                seen = f"{state.name} stepped with gradients that are scaled by {scaler.get_scale():g}"
                self._find("stepped_scaled_gradients", [], seen, _hooks.place_of_caller())

    def _check_finite(self, optimizer: Any, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        if getattr(optimizer, "found_inf", None) is not None:
            assert self._record is not None
            self._record.not_checked("nonfinite_gradient", "a fused optimizer leaves steps out by itself")
            return
        named = [(p, _hooks.local(g)) for p, g in gradients]
        named = [(p, g) for p, g in named if g.layout == torch.strided and g.is_floating_point() and g.numel() > 0]
        if not named:
            return
        self._check("nonfinite_gradient")
        norms = torch.stack([norm.float().cpu() for norm in _norms([g for _, g in named])])
        if bool(torch.isfinite(norms).all()):
            return
        bad = [(p, g) for (p, g), norm in zip(named, norms.tolist()) if norm - norm != 0 and not bool(torch.isfinite(g).all())]
        if bad and not self._found_nonfinite:
            self._found_nonfinite = True  # what follows from it is none
            count = int((~torch.isfinite(bad[0][1])).sum())
            seen = f"{count} of {bad[0][1].numel()} elements are not finite"
            self._find("nonfinite_gradient", [self._name_of(p) for p, _ in bad], seen)

    def _check_recreated(self, optimizer: Any) -> None:
        key = (type(optimizer), *(id(p) for p in _parameters_of(optimizer)))
        known = self._optimizer_keys.get(key)
        number = 1
        if known is not None:
            previous, number, stepped_once = known
            self._check("optimizer_recreated")
            previous = previous()
            state = self._optimizers.get(previous) if previous is not None else None
            stepped_once = state.num_steps == 1 if state is not None else stepped_once
            number = number + 1 if stepped_once and not optimizer.state else 1
            if number >= 3:
                seen = f"the third {type(optimizer).__name__} of these parameters that steps once and has no state of the one before"
                self._find("optimizer_recreated", [], seen, _hooks.place_of_caller())
        self._optimizer_keys[key] = (weakref.ref(optimizer), number, False)

    @_guarded
    def end_step(self, optimizer: Any) -> None:
        state = self._state_of(optimizer)
        written, state.written = state.written, []
        if written:
            self._check("parameter_not_written")
            rates = {id(p): group.get("lr") for group in optimizer.param_groups for p in group["params"]}
            missed = [p for p, version in written if p._version == version and rates.get(id(p)) != 0]
            if missed:
                seen = f"{state.name}.step() left it as it was, with a gradient"
                self._find("parameter_not_written", [self._name_of(p) for p in missed], seen)
        frozen, state.frozen = state.frozen, []
        moved = [p for p, before in frozen if before is not None and not torch.equal(before, _sample_of(p))]
        if moved:
            seen = f"has a gradient, and {state.name} changed it although it requires none any more"
            self._find("frozen_parameter_updated", [self._name_of(p) for p in moved], seen)
        state.num_steps += 1
        self._num_steps += 1
        key = (type(optimizer), *(id(p) for p in _parameters_of(optimizer)))
        if key in self._optimizer_keys:
            # What has no state has nothing to lose.
            has_state = any(isinstance(v, torch.Tensor) and v.dim() > 0 for s in optimizer.state.values() for v in s.values())
            reference, number, _ = self._optimizer_keys[key]
            self._optimizer_keys[key] = (reference, number, state.num_steps == 1 and has_state)
        self._check_modes(optimizer)
        self._check_reduced(optimizer, state)
        self._end_step(optimizer, state)

    @_guarded
    def skip_step(self, optimizer: Any) -> None:
        """A scaler left it out."""
        state = self._state_of(optimizer)
        state.num_skipped += 1
        state.used, state.kept, state.zeroed = [], [], None

    def _end_step(self, optimizer: Any, state: _Optimizer) -> None:
        state.num_backwards = self._num_backwards
        held = [p for p in _parameters_of(optimizer) if p.grad is not None]
        state.used = [(p, *_identity(p.grad)) for p in held]
        state.kept = []
        state.sample = _sample_of(held[0].grad) if held else None

    def _check_modes(self, optimizer: Any) -> None:
        ids = {id(p) for p in _parameters_of(optimizer)}
        forwards = [(root, modes) for root, modes in self._forwards.values() if any(id(p) in ids for p in root.parameters())]
        if forwards:
            self._check("eval_in_training")
        if any(any(modes) for _, modes in forwards):
            return  # a part of what learns is in eval mode on purpose
        for root, _ in forwards:
            for name, module in root.named_modules():
                is_dropout = isinstance(module, _DROPOUTS) and module.p > 0
                is_norm = isinstance(module, _NORMS) and module.track_running_stats
                if (is_dropout or is_norm) and not module.training:
                    seen = f"the model is in eval mode in the forward pass that it learns from, and so is its {name}"
                    self._find("eval_in_training", [type(root).__name__], seen)
                    break

    def _check_reduced(self, optimizer: Any, state: _Optimizer) -> None:
        if self._num_backwards == state.num_backwards:
            return
        ids = {id(p) for p in _parameters_of(optimizer)}
        for ddp in self._living_ddps():
            if ddp.process_group.size() < 2 or not any(id(p) in ids for p in ddp.parameters()):
                continue
            was_called = ddp in self._ddp_forwards
            if was_called and not self._collectives.sees_reductions_of(ddp):
                assert self._record is not None
                self._record.not_checked("gradients_not_reduced", "the reductions of this DistributedDataParallel are not observed")
                continue
            self._check("gradients_not_reduced")
            if self._collectives.num_reductions > self._reductions_before or self._num_collectives > self._collectives_before:
                continue
            if not was_called:
                seen = "the module inside of DistributedDataParallel was called, and not DistributedDataParallel"
            elif not ddp.require_backward_grad_sync:
                seen = "all backward passes were within no_sync()"
            else:
                seen = "no bucket of gradients was reduced in the backward pass"
            self._find("gradients_not_reduced", [type(_hooks.unwrap(ddp)).__name__], seen)

    # The end of an iteration.

    @_guarded
    def finish_iteration(self, iteration: int) -> None:
        """Called before the next one has its number."""
        assert self._record is not None
        self._iteration = iteration
        self._check_structure()
        self._check_orphans()
        if self._compiles:
            for rule in ("missing_gradient", "autocast_dtype"):
                self._record.not_checked(rule, "torch.compile() shows no modules")
        elif iteration < self._look_until:
            self._check_missing()
        self._check_samplers()
        self._add_facts()
        self._calls, self._storages = [], []
        self._forwards.clear()
        self._ddp_forwards = _hooks.WeakIds()
        self._reductions_before = self._collectives.num_reductions
        self._collectives_before = self._num_collectives
        self._clips, self._norms, self._modes = [], [], ""
        self._is_finite = True
        self._record.num_iterations += 1
        self._iteration = iteration + 1
        self._iteration_began = time.perf_counter()
        self._record.write_sometimes()

    def _looks_at_values(self) -> bool:
        return self._iteration < _LOOKED_INTO_ITERATIONS or self._iteration % self._values_every == 0

    def _read_structure(self) -> None:
        self._cached_modules = list(self._models.modules())
        self._structure = self._read_identities()
        names: Dict[int, List[str]] = {}
        for prefix, module in self._cached_modules:
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    names.setdefault(id(parameter), []).append(f"{prefix}.{name}".lstrip("."))
        self._names = {key: found[0] for key, found in names.items()}
        self._ties = [tuple(dict.fromkeys(found)) for found in names.values() if len(set(found)) > 1]
        self._by_name = {name: key for key, found in names.items() for name in found}

    def _read_identities(self) -> Tuple[int, ...]:
        found = []
        for _, module in self._cached_modules:
            found += map(id, module._modules.values())
            found += map(id, module._parameters.values())
        return tuple(found)

    def _check_structure(self) -> None:
        if self._ties:
            self._check("tied_weights_broken")
        if self._read_identities() == self._structure and len(self._cached_modules) > 0:
            return
        ties = self._ties
        self._read_structure()
        self._look_until = self._iteration + 1 + _LOOKED_INTO_ITERATIONS
        self._ran, self._had_gradient = {}, set()
        for names in ties:
            if all(name in self._by_name for name in names) and len({self._by_name[name] for name in names}) > 1:
                self._find("tied_weights_broken", names, "were one parameter before")

    def _check_orphans(self) -> None:
        """Parameters that get gradients, and that no optimizer has."""
        held = self._held_by_others.union(*({id(p) for p in _parameters_of(o)} for o in self._optimizers))
        in_use = any(p.grad is not None for o in self._optimizers for p in _parameters_of(o))
        known = {id(p) for _, module in self._cached_modules for p in module._parameters.values() if p is not None}
        seen_before, self._orphans = self._orphans, {}
        for root, _ in self._forwards.values():
            self._check("parameter_in_no_optimizer")
            named = [(p, module.training) for module in root.modules() for p in module._parameters.values() if p is not None]
            named += [(p, True) for p, grad in self._ran.values() if grad and id(p) not in known]
            if in_use and not any(id(p) in held for p, _ in named):
                continue  # nothing of it is meant to learn
            for parameter, trains in named:
                if id(parameter) in held or not trains or not parameter.requires_grad or not parameter.is_leaf:
                    continue
                if parameter.grad is None or not _is_nonzero(parameter.grad):
                    continue
                sample = _sample_of(parameter)
                if sample is None or self._has_master_copy(parameter):
                    continue
                first, before = seen_before.get(id(parameter), (self._iteration, None))
                if before is not None and torch.equal(before, sample):
                    self._find_orphan(parameter, first)
                self._orphans[id(parameter)] = (first, sample)

    def _has_master_copy(self, parameter: torch.Tensor) -> bool:
        """Whether an optimizer may hold a copy with more digits."""
        if parameter.dtype not in (torch.float16, torch.bfloat16):
            return False
        held = (p for o in self._optimizers for p in _parameters_of(o))
        return any(p.dtype == torch.float32 and p.numel() == parameter.numel() for p in held)

    def _find_orphan(self, parameter: torch.Tensor, first: int) -> None:
        for item in gc.get_objects():
            if issubclass(type(item), torch.optim.Optimizer) and item not in self._optimizers:
                self._held_by_others.update(id(p) for p in _parameters_of(item))
        if id(parameter) in self._held_by_others:
            return
        models = {id(p) for _, module in self._cached_modules for p in module._parameters.values()}
        seen = "gets gradients, is in no optimizer, and does not change"
        for optimizer in self._optimizers:
            for held in _parameters_of(optimizer):
                if id(held) not in models and held.shape == parameter.shape and held.grad is None:
                    seen += f"; {type(optimizer).__name__} holds another tensor of its shape, which no model has any more"
                    break
        self._find("parameter_in_no_optimizer", [self._name_of(parameter)], seen, iteration=first)

    def _check_missing(self) -> None:
        """Parameters whose module's result was used, and that never got a gradient."""
        steps = [o for o, state in self._optimizers.items() if state.num_steps > 0]
        in_steps = {id(p): p for o in steps for p in _parameters_of(o) if p.requires_grad}
        missing = {key: p for key, p in in_steps.items() if key in self._ran and key not in self._had_gradient and p.grad is None}
        last = self._iteration == self._look_until - 1
        if not last:
            samples = {key: _sample_of(p) for key, p in missing.items()}
            self._without_gradient = {key: (self._iteration, s) for key, s in samples.items() if s is not None}
            return
        self._check("missing_gradient")
        lost: Dict[Tuple[str, str, int], List[str]] = {}
        for key, (first, before) in self._without_gradient.items():
            parameter = missing.get(key)
            if parameter is None or not torch.equal(before, _sample_of(parameter)):
                continue  # a copy that something else writes
            module = next((m for m, *_ in self._calls if any(p is parameter for p in m._parameters.values())), None)
            user = self._find_user(module)
            if user is not None:
                why = "its result was detached" if self._ran[key][1] else "it ran without gradients"
                lost.setdefault((why, self._module_name(user), first), []).append(self._name_of(parameter))
        for (why, user, first), names in lost.items():
            self._find("missing_gradient", names, f"{why}, and {user} uses it", iteration=first)
        self._without_gradient = {}

    def _find_user(self, module: Any) -> Any:
        """The module with gradients that got the module's result, by way of those without; None: not known."""
        storages: Set[int] = set()
        for called, _, given, returned in self._calls:
            if called is module:
                storages |= returned
            elif given & storages:
                parameters = [p for p in called._parameters.values() if p is not None]
                if any(id(p) in self._had_gradient for p in parameters):
                    return called
                storages |= returned
        return None

    # What ranks have in common.

    def _fact(self, rule: str, name: str, value: str, is_distinct: bool = False, group: Optional[List[int]] = None) -> None:
        assert self._record is not None
        group = self._group if group is None else group
        if group is not None:
            self._record.fact(rule, name, group, self._iteration, value, is_distinct)

    def _roll(self, name: str, text: str) -> str:
        """The text, and a digest of all of them so far, by which a difference stays where rows are left out."""
        rolling = self._rolling.setdefault(name, hashlib.blake2b(digest_size=8))
        rolling.update(text.encode())
        return f"{text.split('#')[0]}#{rolling.hexdigest()}"

    def _add_facts(self) -> None:
        begin = time.perf_counter()
        looks = self._looks_at_values()
        if self._group is not None:
            options = {name: value.tolist() for name, value in self._models.options().items() if value.device.type == "cpu"}
            rates = ", ".join(f"{rate:.6g}" for rate in self._models.learning_rates()[:4])
            rates += f" after {self._num_schedule_steps} steps of schedules" if self._num_schedule_steps else ""
            self._fact("rates_differ", "learning rates", self._roll("rates", f"{rates}#{_hash(repr(options))}"))
            if self._modes:
                self._fact("modes_differ", "modes", self._roll("modes", self._modes))
            counts = f"{self._num_steps} steps, {self._collectives.num_reductions} reductions"
            self._fact("reductions_differ", "counts", self._roll("counts", counts))
            if self._norms and self._shares_parameters:
                self._fact("clip_norms_differ", "gradient norms", self._roll("norms", ", ".join(self._norms)))
            if self._shares_parameters and looks:
                parameters = self._replicated_parameters()
                if parameters:
                    self._fact("replicas_differ", "parameters", _sums(parameters))
                    self._fact("replicas_differ", "optimizer state", _sums(self._state_of_parameters(parameters)))
        if looks:
            self._add_replicated_shards()
        for label, (ranks, count, digest) in self._collective_calls.items():
            self._fact("collectives_differ", f"collectives of ranks {label or 'all'}", f"{count} calls#{digest.hexdigest()}", group=ranks)
        if looks and self._iteration >= _LOOKED_INTO_ITERATIONS:
            self._thin_values(time.perf_counter() - begin, time.perf_counter() - self._iteration_began)

    def _thin_values(self, spent: float, whole: float) -> None:
        is_too_much = spent > max(_SHARE_OF_VALUES * self._values_every * whole, _SECONDS_OF_VALUES)
        self._num_slow_looks = self._num_slow_looks + 1 if is_too_much else 0
        if self._num_slow_looks == 3 and self._values_every < _MAX_VALUES_EVERY:
            self._num_slow_looks = 0
            self._values_every *= 2

    def _replicated_parameters(self) -> List[torch.Tensor]:
        """Those that a DistributedDataParallel keeps alike; not those that it was told to leave alone."""
        assert self._record is not None
        found = []
        for ddp in self._living_ddps():
            if group_ranks(ddp.process_group) != self._group:
                continue
            if self._collectives.has_own_hook(ddp):
                reason = "a communication hook of the program's own decides what replicas share"
                self._record.not_checked("replicas_differ", reason)
                continue
            ignored = set(getattr(ddp, "parameters_to_ignore", ()))
            found += [p for name, p in ddp.module.named_parameters() if name not in ignored and not _hooks.is_sharded(p)]
        return found

    def _state_of_parameters(self, parameters: List[torch.Tensor]) -> List[torch.Tensor]:
        ids = {id(p) for p in parameters}
        known = [o for o, state in self._optimizers.items() if state.is_pytorch]
        held = [(o, p) for o in known for p in _parameters_of(o) if id(p) in ids]
        return [v for o, p in held for v in o.state.get(p, {}).values() if isinstance(v, torch.Tensor)]

    def _add_replicated_shards(self) -> None:
        """Parameters that ranks along an axis of a mesh hold alike: norm weights under tensor parallelism."""
        found: Dict[Tuple[int, ...], List[torch.Tensor]] = {}
        for parameter in self._models.parameters().values():
            if _hooks.is_sharded(parameter):
                for dimension, placement in enumerate(parameter.placements):
                    if placement.is_replicate() and parameter.device_mesh.size(dimension) > 1:
                        ranks = tuple(group_ranks(parameter.device_mesh.get_group(dimension)))
                        found.setdefault(ranks, []).append(parameter)
        for ranks, parameters in found.items():
            self._fact("replicas_differ", "replicated parameters of a mesh", _sums(map(_hooks.local, parameters)), group=list(ranks))

    @_guarded
    def collective(self, name: str, label: str, ranks: List[int], args: Sequence[Any]) -> None:
        self._num_collectives += 1
        tensor = next(_hooks.tensors_in(list(args[:2])), None)
        text = name
        if tensor is not None and "object" not in name:
            text += f" {tensor.dtype}"
            if name in ("all_reduce", "broadcast", "reduce", "reduce_scatter_tensor", "all_gather_into_tensor"):
                text += f" {tensor.numel()}"
        _, count, digest = self._collective_calls.setdefault(label, (ranks, 0, hashlib.blake2b(digest_size=8)))
        digest.update(text.encode())
        self._collective_calls[label] = (ranks, count + 1, digest)

    def _make_ddp(self, original: Any, ddp: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(ddp, *args, **kwargs)
        self._ddps.append(weakref.ref(ddp))
        return result

    def _living_ddps(self) -> List[Any]:
        return [ddp for ddp in (reference() for reference in self._ddps) if ddp is not None]

    # Loaders and samplers.

    @_guarded
    def start_loader(self, loader: Any) -> None:
        is_sequential = type(getattr(loader, "sampler", None)).__name__ == "SequentialSampler"
        was_one_batch = self._loader is loader and self._num_batches == 1 and self._num_steps > self._steps_at_pass
        if not (is_sequential and was_one_batch and len(loader) > 1):
            self._first_batches = []
        self._check("loader_restarted")
        self._end_pass()
        self._loader, self._num_batches, self._steps_at_pass = loader, 0, self._num_steps

    @_guarded
    def next_batch(self, batch: Any) -> None:
        self._num_batches += 1
        if self._num_batches == 1:
            self._first_batches.append(_sample_digest(list(_hooks.tensors_in(batch))))
            if len(self._first_batches) >= 3 and len(set(self._first_batches[-3:])) == 1:
                seen = "three steps in a row began the loader anew and used its first batch alone"
                self._find("loader_restarted", [], seen, _hooks.place_of_caller(), max(self._iteration - 2, 0))

    def _start_sampler(self, original: Any, sampler: Any) -> Any:
        if self.is_on and getattr(sampler, "shuffle", False):
            self._sampler_begins = [begun for begun in self._sampler_begins if begun[0] is not sampler]
            self._sampler_begins.append((sampler, self._num_steps))
        return original(sampler)

    def _check_samplers(self) -> None:
        """A sampler of which two passes that steps learned from had the same epoch."""
        for sampler, steps in self._sampler_begins:
            if self._num_steps < steps + 2:
                continue
            self._check("epoch_not_reshuffled")
            known = self._sampler_epochs.get(sampler)
            if known is not None and known[1] != steps and known[0] == sampler.epoch:
                seen = f"two epochs in a row had the order of epoch {sampler.epoch}"
                self._find("epoch_not_reshuffled", [type(sampler).__name__], seen)
            if known is None or known[1] != steps:
                self._sampler_epochs[sampler] = (sampler.epoch, steps, 0)

    # Schedulers.

    def _make_scheduler(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scheduler, *args, **kwargs)
        try:
            self._schedulers.add(scheduler)
        except TypeError:
            pass
        return result

    def _step_scheduler(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        self._before_scheduler(scheduler)
        return original(scheduler, *args, **kwargs)

    @_guarded
    def _before_scheduler(self, scheduler: Any) -> None:
        if scheduler not in self._schedulers:
            return  # it is being made
        self._num_schedule_steps += 1
        place = _hooks.place_of_caller()
        state = self._optimizers.get(getattr(scheduler, "optimizer", None))
        early = self._early_schedulers.setdefault(scheduler, {})
        self._check("scheduler_before_optimizer")
        if state is None or (state.num_steps == 0 and state.num_skipped == 0):
            early[place] = early.get(place, 0) + 1
        elif early.pop(place, 0) == 1 and state.num_skipped == 0:
            self._find("scheduler_before_optimizer", [type(scheduler).__name__], "was stepped before the first step", place, 0)

    def _end_pass(self) -> None:
        """A loader is begun anew: of schedulers that were never stepped only the end tells, as some are stepped seldom."""
        if self._num_steps < self._steps_at_pass + 2:
            return
        self._passes += 1
        self._idle_schedulers = []
        for scheduler in list(self._schedulers):
            state = self._optimizers.get(getattr(scheduler, "optimizer", None))
            if state is not None and hasattr(scheduler, "_step_count"):
                self._check("scheduler_not_stepped")
                if self._passes >= 3 and scheduler._step_count <= 1:
                    seen = f"was never stepped, in {self._passes} epochs and {state.num_steps} steps"
                    self._idle_schedulers.append((type(scheduler).__name__, seen))

    # Checkpoints.

    @_guarded
    def loaded(self, contents: Any) -> None:
        """torch.load() returned it before the first step."""
        if self._num_steps > 0 or not isinstance(contents, dict):
            return
        for key, value in contents.items():
            if isinstance(value, dict) and value.get("state") and "param_groups" in value:
                self._loaded_optimizers.append((str(key), value))
            elif isinstance(value, dict) and "last_epoch" in value and "_step_count" in value:
                self._loaded_schedulers.append(value)

    def optimizer_loads(self) -> None:
        self._optimizer_was_loaded = True

    def _load_scheduler(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        self._loaded_schedulers = []
        return original(scheduler, *args, **kwargs)

    def _check_resumed(self, optimizer: Any) -> None:
        assert self._record is not None
        groups = optimizer.param_groups
        if not self._optimizer_was_loaded:
            for key, value in self._loaded_optimizers:
                if _is_of_the_same_training(value, groups):
                    self._check("resumed_without_optimizer")
                    seen = f"the checkpoint's {key!r} fits {type(optimizer).__name__}, which begins without it"
                    self._find("resumed_without_optimizer", [key], seen)
                else:
                    self._record.not_checked("resumed_without_optimizer", f"{key!r} of the checkpoint is of another training")
            self._loaded_optimizers = []
            return
        self._check("resumed_without_optimizer")
        for scheduler in list(self._schedulers):
            if getattr(scheduler, "optimizer", None) is not optimizer or not self._loaded_schedulers:
                continue
            self._check("resumed_without_scheduler")
            last = self._loaded_schedulers[0]["last_epoch"]
            if scheduler.last_epoch != last:
                seen = f"is at step {scheduler.last_epoch}, the checkpoint at {last}"
                self._find("resumed_without_scheduler", [type(scheduler).__name__], seen)


def _is_compiled(module: nn.Module) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _parameters_of(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _identity(gradient: Optional[torch.Tensor]) -> Tuple[int, int]:
    return (id(gradient), gradient._version) if gradient is not None else (0, -1)


def _is_nonzero(gradient: torch.Tensor) -> bool:
    held = _hooks.local(gradient)
    if held.layout != torch.strided:
        return held._nnz() > 0 if held.is_sparse else True
    return bool(held.any())


def _sample_of(tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """Its first elements; None: not known."""
    if tensor is None:
        return None
    held = _hooks.local(tensor).detach()
    if held.layout != torch.strided or held.numel() == 0:
        return None
    return held.reshape(-1)[:_SAMPLE].clone()


def _norms(tensors: List[torch.Tensor]) -> Sequence[torch.Tensor]:
    if hasattr(torch, "_foreach_norm") and len({t.device for t in tensors}) == 1:
        return torch._foreach_norm([t.detach() for t in tensors])
    return [t.detach().float().norm() for t in tensors]


def _sums(tensors: Any) -> str:
    """A digest by sums of 64-bit words, which any order of addition gives."""
    sums = []
    for tensor in tensors:
        flat = tensor.detach().reshape(-1)
        if flat.numel() * flat.element_size() % 8 == 0 and flat.storage_offset() * flat.element_size() % 8 == 0 and flat.numel():
            sums.append(flat.view(torch.int64).sum())
        elif flat.numel():
            sums.append(flat.view(torch.uint8).sum())
    return _hash(repr([int(value) for value in sums]))


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _sample_digest(tensors: Sequence[torch.Tensor]) -> str:
    """Of some elements, spread over each tensor; empty where there are none."""
    found = hashlib.blake2b(digest_size=8)
    if not tensors:
        return ""
    for tensor in tensors:
        held = _hooks.local(tensor).detach()
        if held.layout == torch.strided:
            flat = held.reshape(-1)
            found.update(repr(flat[:: max(flat.numel() // 256, 1)].tolist()).encode())
        found.update(repr(tuple(held.shape)).encode())
    return found.hexdigest()


def _is_of_the_same_training(saved: Dict[str, Any], groups: List[Dict[str, Any]]) -> bool:
    """Whether sizes and options are those that the optimizer has, but for rates."""
    if len(saved["param_groups"]) != len(groups):
        return False
    for old, new in zip(saved["param_groups"], groups):
        if len(old["params"]) != len(new["params"]):
            return False
        if any(key in old and old[key] != value for key, value in new.items() if key not in ("params", "lr", "initial_lr")):
            return False
        if old.get("initial_lr", old.get("lr")) != new.get("initial_lr", new.get("lr")) and old.get("lr") != new.get("lr"):
            return False
        for number, parameter in zip(old["params"], new["params"]):
            for value in saved["state"].get(number, {}).values():
                if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape != parameter.shape:
                    return False
    return True
