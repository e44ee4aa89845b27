"""Tools for making distributed training faster and proving that nothing broke on the way.

    import optim_test_tools as ott
    stopwatch = ott.Stopwatch()                      # where the time goes
    dumper = ott.TensorDumper()                      # tensors and gradients to files
    with ott.TrainingRun("ott.textproto") as run:    # all of it, over the ranks of the job
        for batch in batches:
            with stopwatch("forward"):
                ...
            run.finish_iter()
    print(ott.compare("out/a/rank_00000/dumps/0", "out/b/rank_00000/dumps/0", atol=1e-6))

Nothing costs anything before it is enabled. optim_test_tools.accvlab has the classes of ACCV-Lab's optim_test_tools, under their
names. The command `ott` asks the same questions of what runs left on disk.
"""

import importlib
from typing import Any

try:
    from optim_test_tools import _ott
except ImportError as error:
    from optim_test_tools import _import_error

    raise ImportError(_import_error.explain(error)) from None

from optim_test_tools import profiler
from optim_test_tools._compare import Comparison, Dump, RunsComparison, Verdict, compare, compare_runs, load_dump, show
from optim_test_tools._dumper import TensorDumper
from optim_test_tools._errors import (
    AbortedError,
    AlreadyExistsError,
    DataLossError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    MisuseError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from optim_test_tools._run import Ranks, TrainingRun, ranks, set_text_sink
from optim_test_tools._stopwatch import NVTXRangeWrapper, Scope, Stopwatch
from optim_test_tools._torch import emit_nvtx

__version__ = _ott.__version__


def __getattr__(name: str) -> Any:
    """Imports optim_test_tools.torch where it is asked for, as it imports PyTorch."""
    if name != "torch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.torch")


__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "Comparison",
    "DataLossError",
    "DeadlineExceededError",
    "Dump",
    "Error",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "MisuseError",
    "NVTXRangeWrapper",
    "NotFoundError",
    "PermissionDeniedError",
    "Ranks",
    "RunsComparison",
    "ResourceExhaustedError",
    "Scope",
    "Stopwatch",
    "TensorDumper",
    "TrainingRun",
    "UnavailableError",
    "UnimplementedError",
    "Verdict",
    "__version__",
    "compare",
    "compare_runs",
    "emit_nvtx",
    "load_dump",
    "profiler",
    "ranks",
    "set_text_sink",
    "show",
]
