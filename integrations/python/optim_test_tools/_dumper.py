"""The tensor dumper of the process."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Optional, Sequence, Union

from optim_test_tools import _ott
from optim_test_tools._compare import Comparison
from optim_test_tools._singleton import Singleton


class TensorDumper(Singleton):
    """Dumps tensors and gradients, iteration by iteration, in the format of ACCV-Lab's TensorDumper.

    The process has one, which C++ in the same process shares; off until enable(), or in the iterations that a
    TrainingRun dumps or checks. Thread-safe.

        dumper = ott.TensorDumper()
        dumper.enable("dumps")
        dumper.add("weights.w1", model.w1, format="binary")
        dumper.dump()                       # writes dumps/0

    Data are None, bool, int, float, str, lists and dicts of them, and tensors: PyTorch's, NumPy's, what has the buffer
    protocol or DLPack; any shape, any strides, host or CUDA memory. Tensors in host memory are copied during the call,
    those in CUDA memory in the order of their stream, which is not waited for. Formats: "json", "binary", "npy",
    "safetensors", "statistics", "image_rgb", "image_bgr", "image_i".

    In a process that was forked, as a worker of a DataLoader, every call is ignored.
    """

    def enable(
        self,
        directory: Union[str, "os.PathLike[str]"],
        *,
        rank: int = 0,
        world_size: int = 1,
        num_writer_threads: int = 0,
        num_json_threads: int = 0,
        sync: bool = False,
        max_bytes_per_dump: Optional[int] = None,
        reference_directory: Union[str, "os.PathLike[str]"] = "",
        drop_when_full: bool = False,
    ) -> None:
        """Switches it on; dump number COUNT is written to directory/COUNT.

        Args:
            rank, world_size: kept in each dump.
            num_writer_threads: that write behind the training's back, so that dump() returns after the copy; flush(),
                and the end of the process, wait. Their errors reach the next dump() or flush().
            num_json_threads: that turn one dump's numbers into text; 0: as many as the machine has cores.
            sync: a finished dump survives a crash of the machine.
            max_bytes_per_dump: tensors beyond it are dumped as statistics.
            reference_directory: of dumps; tensors that are bit for bit those of its dump are dumped as statistics.
            drop_when_full: a dump for which there is no room is dropped and counted, instead of waited for.
        """
        _ott.dumper_enable(
            dir=os.fspath(directory),
            rank=rank,
            world_size=world_size,
            sync=sync,
            num_writer_threads=num_writer_threads,
            num_json_threads=num_json_threads,
            max_bytes_per_dump=-1 if max_bytes_per_dump is None else max_bytes_per_dump,
            reference_dir=os.fspath(reference_directory),
            drop_when_full=drop_when_full,
        )

    def disable(self) -> None:
        """Writes what was dumped, forgets what is pending, and switches it off; it may be enabled again."""
        _ott.dumper_disable()

    @property
    def enabled(self) -> bool:
        """Returns True from enable() until disable()."""
        return _ott.dumper_enabled()

    @property
    def active(self) -> bool:
        """Enabled, not paused, and at an iteration that is wanted: whether what is added is kept."""
        return _ott.dumper_active()

    def add(
        self,
        path: str,
        data: Any,
        format: str = "json",
        *,
        format_overrides: Optional[Mapping[str, str]] = None,
        permute_axes: Sequence[int] = (),
        permute_axes_overrides: Optional[Mapping[str, Sequence[int]]] = None,
        exclude: Sequence[str] = (),
    ) -> None:
        """Adds data, or what a callable returns, at a path such as "weights.w1" within the current ranges.

        Args:
            format: how tensors are stored.
            format_overrides: by name within the data; the closest name counts.
            permute_axes: tensors are stored with their axes in this order, as by torch.permute; empty: as they are.
            permute_axes_overrides: by name, as above.
            exclude: names within the data, at any level, that are left out.

        Raises:
            TypeError: an object that is no data, with its path.
            ValueError: a path that is none or that is taken, text that is not UTF-8, a tensor whose memory was freed.
            OverflowError: an int beyond 64 bits.
        """
        if not _ott.dumper_active():
            return
        _ott.dumper_add(
            path=path,
            data=data() if callable(data) else data,
            format=format,
            format_overrides=dict(format_overrides or {}),
            permute_axes=list(permute_axes),
            permute_axes_overrides={name: list(axes) for name, axes in (permute_axes_overrides or {}).items()},
            exclude=list(exclude),
            as_gradient=False,
        )

    def add_grad(self, path: str, data: Any, format: str = "json", *, exclude: Sequence[str] = ()) -> None:
        """Asks for the gradients with respect to the PyTorch tensors in data, which set_gradients() computes."""
        if not _ott.dumper_active():
            return
        _ott.dumper_add(
            path=path,
            data=data() if callable(data) else data,
            format=format,
            format_overrides={},
            permute_axes=[],
            permute_axes_overrides={},
            exclude=list(exclude),
            as_gradient=True,
        )

    def set_gradients(self, function_values: Any) -> None:
        """Computes the gradients that add_grad() asked for, by torch.autograd.grad; .grad is left alone.

        Args:
            function_values: a scalar tensor, such as the loss, or a list of them, whose gradients add up.
        """
        _ott.dumper_set_gradients(lambda tensors: compute_gradients(tensors, function_values))

    def push_range(self, name: str) -> None:
        """Paths of what is added until the matching pop_range() start with this name."""
        _ott.dumper_push_range(name)

    def pop_range(self) -> None:
        """Ends the last range."""
        _ott.dumper_pop_range()

    def set_format_for_all(self, format: str, include_tensors: bool = True, include_grads: bool = True) -> None:
        """Overrides every format given in the code for tensors, for gradients, or both, also of what is pending."""
        _ott.dumper_set_format_for_all(format, include_tensors, include_grads)

    @property
    def count(self) -> int:
        """The number of the next dump; dump() adds 1."""
        return _ott.dumper_count()

    @count.setter
    def count(self, count: int) -> None:
        _ott.dumper_set_count(count)

    def pause(self) -> None:
        """Until resume(), what is added is ignored; what is pending stays."""
        _ott.dumper_pause()

    def resume(self) -> None:
        """Ends pause()."""
        _ott.dumper_resume()

    def discard(self) -> None:
        """Forgets what is pending."""
        _ott.dumper_discard()

    def dump(self, dump_if_empty: bool = True) -> None:
        """Writes what is pending to directory/count, and clears it whether or not that succeeds."""
        _ott.dumper_dump(dump_if_empty)

    def flush(self) -> None:
        """Waits for the writer threads, and raises the first error that no call has raised yet."""
        _ott.dumper_flush()

    @property
    def num_dropped_dumps(self) -> int:
        """Dumps that were dropped since there was no room."""
        return _ott.dumper_num_dropped()

    def compare(self, *, compare_if_empty: bool = True, **options: Any) -> Comparison:
        """Compares what is pending with directory/count (the reference) instead of writing it, and counts.

        Args:
            options: as of ott.compare().
        """
        return Comparison(_ott.dumper_compare(options, compare_if_empty))


def compute_gradients(tensors: Sequence[Any], function_values: Any) -> List[Any]:
    """For each tensor its gradient, a text where it requires none, or None where nothing depends on it."""
    import torch

    sources = [tensor[1] if isinstance(tensor, tuple) else tensor for tensor in tensors]
    wanted = [s for s in sources if isinstance(s, torch.Tensor) and s.requires_grad]
    values = [function_values] if isinstance(function_values, torch.Tensor) else list(function_values)
    found = iter(torch.autograd.grad(values, wanted, retain_graph=True, allow_unused=True) if wanted else ())
    return [
        next(found) if isinstance(s, torch.Tensor) and s.requires_grad else "requires no gradient" for s in sources
    ]
