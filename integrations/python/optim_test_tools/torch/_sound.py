"""Rules that every training step keeps, looked at as the program runs: what is wrong without any reference.

Each rule is in _sound_record.RULES. Where one cannot be looked at, that is recorded, and it is not counted as kept. Identities,
modes and versions of tensors are looked at in each iteration; values of parameters, gradients and state so often that it takes one
per cent of the time.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch

from . import _hooks
from ._sound_data import Data
from ._sound_dropouts import Dropouts
from ._sound_gradients import Gradients
from ._sound_passes import Passes
from ._sound_record import RULES, Record
from ._sound_reductions import Reductions
from ._sound_replicas import Replicas
from ._sound_scaling import Scaling
from ._sound_schedules import Schedules
from ._sound_steps import Steps
from ._sound_training import Training, guarded, parameters_of
from ._sound_witnesses import Witnesses


class Sound:
    """Looks at one training. Called by the observer on the thread that trains, between start() and finish()."""

    def __init__(self, models: Any, collectives: Any, paused: Callable[[], Any]):
        """paused: within what it returns, no operation is logged."""
        self._training = Training(models, collectives, paused)
        self._witnesses = Witnesses(self._training)
        self._dropouts = Dropouts(self._training)
        self._passes = Passes(self._training, self._dropouts, self._witnesses)
        self._gradients = Gradients(self._training)
        self._scaling = Scaling(self._training)
        self._steps = Steps(self._training)
        self._reductions = Reductions(self._training)
        self._replicas = Replicas(self._training, self._reductions)
        self._schedules = Schedules(self._training)
        self._data = Data(self._training, self._schedules)
        self._training.on_error = self.end_forward
        self._training.on_gone = self._steps.end
        self._untouched: List[Any] = []  # optimizers whose gradients nothing but clipping changes

    @property
    def seconds(self) -> float:
        """Returns how long the checks took."""
        return self._training.seconds

    @property
    def compiles(self) -> bool:
        """True if torch.compile() was called, whose graphs must have no hooks of ours."""
        return self._training.compiles

    @compiles.setter
    def compiles(self, value: bool) -> None:
        self._training.compiles = value

    def read_values_every(self, iterations: int) -> None:
        """Where that takes too long, it is done less often."""
        self._training.values_every = iterations

    def install(self, patches: _hooks.Patches) -> None:
        for rules in (self._passes, self._gradients, self._scaling, self._replicas, self._schedules, self._data):
            rules.install(patches)

    def start(self, run_dir: str, ranks: Any, config: Dict[str, Any], say: Callable[[str], None]) -> None:
        """REQUIRES: this rank's folder is there."""
        training = self._training
        settings = config.get("sound", {})
        training.is_on = bool(run_dir) and not settings.get("off")
        if not training.is_on:
            return
        training.silenced = set(settings.get("silence", []))
        training.say = say
        unknown = sorted(training.silenced - set(RULES))
        if unknown:
            say(f"sound.silence: there is no rule {', '.join(unknown)}")
        training.start(Record(os.path.join(run_dir, f"rank_{ranks.rank:05d}", "sound.json")))
        self._replicas.start(ranks.size)
        if not hasattr(torch.Tensor, "untyped_storage"):
            training.record.not_checked("missing_gradient", f"PyTorch {torch.__version__} does not tell which tensors share memory")
        self._write()

    @guarded
    def _write(self) -> None:
        assert self._training.record is not None
        self._training.record.write()

    @guarded
    def finish(self) -> None:
        """Writes what there is; nothing is looked at afterwards."""
        assert self._training.record is not None
        self.end_forward()
        self._dropouts.finish()
        self._schedules.finish()
        self._reductions.finish()
        self._gradients.finish()
        self._steps.finish()
        self._witnesses.finish()
        self._passes.finish()
        self._replicas.finish()
        self._training.record.write()
        self._training.is_on = False

    def keep(self) -> None:
        """Writes what there is in a run that ends too early, where the rules of its end do not hold."""
        assert self._training.record is not None
        self._training.record.write()

    # Passes.

    @guarded
    def begin_forward(self, module: Any, inputs: Sequence[torch.Tensor], has_samples: bool) -> None:
        """A forward pass with gradients, of the outermost module; has_samples: whether inputs may be samples of the rank's own."""
        root = _hooks.unwrap(module)
        if not any(known is root for _, known in self._training.modules):
            self._training.read_structure()
        self._reductions.begin_forward(module)
        self._replicas.begin_forward(module, root, inputs if has_samples else [])
        self._witnesses.begin_forward()
        self._passes.begin_forward(module, root)
        self._dropouts.begin_pass(root, inputs, trains=True)

    @guarded
    def check_evaluated(self, module: Any) -> None:
        """A forward pass without gradients begins, of the outermost module; also before the run starts."""
        self._passes.check_estimated(_hooks.unwrap(module))

    @guarded
    def begin_evaluation(self, module: Any, inputs: Any) -> None:
        """The same, once the run started: end_forward() follows."""
        self._dropouts.begin_pass(_hooks.unwrap(module), inputs, trains=False)

    def end_forward(self) -> None:
        self._passes.unhook()
        self._dropouts.end_pass()
        self._witnesses.is_in_pass = False

    @guarded
    def begin_backward(self, losses: Any, has_inputs: bool) -> None:
        loss = next(_hooks.tensors_in(losses), None)
        self._scaling.begin_backward(loss)
        self._gradients.begin_backward(loss, has_inputs)
        self._witnesses.is_in_pass = True

    @guarded
    def end_backward(self) -> None:
        self._training.num_backwards += 1
        self._gradients.end_backward()
        self._scaling.end_backward()
        self._passes.end_backward()
        self._witnesses.end_backward()

    # Clipping and scalers.

    def clips(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Returns the arguments, with a list instead of a generator."""
        if not self._training.is_on:
            return args, kwargs
        self._untouched = self._gradients.untouched()
        return self._scaling.clips(args, kwargs)

    @guarded
    def end_clip(self, norm: Any) -> None:
        self._scaling.end_clip(norm)
        self._gradients.keep_fresh(self._untouched)

    @guarded
    def begin_scaler_step(self, scaler: Any, optimizer: Any) -> None:
        self._scaling.begin_scaler_step(scaler, optimizer)

    def end_scaler_step(self) -> None:
        self._scaling.end_scaler_step()

    # Steps.

    @guarded
    def makes_optimizer(self, optimizer: Any) -> None:
        self._steps.add_optimizer(optimizer)

    @guarded
    def begin_step(self, optimizer: Any) -> None:
        if not self._training.modules:
            self._training.read_structure()
        state = self._training.optimizers.get(optimizer)
        if state is None or state.num_steps == 0:
            self._schedules.check_resumed(optimizer, self._scaling.scales())
            self._steps.check_recreated(optimizer)
        self._steps.begin_step(optimizer)

    @guarded
    def begin_update(self, optimizer: Any, has_closure: bool) -> None:
        """The gradients are there that this step uses."""
        gradients: List[Tuple[torch.Tensor, torch.Tensor]] = [(p, p.grad) for p in parameters_of(optimizer) if p.grad is not None]
        self._steps.begin_update(optimizer, gradients, has_closure)
        if not has_closure:
            self._scaling.begin_update(optimizer, gradients)
        self._gradients.begin_update(optimizer, gradients)
        self._reductions.begin_update()
        self._replicas.begin_update(optimizer)

    @guarded
    def end_step(self, optimizer: Any) -> None:
        self._steps.end_step(optimizer)
        self._passes.check_modes(optimizer)
        self._reductions.end_step(optimizer, self._training.state_of(optimizer))
        self._steps.keep_used(optimizer)
        self._schedules.end_step(optimizer)

    @guarded
    def skip_step(self, optimizer: Any) -> None:
        """A scaler left it out."""
        state = self._training.state_of(optimizer)
        state.num_skipped += 1
        state.used, state.kept, state.added, state.zeroed = [], [], [], None

    @guarded
    def finish_iteration(self, iteration: int) -> None:
        """Called before the next one has its number."""
        training = self._training
        assert training.record is not None
        training.iteration = iteration
        was_replaced = training.check_structure()
        self._steps.check_orphans()
        self._witnesses.finish_iteration()
        self._replicas.finish_iteration()
        self._reductions.finish_iteration()
        self._passes.finish_iteration(was_replaced)
        self._dropouts.finish_iteration()
        self._scaling.finish_iteration()
        training.is_finite = True
        training.record.num_iterations += 1
        training.iteration = iteration + 1
        training.record.write_sometimes()

    # Collectives, loaders and checkpoints.

    @guarded
    def collective(self, name: str, label: str, ranks: List[int], args: Sequence[Any], kwargs: Dict[str, Any]) -> None:
        self._reductions.collective(name, label, ranks, args, kwargs)
        self._replicas.collective(name, label, ranks, args)
        self._witnesses.collective(name, ranks)

    @guarded
    def transferred(self, label: str, ranks: List[int], args: Sequence[Any]) -> None:
        """Called after a collective whose result all ranks of the group have."""
        self._reductions.transferred(label, ranks, args)

    @guarded
    def start_loader(self, loader: Any) -> None:
        self._data.start_loader(loader)

    @guarded
    def next_batch(self, batch: Any, iterator: Any) -> None:
        self._data.next_batch(batch, iterator)

    @guarded
    def saved(self, file: Any) -> None:
        """torch.save() writes to it."""
        self._schedules.saved(file)

    @guarded
    def loaded(self, file: Any, contents: Any) -> None:
        """torch.load() returned it before the first step."""
        self._schedules.loaded(file, contents)

    def optimizer_loads(self) -> None:
        self._schedules.optimizer_loads()
        self._data.begin_anew()
