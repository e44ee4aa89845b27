"""Loaders and samplers: whether each epoch has an order of its own, and batches go on."""

from __future__ import annotations

import random
import sys
import weakref
from typing import Any, List, Optional, Tuple

import torch

from . import _hooks
from ._sound_schedules import Schedules
from ._sound_training import Training, sample_digest

_COMPARED_BATCHES = 3


class Data:
    """Looks at what loaders give, as far as steps learn from it."""

    def __init__(self, training: Training, schedules: Schedules):
        self._training = training
        self._schedules = schedules
        # By sampler: the pass that began last, and the last one that steps learned from. By iterator: its pass.
        self._begun: "weakref.WeakKeyDictionary[Any, _Pass]" = weakref.WeakKeyDictionary()
        self._epochs: "weakref.WeakKeyDictionary[Any, Tuple[_Pass, Any]]" = weakref.WeakKeyDictionary()  # and the optimizer
        self._passes: "weakref.WeakKeyDictionary[Any, _Pass]" = weakref.WeakKeyDictionary()
        self._loader: Any = None
        self._num_batches = 0
        self._first_batches: List[str] = []
        self._steps_at_pass = 0
        # By data set, first batches of the last pass of a loader that shuffles, and the optimizer that learned from it; of this pass.
        self._last_pass: "weakref.WeakKeyDictionary[Any, Tuple[List[str], int, Any]]" = weakref.WeakKeyDictionary()
        self._pass: List[str] = []
        # Batches of which each worker gave one in its turn, and groups of them that were all alike.
        self._turn: List[str] = []
        self._alike: List[str] = []

    def install(self, patches: _hooks.Patches) -> None:
        sampler = sys.modules.get("torch.utils.data.distributed")
        if sampler is not None:
            patches.wrap(sampler.DistributedSampler, "__iter__", self._start_sampler)

    def start_loader(self, loader: Any) -> None:
        training = self._training
        kept = getattr(loader, "_iterator", None)
        if kept is not None:
            self._passes.pop(kept, None)  # its workers persist, and it makes another pass
        is_sequential = type(getattr(loader, "sampler", None)).__name__ == "SequentialSampler"
        was_one_batch = self._loader is loader and self._num_batches == 1 and training.num_steps > self._steps_at_pass
        if not (is_sequential and was_one_batch and _length(loader) != 1):
            self._first_batches = []
        self._check_generators(loader)
        self._schedules.start_loader(loader)
        training.check("loader_restarted")
        if training.num_steps >= self._steps_at_pass + 2:
            self._schedules.end_pass()
        self._keep_pass()
        self._loader, self._num_batches, self._steps_at_pass = loader, 0, training.num_steps
        self._pass, self._turn, self._alike = [], [], []

    def begin_anew(self) -> None:
        """Forgets passes: an optimizer gets another state, so what follows learns from the first epoch again, as behind a search of rates."""
        self._epochs.clear()
        self._last_pass.clear()

    def _check_generators(self, loader: Any) -> None:
        """Looks for a generator that a data set draws from and that each worker gets a copy of."""
        dataset, number = getattr(loader, "dataset", None), getattr(loader, "num_workers", 0)
        while hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
            dataset = dataset.dataset  # of a part
        used = getattr(getattr(type(dataset), "__getitem__", None), "__code__", None)
        if number < 2 or used is None or loader.worker_init_fn is not None or {"seed", "manual_seed"} & set(used.co_names):
            return
        self._training.check("workers_repeat")
        for name, value in getattr(dataset, "__dict__", {}).items():
            if name in used.co_names and isinstance(value, _generators()):
                seen = f"its {number} workers begin with copies of self.{name}, so they draw the same numbers"
                self._training.find("workers_repeat", [type(dataset).__name__], seen)

    def next_batch(self, batch: Any, iterator: Any) -> None:
        self._num_batches += 1
        self._training.num_batches += 1
        self._training.iterators.add(id(iterator))
        digest = sample_digest(list(_hooks.tensors_in(batch)))
        self._check_workers(digest)
        self._check_order(digest)
        self._check_epoch(iterator)
        if self._num_batches == 1:
            self._first_batches.append(digest)
            if len(self._first_batches) >= 3 and len(set(self._first_batches[-3:])) == 1:
                seen = "three steps in a row began the loader anew and used its first batch alone"
                first = max(self._training.iteration - 2, 0)
                self._training.find("loader_restarted", [], seen, _hooks.place_of_caller(), first)

    def _check_workers(self, digest: str) -> None:
        """Looks whether workers give the same batches: in two turns all of them alike, and other ones in each turn."""
        loader = self._loader
        number = getattr(loader, "num_workers", 0)
        if number < 2 or not digest or not getattr(loader, "batch_size", None):
            return
        self._training.check("workers_repeat")
        self._turn.append(digest)
        if len(self._turn) < number:
            return
        is_alike = len(set(self._turn)) == 1
        self._alike = [*self._alike, digest] if is_alike else []
        self._turn = []
        if len(self._alike) == 2 and len(set(self._alike)) == 2:
            seen = f"its {number} workers give the same batches, each in its turn"
            name = type(getattr(loader, "dataset", None)).__name__
            self._training.find("workers_repeat", [name], seen, iteration=max(self._training.iteration - 2 * number + 1, 0))

    def _check_order(self, digest: str) -> None:
        """Looks whether two passes in a row of a loader that shuffles begin with the same batches."""
        if type(getattr(self._loader, "sampler", None)).__name__ != "RandomSampler" or len(self._pass) == _COMPARED_BATCHES:
            return
        self._pass.append(digest)
        if len(self._pass) < _COMPARED_BATCHES:
            return
        self._training.check("epoch_not_reshuffled")
        before, steps, optimizer = self._last_pass.get(_key_of(self._loader), ([], 0, None))
        # A fold of a cross-validation begins as the one before, with another optimizer.
        goes_on = optimizer is not None and optimizer() is not None and optimizer is self._training.stepped
        if before == self._pass and steps >= 2 and len(set(before)) > 1 and goes_on:
            seen = f"two epochs in a row begin with the same {_COMPARED_BATCHES} batches"
            self._training.find("epoch_not_reshuffled", ["RandomSampler"], seen)

    def _keep_pass(self) -> None:
        """Notes how the pass that ends began, and how many steps learned from it."""
        if self._loader is not None and len(self._pass) == _COMPARED_BATCHES:
            key, num_steps = _key_of(self._loader), self._training.num_steps - self._steps_at_pass
            self._last_pass[key] = (self._pass, num_steps, self._training.stepped)

    def _start_sampler(self, original: Any, sampler: Any) -> Any:
        if self._training.is_on and getattr(sampler, "shuffle", False):
            self._begun[sampler] = _Pass(sampler.epoch, getattr(sampler, "seed", None))
        return original(sampler)

    def _check_epoch(self, iterator: Any) -> None:
        """Looks for a sampler of which two passes that steps learned from had the same epoch. A look at a batch is none."""
        sampler = _sampler_of(iterator)
        if not isinstance(sampler, torch.utils.data.Sampler) or sampler not in self._begun:
            return
        begun = self._passes.setdefault(iterator, self._begun[sampler])
        if begun.steps_at_first_batch is None:
            begun.steps_at_first_batch = self._training.num_steps
        if begun.is_seen or self._training.num_steps == begun.steps_at_first_batch:
            return
        begun.is_seen = True
        self._training.check("epoch_not_reshuffled")
        last, optimizer = self._epochs.get(sampler, (None, None))
        # Another training with the same sampler begins with the same epoch.
        if last is not None and last.order == begun.order and optimizer is self._training.stepped:
            seen = f"two epochs in a row had the order of epoch {begun.order[0]}"
            self._training.find("epoch_not_reshuffled", [type(sampler).__name__], seen)
        self._epochs[sampler] = (begun, self._training.stepped)


class _Pass:
    """A pass of a sampler, from the first batch on that it gave."""

    def __init__(self, *order: Any):
        self.order = order  # what it follows from: epoch and seed
        self.steps_at_first_batch: Optional[int] = None
        self.is_seen = False


def _generators() -> Tuple[type, ...]:
    numpy = sys.modules.get("numpy")
    return (random.Random, torch.Generator) + ((numpy.random.Generator, numpy.random.RandomState) if numpy is not None else ())


def _sampler_of(iterator: Any) -> Any:
    """What gives single indices, below samplers of batches."""
    sampler = getattr(iterator, "_index_sampler", None)
    while hasattr(sampler, "batch_sampler"):
        sampler = sampler.batch_sampler
    return getattr(sampler, "sampler", sampler)


def _length(loader: Any) -> Optional[int]:
    """None: a sampler of batches has none."""
    try:
        return len(loader)
    except TypeError:
        return None


def _key_of(loader: Any) -> Any:
    """The data set, as a loader may be made for each epoch; or the loader, where nothing refers weakly to the data set."""
    try:
        hash(loader.dataset)
        weakref.ref(loader.dataset)
        return loader.dataset
    except TypeError:
        return loader
