"""Observes trainings with PyTorch, of which no line changes.

    torchrun --nproc_per_node 4 -m optim_test_tools train.py --lr 3e-4

or, in the program, before the loop:

    import optim_test_tools as ott
    ott.torch.observe(model, optimizer, loader)
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Callable, Mapping, Optional, Union

from ._observer import Observer

_observer: Optional[Observer] = None


def install(
    config: Union[None, str, "os.PathLike[str]", Mapping[str, Any]] = None,
    name: str = "train",
    activations: Optional[str] = None,
) -> Observer:
    """Observes whatever is trained in this process from now on; again: the same observer."""
    global _observer
    if _observer is None:
        _observer = Observer(config, name, activations)
        _observer.install()
        atexit.unregister(_finish_at_exit)
        atexit.register(_finish_at_exit)
    return _observer


def renew(config: Any, name: str, activations: Optional[str]) -> None:
    """install() in a process that another one started, by fork with that one's observer."""
    global _observer
    if _observer is not None:
        _observer.take_hooks_back()
        _observer = None
    install(config, name, activations)


def observe(
    model: Any = None,
    optimizer: Any = None,
    loader: Any = None,
    config: Union[None, str, "os.PathLike[str]", Mapping[str, Any]] = None,
    activations: Optional[str] = None,
) -> Observer:
    """Observes the training from its first forward pass to finish(), or to the end of the program.

    Args:
        model: a module or several; they name tensors before those that are seen later.
        optimizer: an optimizer or several. Under PyTorch 1.13 those must be given that were made before this call.
        loader: a DataLoader, or anything that is iterated over; the time before a forward pass counts as "data" anyway.
        config: as of TrainingRun; None: the file that OTT_CONFIG names, or times, collectives and, of replicas that are
            known to be such, checks every 100 iterations, into OTT_RUN_DIR or ott_runs/NAME.
        activations: glob of the names of leaf modules, such as "h.*", of which what they return is checked and dumped, too.
    """
    name = os.path.splitext(os.path.basename(sys.argv[0] or "train"))[0] or "train"
    observer = install(config, name, activations)
    for item in model if isinstance(model, (list, tuple)) else [model]:
        if item is not None:
            observer.models.add_model(item)
    for item in optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]:
        if item is not None:
            observer.observe_optimizer(item)
    return observer


def _forget_in_fork() -> None:
    if _observer is not None:
        _observer.forget()


os.register_at_fork(after_in_child=_forget_in_fork)


def _end(write: Callable[[Observer], None]) -> None:
    global _observer
    observer, _observer = _observer, None
    if observer is not None:
        write(observer)
        observer.close()


def finish() -> None:
    """Writes and prints what was observed, and takes the hooks back. Collective over the ranks."""
    _end(Observer.finish)


def leave() -> None:
    """Ends the observation of a rank that failed, which does not wait for the others."""
    _end(Observer.keep)


def _finish_at_exit() -> None:
    if not hasattr(sys, "last_value"):
        finish()
    elif _observer is not None:  # the rank failed: its run closes later, and says whether Ctrl-C ended it
        _observer.keep()
