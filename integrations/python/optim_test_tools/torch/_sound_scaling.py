"""Clipping, and gradients that a GradScaler scaled."""

from __future__ import annotations

import inspect
import math
import time
import weakref
from typing import Any, Dict, List, Set, Tuple

import torch

from . import _hooks
from ._sound_training import OptimizerState, Training, guarded, has_norm, identity, norms_of, parameters_of

_ROUNDED = 1.05  # times the limit, which rounding in few digits may leave


class _Scaler:
    def __init__(self) -> None:
        self.has_scaled = False
        self.num_backwards = 0  # of the process, as it was updated last
        self.unscaled = _hooks.WeakIds()


class _Clip:
    """A call that clips."""

    def __init__(self, parameters: List[torch.Tensor], unscaled: Any, limit: float, norm_type: float, place: str):
        self.parameters = parameters
        self.ids = {id(p) for p in parameters}
        self.unscaled = unscaled
        self.limit, self.norm_type, self.place = limit, norm_type, place


class Scaling:
    """Looks at whether gradients are clipped and used as what they are."""

    def __init__(self, training: Training):
        self._training = training
        self._scalers: "weakref.WeakKeyDictionary[Any, _Scaler]" = weakref.WeakKeyDictionary()
        self._in_scaler = False
        self._scaled_losses = _hooks.WeakIds()
        self._last_loss_was_scaled = False
        self._gradients_after_backward: List[Tuple[torch.Tensor, int, int]] = []
        self._clips: List[_Clip] = []
        # Clips while there were no gradients: the parameters, the norm, the place, and the number of backward passes before.
        self._empty_clips: List[Tuple[Set[int], float, str, int]] = []
        self._early: List[int] = []
        # Norms of this iteration, how many of them were of no optimizer's parameters and without a gradient, and where.
        self._num_clips = 0
        self._idle_clips: List[str] = []
        self._idle_iterations: List[int] = []

    def install(self, patches: _hooks.Patches) -> None:
        for owner in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
            scaler = getattr(owner, "GradScaler", None)
            if scaler is not None and "scale" in vars(scaler):
                patches.wrap(scaler, "scale", self._scale)
                patches.wrap(scaler, "unscale_", self._unscale)
                patches.wrap(scaler, "update", self._update_scaler)

    def begin_backward(self, loss: Any) -> None:
        self._last_loss_was_scaled = loss is not None and loss in self._scaled_losses

    def end_backward(self) -> None:
        self._gradients_after_backward = []
        if self._last_loss_was_scaled:
            for optimizer in self._training.optimizers:
                held = [p for p in parameters_of(optimizer) if p.grad is not None]
                self._gradients_after_backward += [(p, *identity(p.grad)) for p in held]

    def clips(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Returns the arguments, with a list instead of a generator."""
        if not self._training.is_on:
            return args, kwargs
        given = args[0] if args else kwargs.get("parameters")
        was_used_up = inspect.isgenerator(given) and inspect.getgeneratorstate(given) == inspect.GEN_CLOSED
        if not isinstance(given, (list, tuple, torch.Tensor)) and given is not None:
            given = list(given)
            args, kwargs = ((given, *args[1:]), kwargs) if args else (args, {**kwargs, "parameters": given})
        limit = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
        self._begin_clip(given, limit, args[2] if len(args) > 2 else kwargs.get("norm_type", 2.0), was_used_up)
        return args, kwargs

    @guarded
    def _begin_clip(self, given: Any, limit: Any, norm_type: Any, was_used_up: bool) -> None:
        parameters = [given] if isinstance(given, torch.Tensor) else list(given or [])
        place = _hooks.place_of_caller()
        self._training.check("clipped_nothing")
        if was_used_up:
            self._training.find("clipped_nothing", [], "the generator of parameters was used up before", place)
        unscaled = [state.unscaled for state in self._scalers.values()]
        limit = float(limit) if limit is not None else 0.0
        self._clips.append(_Clip(parameters, unscaled, limit, float(norm_type), place))

    def end_clip(self, norm: Any) -> None:
        if not isinstance(norm, torch.Tensor) or _hooks.is_sharded(norm) or not self._clips:
            return
        clip = self._clips[-1]
        ids, limit, place = clip.ids, clip.limit, clip.place
        self._check_norm(clip)
        if norm.device.type == "cpu":
            self._training.is_finite = self._training.is_finite and bool(torch.isfinite(norm))
        if self._training.group is not None and self._training.models.are_of_replicas(clip.parameters):
            self._training.norms.append(f"{float(norm):.9g}")
        self._num_clips += 1
        holders = [o for o in self._training.optimizers if any(id(p) in ids for p in parameters_of(o))]
        if not holders and norm.device.type == "cpu" and float(norm) == 0:
            self._idle_clips.append(place)
        if not holders or norm.device.type != "cpu":
            return
        if float(norm) == 0:
            self._empty_clips.append((ids, limit, place, self._training.num_backwards))
        elif self._empty_clips:
            self._empty_clips = [clip for clip in self._empty_clips if not clip[0] & ids]
        self._training.check("clipped_after_step")
        late = all(self._training.optimizers[o].num_steps > 0 and self._training.optimizers[o].num_backwards == self._training.num_backwards for o in holders)
        if late and float(norm) > limit:
            self._training.find("clipped_after_step", [], f"a norm of {float(norm):.3g} was clipped to {limit:.3g} after the step", place)

    def _check_norm(self, clip: _Clip) -> None:
        """Looks whether what is left is within the limit; of a divided gradient, what this rank holds."""
        training = self._training
        gradients = [_hooks.local(p.grad) for p in clip.parameters if p.grad is not None and has_norm(p.grad)]
        if not gradients or clip.norm_type != 2 or not 0 < clip.limit < math.inf or not training.looks_at_values():
            return
        begin = time.perf_counter()
        training.check("norm_not_clipped")
        left = float(norms_of(gradients).norm())
        if math.isfinite(left) and left > _ROUNDED * clip.limit:
            seen = f"gradients have a norm of {left:.3g} after they were clipped to {clip.limit:.3g}"
            training.find("norm_not_clipped", [], seen, clip.place)
        training.seconds_of_values += time.perf_counter() - begin

    def _scale(self, original: Any, scaler: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scaler, outputs, *args, **kwargs)
        if self._training.is_on and scaler.is_enabled():
            self._scaler(scaler).has_scaled = True
            for tensor in _hooks.tensors_in(result):
                self._scaled_losses.add(tensor)
        return result

    def _unscale(self, original: Any, scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if self._training.is_on and not self._in_scaler:
            self._scaler(scaler).unscaled.add(optimizer)
        return original(scaler, optimizer, *args, **kwargs)

    def _update_scaler(self, original: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        self._scalers.pop(scaler, None)
        if self._training.is_on:
            self._scaler(scaler)
        return original(scaler, *args, **kwargs)

    def _scaler(self, scaler: Any) -> _Scaler:
        state = self._scalers.get(scaler)
        if state is None:
            state = self._scalers[scaler] = _Scaler()
            state.num_backwards = self._training.num_backwards
        return state

    def begin_scaler_step(self, scaler: Any, optimizer: Any) -> None:
        self._in_scaler = True
        if not scaler.is_enabled():
            return
        state = self._scaler(scaler)
        self._training.check("loss_not_scaled")
        if not state.has_scaled and self._training.num_backwards > state.num_backwards:
            self._training.find("loss_not_scaled", [], f"backward() of a loss that was not scaled by {scaler.get_scale():g}", _hooks.place_of_caller())
        ids = {id(p) for p in parameters_of(optimizer)}
        for clip in self._clips:
            if not clip.ids & ids:
                continue
            self._training.check("clipped_scaled_gradients")
            scale = scaler.get_scale()
            if optimizer not in state.unscaled and state.has_scaled and scale > 1 and clip.limit < scale:
                seen = f"gradients were scaled by {scale:g} as they were clipped to {clip.limit:g}"
                self._training.find("clipped_scaled_gradients", [], seen, clip.place)

    def end_scaler_step(self) -> None:
        self._in_scaler = False

    def scales(self) -> List[float]:
        """Returns the scales of the scalers in use."""
        return [scaler.get_scale() for scaler, state in self._scalers.items() if state.has_scaled]

    def begin_update(self, optimizer: Any, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        self._check_scaled(optimizer, self._training.state_of(optimizer), gradients)
        for ids, limit, place, num_backwards in self._empty_clips:
            self._training.check("clipped_before_backward")
            held = [g for p, g in gradients if id(p) in ids and has_norm(g) and not _hooks.is_sharded(g)]
            norm = float(torch.stack([g.detach().float().norm() for g in held]).norm()) if held else 0.0
            if self._training.num_backwards > num_backwards and limit > 0 and norm > 1.01 * limit:
                self._early.append(self._training.iteration)
                if len(set(self._early)) == 2:
                    seen = f"there were no gradients yet as they were clipped to {limit:.3g}; the step used a norm of {norm:.3g}"
                    self._training.find("clipped_before_backward", [], seen, place, self._early[0])

    def _check_scaled(self, optimizer: Any, state: OptimizerState, gradients: List[Tuple[torch.Tensor, torch.Tensor]]) -> None:
        if self._in_scaler or not self._last_loss_was_scaled:
            return
        after = {id(p): (key, version) for p, key, version in self._gradients_after_backward}
        for scaler, known in list(self._scalers.items()):
            self._training.check("stepped_scaled_gradients")
            if not known.has_scaled or optimizer in known.unscaled or scaler.get_scale() <= 1:
                continue
            same = [p for p, g in gradients if after.get(id(p)) == identity(g)]
            if same and len(same) == len(gradients):
                seen = f"{state.name} stepped with gradients that are scaled by {scaler.get_scale():g}"
                self._training.find("stepped_scaled_gradients", [], seen, _hooks.place_of_caller())

    def finish_iteration(self) -> None:
        self._check_idle_clips()
        self._clips, self._empty_clips = [], []
        self._num_clips, self._idle_clips = 0, []

    def _check_idle_clips(self) -> None:
        """Looks for two iterations in which all that was clipped has no gradients and is in no optimizer."""
        held = {id(p) for o in self._training.optimizers for p in parameters_of(o)}
        if not self._idle_clips or len(self._idle_clips) < self._num_clips or any(clip.ids & held for clip in self._clips):
            return
        self._idle_iterations.append(self._training.iteration)
        if len(self._idle_iterations) == 2:
            seen = "what was clipped has no gradients and is in no optimizer"
            self._training.find("clipped_nothing", [], seen, self._idle_clips[0], self._idle_iterations[0])
