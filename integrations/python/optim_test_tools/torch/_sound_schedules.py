"""Schedules of rates, and what goes on from a checkpoint."""

from __future__ import annotations

import os
import weakref
from typing import Any, Dict, List, Set, Tuple

import torch

from . import _hooks
from ._sound_training import Training, guarded, parameters_of

# Checkpoints that this process wrote, in whichever of its trainings.
_written: Set[str] = set()
_IDLE_SCHEDULE_STEPS = 5  # after which an optimizer is not waited for any more, in steps of its schedule


class Schedules:
    """Looks at steps of schedulers, and at what of a checkpoint is loaded."""

    def __init__(self, training: Training):
        self._training = training
        self._begins: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # the epoch at which each schedule was made
        self._passes = 0
        self._idle_schedulers: List[Tuple[str, str]] = []
        self._early_schedulers: "weakref.WeakKeyDictionary[Any, Dict[str, int]]" = weakref.WeakKeyDictionary()
        self._rates_of: "weakref.WeakKeyDictionary[Any, Set[str]]" = weakref.WeakKeyDictionary()
        self._loaded_optimizers: List[Tuple[str, Dict[str, Any]]] = []
        self._loaded_schedulers: List[Dict[str, Any]] = []
        self._loaded_scales: List[float] = []
        self._loaded_random: List[str] = []
        self._optimizer_was_loaded = False
        self._random_was_set = False
        self._has_generators = False  # of loaders

    def install(self, patches: _hooks.Patches) -> None:
        schedulers = torch.optim.lr_scheduler
        base = getattr(schedulers, "LRScheduler", None) or schedulers._LRScheduler
        patches.wrap(base, "__init__", self._make_scheduler)
        patches.wrap(base, "step", self._step_scheduler)
        patches.wrap(base, "load_state_dict", self._load_scheduler)
        patches.wrap(torch.nn.Module, "load_state_dict", self._load_module)
        patches.wrap(torch.random, "set_rng_state", self._set_random, also=(torch,))
        for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
            scaler = getattr(owner, "GradScaler", None)
            if scaler is not None and "load_state_dict" in vars(scaler):
                patches.wrap(scaler, "load_state_dict", self._load_scaler)

    def finish(self) -> None:
        for name, seen in self._idle_schedulers:
            self._training.find("scheduler_not_stepped", [name], seen)

    def _check_idle_optimizer(self, scheduler: Any) -> None:
        """Looks for a schedule of an optimizer that does not step, whose parameters another one has."""
        if getattr(scheduler, "_step_count", 0) != _IDLE_SCHEDULE_STEPS:
            return
        self._training.check("scheduler_of_idle_optimizer")
        optimizer = scheduler.optimizer
        state = self._training.optimizers.get(optimizer)
        if state is not None and state.num_steps + state.num_skipped > 0:
            return
        ids = {id(p) for p in parameters_of(optimizer)}
        others = [o for o in self._rates_of if any(id(p) in ids for p in parameters_of(o))]
        if others and all(len(self._rates_of[o]) == 1 for o in others):
            seen = f"is stepped for a {type(optimizer).__name__} that does not step; {type(others[0]).__name__} has its parameters"
            self._training.find("scheduler_of_idle_optimizer", [type(scheduler).__name__], seen, iteration=0)

    def end_step(self, optimizer: Any) -> None:
        """Notes the optimizer's rates: one that changes them by hand may follow another one's schedule."""
        rates = self._rates_of.setdefault(optimizer, set())
        if len(rates) < 2:
            rates.add(repr([group.get("lr") for group in optimizer.param_groups]))

    def _make_scheduler(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scheduler, *args, **kwargs)
        try:
            self._begins[scheduler] = getattr(scheduler, "last_epoch", None)
        except TypeError:
            pass
        return result

    def _step_scheduler(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        self._before_scheduler(scheduler)
        return original(scheduler, *args, **kwargs)

    @guarded
    def _before_scheduler(self, scheduler: Any) -> None:
        if scheduler not in self._begins:
            return  # it is being made
        self._training.num_schedule_steps += 1
        place = _hooks.place_of_caller()
        state = self._training.optimizers.get(getattr(scheduler, "optimizer", None))
        self._check_idle_optimizer(scheduler)
        early = self._early_schedulers.setdefault(scheduler, {})
        self._training.check("scheduler_before_optimizer")
        if state is None or (state.num_steps == 0 and state.num_skipped == 0):
            if not early and getattr(scheduler, "last_epoch", None) != self._begins[scheduler]:
                return  # the program set it back, so that this step gives the first rate
            early[place] = early.get(place, 0) + 1
        elif early.pop(place, 0) == 1 and state.num_skipped == 0:
            self._training.find("scheduler_before_optimizer", [type(scheduler).__name__], "was stepped before the first step", place, 0)

    def start_loader(self, loader: Any) -> None:
        owners = (loader, getattr(loader, "sampler", None))
        self._has_generators = self._has_generators or any(getattr(owner, "generator", None) is not None for owner in owners)

    def end_pass(self) -> None:
        """A loader is begun anew: of schedulers that were never stepped only the end tells, as some are stepped seldom."""
        self._passes += 1
        self._idle_schedulers = []
        for scheduler in list(self._begins):
            state = self._training.optimizers.get(getattr(scheduler, "optimizer", None))
            if state is not None and hasattr(scheduler, "_step_count"):
                self._training.check("scheduler_not_stepped")
                # Schedules with a step() of their own, such as CosineAnnealingWarmRestarts, count no steps, and move on by epochs.
                if self._passes >= 3 and scheduler._step_count <= 1 and scheduler.last_epoch <= 0:
                    seen = f"was never stepped, in {self._passes} epochs and {state.num_steps} steps"
                    self._idle_schedulers.append((type(scheduler).__name__, seen))

    def saved(self, file: Any) -> None:
        if isinstance(file, (str, os.PathLike)):
            _written.add(os.path.abspath(file))

    def loaded(self, file: Any, contents: Any) -> None:
        """torch.load() returned it."""
        if self._training.num_steps > 0 or not isinstance(contents, dict):
            return
        if isinstance(file, (str, os.PathLike)) and os.path.abspath(file) in _written:
            return  # another training of this process begins there
        for key, value in contents.items():
            if isinstance(value, dict) and isinstance(value.get("state"), dict) and value["state"] and "param_groups" in value:
                self._loaded_optimizers.append((str(key), value))
            elif isinstance(value, dict) and "last_epoch" in value and "_step_count" in value:
                self._loaded_schedulers.append(value)
            elif isinstance(value, dict) and {"scale", "growth_factor", "backoff_factor"} <= set(value):
                self._loaded_scales.append(float(value["scale"]))
            elif _is_random_state(value):
                self._loaded_random.append(str(key))

    def optimizer_loads(self) -> None:
        self._optimizer_was_loaded = True

    def _load_scheduler(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        self._loaded_schedulers = []
        return original(scheduler, *args, **kwargs)

    def _set_random(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._random_was_set = True
        return original(*args, **kwargs)

    def _load_scaler(self, original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        self._loaded_scales = []
        return original(scaler, *args, **kwargs)

    def _load_module(self, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(module, *args, **kwargs)
        state = args[0] if args else kwargs.get("state_dict")
        self._check_loaded(module, state, result)
        return result

    @guarded
    def _check_loaded(self, module: Any, state: Any, result: Any) -> None:
        """Looks for a state none of whose names the module has, and which it was told not to mind."""
        unexpected = getattr(result, "unexpected_keys", None)
        self._training.check("loaded_nothing")
        if state and unexpected and len(unexpected) == len(state) and result.missing_keys:
            seen = f"has none of the {len(state)} names, the first of which is {unexpected[0]!r}; its own is {result.missing_keys[0]!r}"
            self._training.find("loaded_nothing", [type(module).__name__], seen, _hooks.place_of_caller(), 0)

    def check_resumed(self, optimizer: Any, scales: List[float]) -> None:
        """scales: of the scalers in use."""
        assert self._training.record is not None
        groups = optimizer.param_groups
        if not self._optimizer_was_loaded:
            for key, value in self._loaded_optimizers:
                if _is_of_the_same_training(value, groups):
                    self._training.check("resumed_without_optimizer")
                    seen = f"the checkpoint's {key!r} fits {type(optimizer).__name__}, which begins without it"
                    self._training.find("resumed_without_optimizer", [key], seen)
                else:
                    self._training.record.not_checked("resumed_without_optimizer", f"{key!r} of the checkpoint is of another training")
            self._loaded_optimizers = []
            return
        self._training.check("resumed_without_optimizer")
        if self._loaded_random:
            self._training.check("resumed_without_random_state")
            if self._has_generators and not self._random_was_set:
                self._training.not_checked("resumed_without_random_state", "a loader has a generator of its own, whose state it may be")
            elif not self._random_was_set:
                seen = "the checkpoint has the state of PyTorch's random generator, which was not restored"
                self._training.find("resumed_without_random_state", self._loaded_random, seen)
        if len(self._loaded_scales) == 1 and len(scales) == 1:
            self._training.check("resumed_without_scaler")
            if scales != self._loaded_scales:
                seen = f"scales by {scales[0]:g}, the checkpoint by {self._loaded_scales[0]:g}"
                self._training.find("resumed_without_scaler", ["GradScaler"], seen)
        for scheduler in list(self._begins):
            if getattr(scheduler, "optimizer", None) is not optimizer or not self._loaded_schedulers:
                continue
            self._training.check("resumed_without_scheduler")
            last = self._loaded_schedulers[0]["last_epoch"]
            if scheduler.last_epoch != last:
                seen = f"is at step {scheduler.last_epoch}, the checkpoint at {last}"
                self._training.find("resumed_without_scheduler", [type(scheduler).__name__], seen)


def _is_random_state(value: Any) -> bool:
    """Whether it is one of PyTorch's generator on the host."""
    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.shape == torch.default_generator.get_state().shape


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
