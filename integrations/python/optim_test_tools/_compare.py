"""Comparisons, and dumps read back."""

from __future__ import annotations

import enum
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from optim_test_tools import _ott
from optim_test_tools._tensors import IMPORTERS


class Verdict(enum.IntEnum):
    """The result of a comparison, as the exit code of the command ott."""

    EQUAL = 0
    DIFFERENT = 1
    #: Never a pass: nothing was there to compare, or it could not be read.
    COULD_NOT_COMPARE = 2

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class Comparison:
    """The result of ott.compare(). print() shows it; it is true if the verdict is EQUAL, and only then."""

    def __init__(self, comparison: "_ott.Comparison"):
        self._comparison = comparison

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict on all tensors together."""
        return Verdict(self._comparison.verdict)

    @property
    def bitwise_equal(self) -> bool:
        """Returns True if all is equal to the bit."""
        return self._comparison.bitwise_equal

    @property
    def results(self) -> List[Dict[str, Any]]:
        """A dict for each tensor: path, status, and the figures, such as max_abs_error and passing_atol."""
        return json.loads(self._comparison.json())["results"]

    def text(self, max_failures: int = 20) -> str:
        """Says what failed, with figures, then how many passed, and the verdict on the last line."""
        return self._comparison.text(max_failures)

    def json(self) -> str:
        """All results as JSON, in which NaN and Infinity may stand."""
        return self._comparison.json()

    def csv(self) -> str:
        """A line for each result."""
        return self._comparison.csv()

    def junit_xml(self) -> str:
        """For CI servers: a test case for each result."""
        return self._comparison.junit_xml()

    def assert_equal(self) -> None:
        """Raises AssertionError with the text, unless the verdict is EQUAL."""
        if not self:
            raise AssertionError(self.text())

    def __bool__(self) -> bool:
        return self.verdict is Verdict.EQUAL

    def __str__(self) -> str:
        return self.text().rstrip("\n")

    def __repr__(self) -> str:
        return f"<ott.Comparison: {self._comparison.summary()}>"


def compare(
    reference: Any,
    current: Any,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    nan_equal: bool = False,
    bitwise: bool = False,
    default_tolerances: bool = False,
    tolerances: Optional[Mapping[str, Tuple[float, float]]] = None,
    compare_dtype: bool = True,
    allow_missing: bool = False,
    allow_extra: bool = False,
    allow_empty: bool = False,
    compare_order: bool = False,
    num_worst: int = 5,
    num_threads: int = 0,
) -> Comparison:
    """Compares tensors, trees of them in lists and dicts, or dumps; what could not be compared is never equal.

    Args:
        reference: a tensor, a tree, or an os.PathLike or str: the directory of a dump, such as dumps/0.
        current: the same; a directory only where the reference is one.
        atol, rtol: what passes: abs(current - reference) <= atol + rtol * abs(reference).
        nan_equal: NaN matches NaN; it never matches a number.
        bitwise: only equal bits match, and the tolerances are not used.
        default_tolerances: those of torch.testing for each tensor's dtype.
        tolerances: (atol, rtol) by glob over paths; the first that matches counts instead.
        compare_dtype: False: tensors of different dtypes are compared as numbers.
        allow_missing, allow_extra: what only the reference, or only the current has, is not compared.
        allow_empty: sides that agree and have no elements are equal.
        compare_order: dicts with their names in another order differ.
        num_worst: elements that the text shows of each tensor.
        num_threads: 0: as many as the machine has cores; the result is the same.

    Returns:
        A Comparison, with .verdict. Other Python threads run meanwhile.
    """
    options = {
        "atol": atol,
        "rtol": rtol,
        "nan_equal": nan_equal,
        "bitwise": bitwise,
        "default_tolerances": default_tolerances,
        "tolerances": dict(tolerances or {}),
        "compare_dtype": compare_dtype,
        "allow_missing": allow_missing,
        "allow_extra": allow_extra,
        "allow_empty": allow_empty,
        "compare_order": compare_order,
        "num_worst": num_worst,
        "num_threads": num_threads,
    }
    return Comparison(_ott.compare(_side(reference), _side(current), options))


class RunsComparison:
    """What ott.compare_runs() found. print() shows it; it is true where the verdict is EQUAL, and only then."""

    def __init__(self, verdict: int, text: str, json_text: str):
        #: Of all that was compared.
        self.verdict = Verdict(verdict)
        self._text, self._json = text, json_text

    @property
    def states(self) -> Dict[str, Dict[str, Any]]:
        """Of two checkpoints: by part of the state, as "weights" and "optimizer step", how many values differ or are missing."""
        dumps = json.loads(self._json)["dumps"]
        return {state["kind"]: state for dump in dumps[:1] for state in dump["states"]}

    def json(self) -> str:
        """What `ott compare --format json` writes, without its answers."""
        return self._json

    def __bool__(self) -> bool:
        return self.verdict is Verdict.EQUAL

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<ott.RunsComparison: {self.verdict}>"


def compare_runs(
    reference: Union[str, "os.PathLike[str]"],
    current: Union[str, "os.PathLike[str]"],
    *,
    names: Union[str, "os.PathLike[str]", None] = None,
    **options: Any,
) -> RunsComparison:
    """Compares checkpoints, folders of them, or run directories, as `ott compare` does.

    Args:
        reference: a checkpoint's file or folder, a folder of numbered checkpoints, or a run directory.
        current: the same kind.
        names: a file that says which tensors go together (docs/checkpoints.md).
        **options: those of ott.compare(), such as bitwise and allow_missing.
    """
    given = {"num_worst": 1, **options}
    return RunsComparison(*_ott.compare_runs(os.fspath(reference), os.fspath(current), None if names is None else os.fspath(names), given))


def show(path: Union[str, "os.PathLike[str]"]) -> Dict[str, Any]:
    """Returns what a checkpoint or a dump holds, as `ott show --format json` has it.

    "format" and "written_by" say what it is; "tensors" has a dict for each tensor and number: path, state, dtype, shape,
    num_bytes, l2_norm, min, max, mean, num_nan, num_inf, num_parts and shares_with.

    Args:
        path: a checkpoint's file or folder, or a dump's folder.
    """
    return json.loads(_ott.show(os.fspath(path)))


def _side(data: Any) -> Any:
    return os.fspath(data) if isinstance(data, os.PathLike) else data


class Dump(NamedTuple):
    """A dump read back: trees of dicts and lists with tensors in them."""

    tensors: Dict[str, Any]
    #: None where no gradients were dumped.
    grads: Optional[Dict[str, Any]]
    #: These are None in a dump of ACCV-Lab's Python TensorDumper.
    iteration: Optional[int]
    rank: Optional[int]
    world_size: Optional[int]


def load_dump(directory: Union[str, "os.PathLike[str]"], as_: str = "numpy") -> Dump:
    """Reads the dump in a directory such as dumps/0: ott's, or that of ACCV-Lab's Python TensorDumper.

    Args:
        as_: "numpy": arrays that cannot be written to, of which those in files of their own are mapped and cost memory
            as they are touched; bfloat16 as ml_dtypes has it, or where that is not installed as float32. "torch":
            copies.

    Raises:
        ott.NotFoundError: there is no dump.
        ott.DataLossError: it was never finished, or a file is cut off.
        ott.InvalidArgumentError: it is no dump. The message names the file.
    """
    if as_ not in IMPORTERS:
        raise ValueError(f"as_ is one of {', '.join(map(repr, IMPORTERS))}, not {as_!r}")
    dump = _ott.load_dump(os.fspath(directory))

    def made(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: made(child) for name, child in value.items()}
        if isinstance(value, list):
            return [made(child) for child in value]
        return IMPORTERS[as_](value) if isinstance(value, _ott.Tensor) else value

    return Dump(**{name: made(value) for name, value in dump.items()})
