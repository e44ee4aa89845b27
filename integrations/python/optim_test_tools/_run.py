"""Training runs under observation, and the ranks of a job."""

from __future__ import annotations

import atexit
import json
import os
import sys
import weakref
from typing import Any, Callable, Dict, Mapping, Optional, Union

from optim_test_tools import _ott

Ranks = _ott.Ranks

# mpirun and srun set these for each process.
_MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")


def ranks(communicator: Any = None, *, timeout: float = 60.0) -> Ranks:
    """The ranks of this job. Collective over them.

    Args:
        communicator: a communicator of mpi4py; "mpi": all of MPI; "tcp": by MASTER_ADDR, MASTER_PORT, RANK and
            WORLD_SIZE, which torchrun sets, or by what srun sets; "local": this process alone; None: mpi where mpirun
            (or srun with PMI) started the process, else tcp where these variables are set, else local.
        timeout: seconds for the ranks to find together.

    torchrun's own store listens at MASTER_PORT, so that under it rank 0 listens at the port above, or at
    OTT_MASTER_PORT where that is set.
    """
    made = _make_ranks(communicator, timeout)
    _live_ranks.add(made)
    return made


def _make_ranks(communicator: Any, timeout: float) -> Ranks:
    if communicator is None:
        if any(name in os.environ for name in _MPI_VARIABLES):
            communicator = "mpi"
        elif "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            communicator = "tcp"
        elif "SLURM_STEP_NUM_TASKS" in os.environ and "SLURM_PROCID" in os.environ:
            communicator = "tcp"
        else:
            communicator = "local"
    if communicator == "local":
        return _ott.local_ranks()
    global _uses_mpi
    if communicator == "mpi":
        _uses_mpi = True
        return _ott.mpi_ranks(None, timeout)
    if communicator == "tcp":
        port = None
        if "TORCHELASTIC_RUN_ID" in os.environ and "OTT_MASTER_PORT" not in os.environ:
            try:
                port = int(os.environ["MASTER_PORT"]) + 1
            except (KeyError, ValueError):
                pass  # the error below names the variable
        return _ott.tcp_ranks(None, port, None, None, timeout)
    if hasattr(communicator, "py2f"):
        _uses_mpi = True
        return _ott.mpi_ranks(communicator.py2f(), timeout)
    raise TypeError(f"no communicator of mpi4py, nor 'mpi', 'tcp' or 'local': {communicator!r}")


def set_text_sink(function: Optional[Callable[[str], None]]) -> None:
    """Has tables, verdicts and notices go to function(lines) instead of stdout; None: to stdout again.

    It is called on any thread, for whole lines. Warnings and errors go to stderr in any case.
    """
    _ott.set_text_sink(function)


class TrainingRun:
    """A training run under observation: enables the helpers that the configuration names, keeps the run directory, and
    at the end of each iteration cross-checks, dumps and gathers as configured. What is not configured costs nothing.

        with ott.TrainingRun({"run_dir": "out/run1", "stopwatch": {"num_warmup_iters": 5}}) as run:
            for batch in batches:
                with stopwatch("forward"):
                    ...
                run.finish_iter()

    Every method but metric() is collective over the ranks. The tensors that are checked and dumped are those given to
    ott.TensorDumper() during the iteration. Leaving the block by an exception does not wait for other ranks.
    """

    def __init__(
        self,
        config: Union[None, str, "os.PathLike[str]", Mapping[str, Any]] = None,
        ranks: Union[None, Ranks, Any] = None,
        directory: str = "",
    ):
        """
        Args:
            config: the file of an ott.Config as protobuf text, or its fields in a dict (core/base/config.proto); None: the
                file that OTT_CONFIG names, or nothing if it is unset.
            ranks: what ott.ranks() returned or takes.
            directory: that relative directories of the configuration lie in; empty: the current one, whatever it is later.

        Raises:
            ott.InvalidArgumentError: no such configuration; the message names file, line or field.
            ott.FailedPreconditionError: a helper is enabled already.
            ott.DeadlineExceededError: other ranks did not come.
        """
        path, text = None, None
        if isinstance(config, Mapping):
            text = json.dumps(config)
        elif config is not None:
            path = os.fspath(config)
        self.ranks = ranks if isinstance(ranks, Ranks) else globals()["ranks"](ranks)
        self._run = _ott.TrainingRun(self.ranks, path, text, directory)
        self._finished = False
        _live_runs.add(self)

    def metric(self, name: str, value: float) -> None:
        """Keeps a number of the iteration, such as its loss, for `ott curves`: on one rank, or on each its own."""
        self._run.metric(name, float(value))

    def finish_iter(self) -> None:
        """Ends the iteration. Raises ott.AbortedError for a divergence if the configuration says so."""
        self._run.finish_iter()

    def finish(self) -> None:
        """Writes and prints what was measured, once, after the last iteration."""
        self._finished = True
        self._run.finish()

    def close(self) -> None:
        """Waits until the dumps are written, and switches off what the run enabled, so that another may start."""
        self._run.close()
        _live_runs.discard(self)

    @property
    def iteration(self) -> int:
        """The number of the current iteration."""
        return self._run.iteration

    @property
    def run_dir(self) -> str:
        """The run directory that this run got, which may be an attempt_N of the configured one; empty: none."""
        return self._run.run_dir

    @property
    def diverged(self) -> bool:
        """Returns True if a cross-check found a difference, or could not be made, on any rank so far."""
        return self._run.diverged

    def on_divergence(self, function: Callable[[Dict[str, Any], str], None]) -> None:
        """Has function(verdict, text) called for each verdict that does not pass, on every rank, in finish_iter().

        What it raises is raised there.
        """
        self._run.set_on_divergence(lambda verdict, text: function(json.loads(verdict), text))

    def on_hang(self, function: Callable[[Dict[str, Any]], None]) -> None:
        """Has function(verdict) called, on a thread of its own, where a rank stands. Needs hang.after_seconds."""
        self._run.set_on_hang(lambda verdict: function(json.loads(verdict)))

    def __enter__(self) -> "TrainingRun":
        return self

    def __exit__(self, exception_type: Any, *rest: Any) -> None:
        try:
            if exception_type is None and not self._finished:
                self.finish()
        finally:
            if exception_type is None:
                self.close()


_live_runs: "weakref.WeakSet[TrainingRun]" = weakref.WeakSet()
_live_ranks: "weakref.WeakSet[Ranks]" = weakref.WeakSet()
_process = os.getpid()
_uses_mpi = False


@atexit.register
def _close_what_is_open() -> None:
    """Lets runs that nobody closed write what they have, while Python still runs, and ends MPI."""
    if os.getpid() != _process:
        return
    for run in list(_live_runs):
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            run._run.set_interrupted()
        try:
            run.close()
        except RuntimeError:
            return  # scopes are open: what they write into stays
    # A rank that failed does not wait for the others in MPI_Finalize: that it did not call it tells mpirun to end them.
    if not hasattr(sys, "last_value"):
        for made in list(_live_ranks):
            made.close()
    elif _uses_mpi and "mpi4py.MPI" in sys.modules:
        # mpi4py would call it next.
        sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(1)
