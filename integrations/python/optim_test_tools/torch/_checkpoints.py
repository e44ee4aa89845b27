"""Checkpoints: the time that they take, and those whose optimizer state was read and that no optimizer took."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

import torch

from . import _hooks


class Checkpoints:
    """Measures checkpoints, and follows what torch.load() returns up to the first step of an optimizer."""

    def __init__(self, observer: Any):
        self._observer = observer
        self._unused: Optional[str] = None

    def install(self, patches: _hooks.Patches) -> None:
        # Also where they are defined, by which they are pickled: a data set may have one as its loader.
        patches.wrap(torch, "save", self._save, also=(torch.serialization,))
        patches.wrap(torch, "load", self._load, also=(torch.serialization,))
        patches.wrap(torch.optim.Optimizer, "load_state_dict", self._load_optimizer)

    def install_distributed(self, patches: _hooks.Patches) -> None:
        """Does nothing while the program has not imported it."""
        checkpoint = sys.modules.get("torch.distributed.checkpoint")
        if checkpoint is not None:
            for name in ("save", "async_save", "save_state_dict", "load", "load_state_dict"):
                patches.wrap(checkpoint, name, self._measure)

    def begin_step(self) -> None:
        """Says what no optimizer took, as the first step begins."""
        unused, self._unused = self._unused, None
        if unused is not None and self._observer.is_before_first_step():
            self._observer.say(f"{unused}, which no optimizer loaded before the first step: momenta begin at zero")

    def _measure(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        return self._observer.measure("checkpoint", original, *args, **kwargs)

    def _save(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._observer.sound.saved(args[1] if len(args) > 1 else kwargs.get("f"))
        return self._measure(original, *args, **kwargs)

    def _load(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        result = self._measure(original, *args, **kwargs)
        if self._observer.is_before_first_step():
            file = args[0] if args else kwargs.get("f")
            self._read(file, result)
            self._observer.sound.loaded(file, result)
        return result

    def _read(self, source: Any, contents: Any) -> None:
        if not isinstance(contents, dict):
            return
        for key, value in contents.items():
            state = value.get("state") if isinstance(value, dict) and "param_groups" in value else None
            if isinstance(state, dict) and state:
                where = source if isinstance(source, (str, os.PathLike)) else "a checkpoint"
                self._unused = f"{where} has an optimizer's state in {key!r}"

    def _load_optimizer(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._unused = None
        self._observer.sound.optimizer_loads()
        return original(*args, **kwargs)
