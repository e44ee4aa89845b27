"""The stopwatch of the process, and NVTX ranges."""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Callable, Dict, Optional, Sequence, TypeVar

from optim_test_tools import _ott
from optim_test_tools._singleton import Singleton, caller

F = TypeVar("F", bound=Callable[..., Any])


Scope = _ott.Scope


def decorate_with_scope(name: str, function: F) -> F:
    """Makes a Scope a decorator."""

    @functools.wraps(function)
    def measured(*args: Any, **kwargs: Any) -> Any:
        with Scope(name):
            return function(*args, **kwargs)

    return measured  # type: ignore[return-value]


class Stopwatch(Singleton, _ott.StopwatchBase):
    """Named measurements over the iterations of a loop: where the time goes, how it spreads, and what measuring cost.

    The process has one stopwatch, which C++ in the same process shares; Stopwatch() returns it. It is off until
    enable(), by whoever, and then a call costs as much as one of an empty function. Thread-safe.

        stopwatch = ott.Stopwatch()
        stopwatch.enable(num_warmup_iters=5, print_every_n_iters=100)
        for batch in batches:
            with stopwatch("forward"):
                loss = model(batch)
            stopwatch.finish_iter()
        print(stopwatch.table())

    Times are in seconds. What breaks a rule, such as ending what was not started, is ignored, counted in stats() and
    logged; on_misuse="raise", and OTT_ON_MISUSE=abort in the environment, raise ott.MisuseError.
    """

    def enable(
        self,
        num_warmup_iters: int = 0,
        print_every_n_iters: Optional[int] = None,
        device_sync: str = "none",
        collective_measurements: Sequence[str] = (),
        cpu_usage_measurement: str = "",
        emit_nvtx: bool = False,
        on_misuse: str = "log",
        print: Optional[Callable[[], None]] = None,
    ) -> None:
        """Switches it on; what was called before is ignored.

        Args:
            num_warmup_iters: iterations that are not counted.
            print_every_n_iters: prints the table after every so many measured iterations; None: never by itself.
            device_sync: "none"; "device": waits for the current CUDA device before the clock is read; "events": waits
                for nothing, CUDA events tell the device's time.
            collective_measurements: names in which a rank waits for others.
            cpu_usage_measurement: while this runs, it is watched how busy the CPUs are.
            emit_nvtx: each interval is an NVTX range too.
            on_misuse: "log" or "raise".
            print: called instead of printing the table.

        Raises:
            ott.FailedPreconditionError: it is on already.
            ValueError: a number out of range.
            ott.UnimplementedError: a device was asked for, and there is none.
        """
        _ott.stopwatch_enable(
            num_warmup_iters=num_warmup_iters,
            print_every_n_iters=print_every_n_iters or 0,
            device_sync=device_sync,
            collective_measurements=list(collective_measurements),
            cpu_usage_measurement=cpu_usage_measurement,
            emit_nvtx=emit_nvtx,
            on_misuse=on_misuse,
            print=print,
            place=caller(),
        )

    def disable(self) -> None:
        """Switches it off and forgets what was measured; it may be enabled again. Nothing may run."""
        _ott.stopwatch_disable()

    @property
    def enabled(self) -> bool:
        """Returns True if it is on, by whomever it was enabled."""
        return _ott.stopwatch_enabled()

    def __call__(self, name: str) -> Scope:
        """A with block, or a decorator, that measures `name`. Blocks nest, and may overlap with those of other threads."""
        return Scope(name)

    def finish_iter(self) -> None:
        """Ends an iteration. Nothing may run but one-time measurements. Not with a TrainingRun, which ends it itself."""
        _ott.stopwatch_finish_iter()

    def set_cpu_usage_measurement(self, name: str) -> None:
        """From now on, watches how busy the CPUs are while `name` runs; another name cannot be set afterwards."""
        _ott.stopwatch_set_cpu_usage_measurement(name)

    @property
    def num_measured_iters(self) -> int:
        """Iterations that ended after warm-up."""
        return _ott.stopwatch_snapshot()["num_measured_iters"]

    def mean_seconds_per_interval(self, name: str) -> Optional[float]:
        """Seconds of a start and end on average; None where it was not measured."""
        return _ott.stopwatch_mean_seconds_per_interval(name)

    def mean_seconds_per_iteration(self, name: str) -> Optional[float]:
        """Seconds on average in an iteration in which it ran; None where it was not measured."""
        return _ott.stopwatch_mean_seconds_per_iteration(name)

    def stats(self) -> Dict[str, Any]:
        """All figures, as the fields of the protobuf message ott.StopwatchStats; times in seconds."""
        return json.loads(_ott.stopwatch_json())

    def table(self) -> str:
        """Returns what was measured, for people."""
        return _ott.stopwatch_table()

    def csv(self) -> str:
        """Returns what was measured, a line for each measurement."""
        return _ott.stopwatch_csv()

    def write(self, directory: str) -> None:
        """Writes stopwatch.pb, .json, .csv and .txt into a directory, each whole or not at all."""
        _ott.stopwatch_write(os.fspath(directory))

    def __repr__(self) -> str:
        if not self.enabled:
            return "<ott.Stopwatch, off>"
        return f"<ott.Stopwatch, {self.num_measured_iters} measured iterations>"


class NVTXRangeWrapper(Singleton, _ott.NvtxBase):
    """NVTX ranges that can be switched off, and that complain when they do not nest.

    The process has one, which C++ in the same process shares; off until enable().

        nvtx = ott.NVTXRangeWrapper()
        nvtx.enable(keep_track_of_range_order=True)
        with nvtx("forward"):
            ...
    """

    def enable(
        self,
        sync_on_push: bool = False,
        sync_on_pop: bool = False,
        keep_track_of_range_order: bool = False,
        on_misuse: str = "log",
    ) -> None:
        """Switches it on.

        Args:
            sync_on_push: waits for the CUDA device before a range begins.
            sync_on_pop: waits for it before a range ends.
            keep_track_of_range_order: remembers the open ranges of each thread, so that pop(expected) compares.
            on_misuse: "log" or "raise", as with Stopwatch.

        Raises:
            ott.FailedPreconditionError: it is on already.
            ott.UnimplementedError: a build without NVTX; or a device was asked for, and there is none.
        """
        _ott.nvtx_enable(sync_on_push, sync_on_pop, keep_track_of_range_order, on_misuse, caller())

    def disable(self) -> None:
        """Switches it off; no range may be open."""
        _ott.nvtx_disable()

    @property
    def enabled(self) -> bool:
        """Returns True if it is on."""
        return _ott.nvtx_enabled()

    def __call__(self, name: str) -> "_Range":
        """A with block, or a decorator, that is a range."""
        return _Range(self, name)


class _Range:
    def __init__(self, nvtx: NVTXRangeWrapper, name: str):
        self._nvtx = nvtx
        self._name = name

    def __enter__(self) -> "_Range":
        self._nvtx.push(self._name)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._nvtx.pop(self._name)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return ranged  # type: ignore[return-value]
