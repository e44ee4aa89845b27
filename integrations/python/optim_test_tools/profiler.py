"""torch.profiler's interface for what this package records: measurements, NVTX ranges, operations, steps.

    import optim_test_tools as ott

    with ott.profiler.profile(
        schedule=ott.profiler.schedule(wait=1, warmup=1, active=3, repeat=2),
        on_trace_ready=ott.profiler.tensorboard_trace_handler("./log"),
    ) as prof:
        for batch in batches:
            train(batch)
            prof.step()

PyTorch's operations are recorded within `ott.emit_nvtx()`. What the devices did is recorded by `ott profile` or
torch.profiler, whose traces `ott trace` joins with these. docs/profiling.md says what else differs from torch.profiler.
"""

from __future__ import annotations

import atexit
import os
import socket
import time
from typing import Any, Callable, NamedTuple, Optional, Sequence, Type, TypeVar

from optim_test_tools import _ott
from optim_test_tools._singleton import caller

__all__ = ["Schedule", "profile", "schedule", "tensorboard_trace_handler"]

P = TypeVar("P", bound="profile")

# So many steps that no training ends them: one window from start() to stop().
_ALL_STEPS = 1 << 40


class Schedule(NamedTuple):
    """The steps that are recorded; made by schedule()."""

    wait: int
    warmup: int
    active: int
    repeat: int
    skip_first: int
    skip_first_wait: bool


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """After skip_first steps, cycles of `wait` steps without, `warmup` whose events are forgotten, and `active` recorded.

    Args:
        wait: as above.
        warmup: as above.
        active: as above; at least one.
        repeat: how many cycles; 0: to the end.
        skip_first: as above.
        skip_first_wait: 1: the first cycle has no `wait`.
    """
    return Schedule(wait, warmup, active, repeat, skip_first, bool(skip_first_wait))


def tensorboard_trace_handler(
    dir_name: str, worker_name: Optional[str] = None, use_gzip: bool = False
) -> Callable[["profile"], None]:
    """For on_trace_ready: writes each window into a folder that TensorBoard's plug-in for PyTorch's profiler looks through.

    Args:
        dir_name: the folder, which is made where there is none.
        worker_name: what files begin with; None: HOST_PID.
        use_gzip: compresses them.
    """

    def write(prof: "profile") -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker}.{time.time_ns() // 1_000_000}.pt.trace.json{suffix}")
        )

    return write


class profile:  # noqa: N801, torch.profiler's name
    """Records windows of steps, from start() or the block's beginning to stop() or its end.

    There is one profiler in a process: ott.TrainingRun with `profile` uses it, too.
    """

    def __init__(
        self,
        *,
        activities: Optional[Sequence[Any]] = None,
        schedule: Optional[Schedule] = None,
        on_trace_ready: Optional[Callable[["profile"], Any]] = None,
        record_shapes: bool = True,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        synchronize_device: bool = False,
    ) -> None:
        """
        Args:
            activities: None, or torch.profiler's; of the CPU alone.
            schedule: made by schedule(); None: one window, of all.
            on_trace_ready: called with this object when a window has closed, to export it.
            record_shapes: operations have their shapes in any case.
            profile_memory: refused: no allocator is asked. counter() shows numbers of your own.
            with_stack: refused: no stacks are recorded. Operations of emit_nvtx() and C++ name file and line.
            with_flops: allowed: `ott prof` derives FLOPs from shapes.
            synchronize_device: waits for the CUDA device where a recorded step begins and ends.

        Raises:
            NotImplementedError: what cannot be recorded was asked for.
            TypeError: a schedule of torch.profiler, which does not tell its numbers.
        """
        for name, asked in (("profile_memory", profile_memory), ("with_stack", with_stack)):
            if asked:
                raise NotImplementedError(f"{name}: not recorded here; docs/profiling.md says what there is instead")
        for activity in activities or ():
            if "CPU" not in str(activity):
                raise NotImplementedError(f"{activity}: devices are recorded by `ott profile`, or by torch.profiler")
        if schedule is not None and not isinstance(schedule, Schedule):
            raise TypeError("schedule: use that of optim_test_tools.profiler.schedule()")
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._synchronize_device = synchronize_device
        self._place = caller()
        self.step_num = 0

    def __enter__(self: P) -> P:
        self.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *exception: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begins step 0. ott.FailedPreconditionError where a profiler is on already."""
        plan = self._schedule or Schedule(0, 0, _ALL_STEPS, 1, 0, False)
        _ott.profiler_enable(
            skip_first=plan.skip_first,
            wait=plan.wait,
            warmup=plan.warmup,
            active=plan.active,
            repeat=plan.repeat,
            skip_first_wait=plan.skip_first_wait,
            synchronize_device=self._synchronize_device,
            on_window=self._window_closed,
            place=self._place,
        )
        self.step_num = 0
        # While Python still runs what on_trace_ready needs.
        atexit.register(self.stop)

    def step(self) -> None:
        """Ends a step and begins the next."""
        _ott.profiler_step()
        self.step_num += 1

    def stop(self) -> None:
        """Ends the profiling, and a window that has at least one whole step; without a schedule, any."""
        atexit.unregister(self.stop)
        if self._schedule is None and self.step_num == 0:
            self.step()
        _ott.profiler_stop()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the window that closed last, in on_trace_ready and afterwards.

        Args:
            path: ends with .json, .json.gz, .perfetto-trace or .perfetto-trace.gz.

        Raises:
            ott.FailedPreconditionError: no window has closed, or the next one has begun.
        """
        rank = os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", ""))
        _ott.profiler_write(os.fspath(path), int(rank) if rank.isdecimal() else None)

    def mark(self, name: str) -> None:
        """A moment, such as a checkpoint."""
        _ott.profiler_mark(name)

    def counter(self, name: str, value: float) -> None:
        """From now on a number shows this value: memory, loss, throughput."""
        _ott.profiler_counter(name, value)

    def _window_closed(self) -> None:
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)
