"""Observes PyTorch's operations."""

from __future__ import annotations

import os
from typing import Any


class emit_nvtx:
    """NVTX ranges around PyTorch's operations while a with block is open, on every thread, forward and backward.

    Labels are those of torch.autograd.profiler.emit_nvtx(record_shapes=True), which works in PyTorch's CUDA builds alone;
    this one works in all. In the iterations that a TrainingRun profiles, the operations are in its trace as well.

        with ott.emit_nvtx():
            train()

    Args:
        record_shapes: sizes of inputs in the label.
        record_json: a second range within each operator's, with its arguments in JSON.

    Raises:
        ott.UnimplementedError: ott was built without NVTX, or without the LibTorch that this PyTorch has.
        ott.FailedPreconditionError: another one is open.
    """

    def __init__(self, record_shapes: bool = True, record_json: bool = False):
        self._options = (record_shapes, record_json)
        self._observer: Any = None

    def __enter__(self) -> "emit_nvtx":
        module = _module()
        self._observer = module.Observer(*self._options)
        return self

    def __exit__(self, *exception: Any) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.close()


def _module() -> Any:
    """The extension, where it would use the library that PyTorch has loaded, and not load another one beside it."""
    import torch  # noqa: F401  loads the library

    from optim_test_tools._errors import UnimplementedError

    path = os.path.join(os.path.dirname(__file__), "_ott_torch.so")
    if not os.path.exists(path):
        raise UnimplementedError("ott.emit_nvtx() needs a build of ott with LibTorch, by Bazel; the wheel has none")
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        loaded = {line.split()[-1] for line in file if "/libtorch_cpu.so" in line}
    with open(path, "rb") as file:
        extension = file.read()
    for library in loaded:
        # By its name without the last numbers: libtorch_cpu.so.1.13 of libtorch_cpu.so.1.13.0.
        parts = os.path.basename(library).split(".")
        if any(b"\0" + ".".join(parts[:end]).encode() + b"\0" in extension for end in range(2, len(parts) + 1)):
            from optim_test_tools import _ott_torch  # type: ignore[attr-defined]

            return _ott_torch
    raise UnimplementedError(f"ott.emit_nvtx() was built with another LibTorch than that of this PyTorch: {loaded}")
