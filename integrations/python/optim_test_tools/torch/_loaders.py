"""DataLoaders: how their data are called, and which of them feed evaluations."""

from __future__ import annotations

import sys
from typing import Any, Dict

from . import _hooks


class Loaders:
    """Remembers what was loaded last, so that the forward pass that it feeds tells what the loader is for."""

    def __init__(self) -> None:
        self._names: Dict[type, str] = {}
        self._last: Any = None  # iterator
        # By identity: samplers may share a dataset. Iterators that fed training do so to their end, whatever else their sampler feeds.
        self._training = _hooks.WeakIds()
        self._evaluation = _hooks.WeakIds()

    def next_is_for_evaluation(self, iterator: Any) -> bool:
        """Returns True if the forward passes that this iterator's loader fed last had no gradients."""
        self._last = iterator
        return iterator not in self._training and _sampler_of(iterator) in self._evaluation

    def feeds(self, training: bool) -> None:
        """Called as a forward pass begins."""
        if self._last is None:
            return
        if training:
            self._training.add(self._last)
            self._evaluation.discard(_sampler_of(self._last))
            self._last = None
        elif self._last not in self._training:
            self._evaluation.add(_sampler_of(self._last))

    def name_of(self, dataset: Any) -> str:
        """The measurement of a loader: its dataset, and where that is written, or else the line that waits for it."""
        # Inside of PyTorch's own, such as Subset.
        while type(dataset).__module__.startswith("torch.") and hasattr(dataset, "dataset"):
            dataset = dataset.dataset
        kind = type(dataset)
        if kind not in self._names:
            read = (getattr(kind, name, None) for name in ("__getitems__", "__getitem__", "__iter__"))
            place = next(filter(None, map(_hooks.place_of, filter(None, read))), "") or _hooks.place_of_caller()
            self._names[kind] = sys.intern(f"data of {kind.__name__}, {place}".rstrip(", "))
        return self._names[kind]


def _sampler_of(iterator: Any) -> Any:
    return getattr(iterator, "_index_sampler", iterator)
