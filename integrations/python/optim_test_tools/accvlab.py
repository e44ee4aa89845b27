"""The classes of ACCV-Lab's optim_test_tools, on ott's core.

    from optim_test_tools.accvlab import NVTXRangeWrapper, Stopwatch, TensorDumper

instead of `from accvlab.optim_test_tools import ...`: names, parameters, defaults, return values and kinds of exceptions
are theirs, dumps are theirs byte for byte, and each class has one object. Where they must differ is in docs/python.md.
The objects are those of ott.Stopwatch and the rest, so that C++ in the same process sees them too.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Sequence as SequenceABC
from enum import Enum
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from optim_test_tools import _ott
from optim_test_tools._compare import Comparison, Verdict
from optim_test_tools._dumper import compute_gradients
from optim_test_tools._errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from optim_test_tools._singleton import Singleton, caller

__all__ = ["NVTXRangeWrapper", "Stopwatch", "TensorDumper", "__version__"]

__version__ = _ott.__version__


class Stopwatch(Singleton, _ott.AccvlabStopwatchBase):
    """Runtime of named parts of a program, per measurement and per iteration.

    Stopwatch() returns the one object; with arguments it enables it, as enable() does. Off, every method is empty.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self.enable(*args, **kwargs)

    def enable(self, num_warmup_iters: int, print_every_n_iters: Optional[int], do_cuda_sync: bool) -> None:
        """Switches it on, once; what was measured before is ignored.

        Args:
            num_warmup_iters: iterations before measuring starts.
            print_every_n_iters: prints after every so many measured iterations; None: only print_eval_times() does.
            do_cuda_sync: waits for the CUDA device at each start and end.

        Raises:
            AssertionError: it is on already.
        """
        try:
            _ott.stopwatch_enable(
                num_warmup_iters=num_warmup_iters,
                print_every_n_iters=print_every_n_iters or 0,
                device_sync="device" if do_cuda_sync else "none",
                collective_measurements=[],
                cpu_usage_measurement="",
                emit_nvtx=False,
                on_misuse="raise",
                print=self.print_eval_times,
                place=caller(),
            )
        except FailedPreconditionError as error:
            raise AssertionError(f"The Stopwatch can be enabled once: {error}") from None

    @property
    def is_enabled(self) -> bool:
        """Returns True if it is on."""
        return _ott.stopwatch_enabled()

    def set_cpu_usage_meas_name(self, name: str) -> None:
        """Measures the CPU usage while `name` runs. Call it before that is first started; the same name may be set again.

        Raises:
            ValueError: another name was set, or `name` was measured already.
        """
        if not self.is_enabled:
            return
        snapshot = _ott.stopwatch_snapshot()
        current = snapshot["cpu_usage_measurement"]
        if current and current != name:
            raise ValueError(f"The CPU usage is measured during `{current}` already, not during `{name}`.")
        if not current and any(name == measured for measured, _, _ in snapshot["measurements"]):
            raise ValueError(f"`{name}` was measured already; set it for CPU usage before its first measurement.")
        _ott.stopwatch_set_cpu_usage_measurement(name)

    def finish_iter(self) -> None:
        """Ends an iteration; AssertionError while a measurement runs."""
        _ott.stopwatch_finish_iter()

    def get_num_nonwarmup_iters_measured(self) -> int:
        """Iterations after warm-up; 0 while off."""
        return _ott.stopwatch_snapshot()["num_measured_iters"]

    def print_eval_times(self) -> None:
        """Prints what was measured, in seconds."""
        if self.is_enabled:
            print("\n".join(_eval_times(_ott.stopwatch_snapshot())))


def _eval_times(snapshot: Dict[str, Any]) -> List[str]:
    num_iters = snapshot["num_measured_iters"]
    measured = snapshot["measurements"]
    lines = ["=" * 24 + " Stopwatch " + "=" * 24]
    if snapshot["num_warmup_iters_done"] < snapshot["num_warmup_iters"]:
        lines.append(
            f"warmup not finished: {snapshot['num_warmup_iters_done']} of {snapshot['num_warmup_iters']} iterations"
        )
    elif num_iters == 0:
        lines.append(f"warmup finished ({snapshot['num_warmup_iters']} iterations), nothing measured yet")
    else:
        lines.append(f"Num. measured iterations: {num_iters}")
        lines.append("Average runtime per iteration:")
        lines += [f"  `{name}`: {total / num_iters}" for name, _, total in measured]
        lines.append("Average runtime per measured interval:")
        lines += [f"  `{name}`: {total / count if count else 0.0}" for name, count, total in measured]
        lines.append("Total runtime:")
        lines += [f"  `{name}`: {total}" for name, _, total in measured]
        if snapshot["cpu_usage_measurement"]:
            lines.append(
                f"Mean CPU usage during `{snapshot['cpu_usage_measurement']}`: {snapshot['cpu_usage_percent']}"
            )
    if snapshot["one_time"]:
        lines.append("One-time measurements:")
        lines += [
            f"  `{name}`: {'running' if running else seconds}" for name, seconds, running in snapshot["one_time"]
        ]
    return lines + ["=" * 59]


class NVTXRangeWrapper(Singleton, _ott.AccvlabNvtxBase):
    """NVTX ranges, switched on from the main script, that can check their order.

    NVTXRangeWrapper() returns the one object; with arguments it enables it, as enable() does. Off, methods are empty.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self.enable(*args, **kwargs)

    def enable(self, sync_on_push: bool, sync_on_pop: bool, keep_track_of_range_order: bool) -> None:
        """Switches it on, once.

        Args:
            sync_on_push: waits for the CUDA device before a range begins.
            sync_on_pop: waits for the CUDA device before a range ends.
            keep_track_of_range_order: remembers the open ranges, so that range_pop(name) checks the name.

        Raises:
            AssertionError: it is on already.
        """
        try:
            _ott.nvtx_enable(bool(sync_on_push), bool(sync_on_pop), bool(keep_track_of_range_order), "raise", caller())
        except FailedPreconditionError as error:
            raise AssertionError(f"The NVTXRangeWrapper can be enabled once: {error}") from None

    @property
    def is_enabled(self) -> bool:
        """Returns True if it is on."""
        return _ott.nvtx_enabled()


class _Type(Enum):
    """The formats in which tensors are stored.

    For all but JSON, the tree has the name of the tensor's file, which lies beside it, as `[tensors.json]a.b.bin`, with
    what describes it in a `.meta.json`. Images have their color channel last; dimensions in front count images.
    """

    JSON = 0
    BINARY = 1
    IMAGE_RGB = 2
    IMAGE_BGR = 3
    IMAGE_I = 4
    #: Refused: a pickle runs code when it is read. Use BINARY.
    PICKLE = 5

    @classmethod
    def is_image(cls, dump_type: "_Type") -> bool:
        """Returns True if it is one of the three kinds of images."""
        return dump_type in (cls.IMAGE_RGB, cls.IMAGE_BGR, cls.IMAGE_I)


_Type.__name__ = "Type"
_Type.__qualname__ = "TensorDumper.Type"


def _format(dump_type: Any) -> str:
    if not isinstance(dump_type, _Type):
        raise ValueError(f"Unsupported dump type: {dump_type!r}, not a TensorDumper.Type")
    if dump_type is _Type.PICKLE:
        raise NotImplementedError("Type.PICKLE is not written, since reading one runs code; use Type.BINARY")
    return dump_type.name.lower()


class TensorDumper(Singleton):
    """Dumps tensors and gradients into a directory, and compares with what was dumped before.

    TensorDumper() returns the one object; TensorDumper(dump_dir) enables it, as enable() does. Off, every method is empty:
    data that are callables are not called, actions do not run, and comparing returns quietly.
    """

    Type = _Type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not hasattr(self, "_dump_dir"):
            self._dump_dir: Optional[str] = None
            self._forget()
            if _ragged_batch_type() is None:
                warnings.warn(
                    "`accvlab.batching_helpers` is not installed, so `RaggedBatch` data cannot be dumped.", stacklevel=2
                )
        if args or kwargs:
            self.enable(*args, **kwargs)

    def _forget(self) -> None:
        self._ranges: List[str] = []
        self._converters: Dict[type, Callable[[Any], Any]] = {}
        self._actions: Dict[int, Callable[[], Any]] = {}
        self._type_for_all: Optional[_Type] = None
        self._compare_parameters: Optional[Dict[str, Any]] = None

    def enable(self, dump_dir: str) -> None:
        """Switches it on, once. Dump number N is written to dump_dir/N.

        Raises:
            RuntimeError: it is on already.
        """
        dump_dir = os.fspath(dump_dir)
        _ott.dumper_enable(
            dir=dump_dir,
            rank=0,
            world_size=1,
            sync=False,
            num_writer_threads=0,
            num_json_threads=0,
            max_bytes_per_dump=-1,
            reference_dir="",
            drop_when_full=False,
        )
        self._forget()
        self._dump_dir = dump_dir

    @property
    def is_enabled(self) -> bool:
        """Returns True if it is on."""
        return _ott.dumper_enabled()

    def push_range(self, range_name: Union[str, Callable[[], str]]) -> None:
        """Paths of what is added until pop_range() start with this name, or with what the callable returns."""
        if _ott.dumper_active():
            self._ranges.append(range_name() if callable(range_name) else range_name)

    def pop_range(self) -> None:
        """Ends the last range; IndexError where there is none."""
        if _ott.dumper_active():
            self._ranges.pop()

    def add_tensor_data(
        self,
        path: str,
        data: Any,
        dump_type: "TensorDumper.Type",
        dump_type_override: Optional[Mapping[str, "TensorDumper.Type"]] = None,
        permute_axes: Optional[Sequence[int]] = None,
        permute_axes_override: Optional[Mapping[str, Optional[Sequence[int]]]] = None,
        exclude: Optional[Sequence[str]] = None,
    ) -> None:
        """Adds data, or what a callable returns, at a path such as "images.left".

        Args:
            path: made as needed. A dict may be merged into a dict that is there, where its names are new.
            data: a tensor, an array, or lists and dicts of these and of what JSON has.
            dump_type: how tensors are stored.
            dump_type_override: by name; that closest to the tensor counts.
            permute_axes: as of torch.permute; None: none.
            permute_axes_override: by name, as above.
            exclude: names that are left out, at any level of dicts.

        Raises:
            AssertionError: something is at the path already.
            ValueError: neither a tensor, a sequence nor a dict is to be added.
            TypeError: an object that is no data, and has no converter.
        """
        if _ott.dumper_active():
            self._add(path, data, dump_type, dump_type_override, permute_axes, permute_axes_override, exclude, False)

    def add_grad_data(
        self,
        path: str,
        data: Any,
        dump_type: "TensorDumper.Type",
        dump_type_override: Optional[Mapping[str, "TensorDumper.Type"]] = None,
        permute_grad_axes: Optional[Sequence[int]] = None,
        permute_grad_axes_override: Optional[Mapping[str, Optional[Sequence[int]]]] = None,
        exclude: Optional[Sequence[str]] = None,
    ) -> None:
        """Adds the gradients with respect to the tensors in data, which set_gradients() computes before the next dump.

        For a tensor that requires no gradient the tree says so; for one on which the function values do not depend it has
        null. Parameters and exceptions are those of add_tensor_data().
        """
        if _ott.dumper_active():
            self._add(
                path, data, dump_type, dump_type_override, permute_grad_axes, permute_grad_axes_override, exclude, True
            )

    def _add(
        self,
        path: str,
        data: Any,
        dump_type: Any,
        type_override: Optional[Mapping[str, Any]],
        axes: Optional[Sequence[int]],
        axes_override: Optional[Mapping[str, Optional[Sequence[int]]]],
        exclude: Optional[Sequence[str]],
        as_gradient: bool,
    ) -> None:
        if callable(data):
            data = data()
        if exclude is not None:
            data = _excluded(data, exclude)
        data = self._converted(data)
        if not isinstance(data, (dict, SequenceABC)) and not _is_tensor(data):
            raise ValueError(f"Unsupported data type: {type(data)}")
        if self._type_for_all is not None:
            dump_type, type_override = self._type_for_all, None
        try:
            _ott.dumper_add(
                path=".".join([*self._ranges, path]),
                data=data,
                format=_format(dump_type),
                format_overrides={str(name): _format(kind) for name, kind in (type_override or {}).items()},
                permute_axes=list(axes or ()),
                permute_axes_overrides={str(name): list(order or ()) for name, order in (axes_override or {}).items()},
                exclude=[],
                as_gradient=as_gradient,
            )
        except (AlreadyExistsError, InvalidArgumentError) as error:
            raise AssertionError(str(error)) from None

    def _converted(self, data: Any) -> Any:
        """The data with converters applied, to what they return as well."""
        if isinstance(data, dict):
            return {name: self._converted(child) for name, child in data.items()}
        if isinstance(data, SequenceABC) and not isinstance(data, str):
            return [self._converted(item) for item in data]
        convert = self._converters.get(type(data))
        if convert is not None:
            return self._converted(convert(data))
        return str(data) if isinstance(data, type) else data

    def set_gradients(self, function_values: Any) -> None:
        """Computes the gradients of add_grad_data() by torch.autograd.grad; those of the training are left alone.

        Args:
            function_values: one scalar tensor, or a list of them.
        """
        if _ott.dumper_active():
            _ott.dumper_set_gradients(lambda tensors: compute_gradients(tensors, function_values))

    def set_dump_type_for_all(
        self, dump_type: "TensorDumper.Type", include_tensors: bool = True, include_grads: bool = True
    ) -> None:
        """Overrides all types given in the code, of tensors, of gradients, or of both."""
        if not _ott.dumper_active():
            return
        _ott.dumper_set_format_for_all(_format(dump_type), include_tensors, include_grads)
        if include_tensors and include_grads:
            self._type_for_all = dump_type

    def dump(self, dump_if_empty: bool = True) -> None:
        """Writes what was added since the last dump, and counts; or compares it, after set_dump_is_compare().

        Args:
            dump_if_empty: False: where nothing was added, nothing is written or counted.

        Raises:
            ValueError: set_gradients() was not called after add_grad_data().
        """
        if not _ott.dumper_active():
            return
        if self._compare_parameters is not None:
            return self.compare_to_dumped_data(**self._compare_parameters, compare_if_empty=dump_if_empty)
        count = _ott.dumper_count()
        try:
            _ott.dumper_dump(dump_if_empty)
        except FailedPreconditionError as error:
            raise ValueError(str(error)) from None
        self._act(count)

    def compare_to_dumped_data(
        self,
        eps_numerical_data: float = 1e-6,
        num_errors_per_tensor_to_show: int = 1,
        allow_missing_data_in_current: bool = False,
        allow_missing_data_in_previous: bool = False,
        as_warning: bool = False,
        compare_if_empty: bool = True,
    ) -> None:
        """Compares what was added since the last dump with the dump of this count, then clears it, and counts.

        Args:
            eps_numerical_data: how far numbers may be from each other.
            num_errors_per_tensor_to_show: of the largest ones.
            allow_missing_data_in_current: what only the reference has is not compared.
            allow_missing_data_in_previous: what only the current data have is not compared.
            as_warning: a difference is a warning, not an error.
            compare_if_empty: False: where nothing was added, nothing is compared or counted.

        Raises:
            ValueError: they differ, or could not be compared; or set_gradients() was not called.
            FileNotFoundError: there is no dump of this count.
        """
        if not _ott.dumper_active():
            return
        count = _ott.dumper_count()
        found = self._dump_dir is not None and os.path.exists(os.path.join(self._dump_dir, str(count), "tensors.json"))
        try:
            comparison = Comparison(
                _ott.dumper_compare(
                    {
                        "atol": eps_numerical_data,
                        "num_worst": num_errors_per_tensor_to_show,
                        "allow_missing": allow_missing_data_in_current,
                        "allow_extra": allow_missing_data_in_previous,
                        "allow_empty": True,
                        "compare_dtype": False,
                    },
                    compare_if_empty,
                )
            )
            if _ott.dumper_count() == count:
                return  # nothing was there to compare
            if not found:
                raise FileNotFoundError(
                    f"There is no dump {count} in {self._dump_dir}: dump the data first, then compare with them."
                )
            if comparison.verdict is not Verdict.EQUAL:
                message = f"The data differ from those of dump {count} in {self._dump_dir}:\n{comparison}"
                if not as_warning:
                    raise ValueError(message)
                warnings.warn(message, stacklevel=2)
        except FailedPreconditionError as error:
            raise ValueError(str(error)) from None
        finally:
            self._act(count)

    def _act(self, count: int) -> None:
        """Runs the action of the count, if it changed."""
        reached = _ott.dumper_count()
        if reached != count and reached in self._actions:
            self._actions[reached]()

    def set_dump_is_compare(
        self,
        eps_numerical_data: float = 1e-6,
        num_errors_per_tensor_to_show: int = 1,
        allow_missing_data_in_current: bool = False,
        allow_missing_data_in_previous: bool = False,
        as_warning: bool = False,
    ) -> None:
        """From now on dump() compares, as compare_to_dumped_data() with these parameters."""
        if not _ott.dumper_active():
            return
        self._compare_parameters = {
            "eps_numerical_data": eps_numerical_data,
            "num_errors_per_tensor_to_show": num_errors_per_tensor_to_show,
            "allow_missing_data_in_current": allow_missing_data_in_current,
            "allow_missing_data_in_previous": allow_missing_data_in_previous,
            "as_warning": as_warning,
        }

    def reset_dump_count(self) -> None:
        """set_dump_count(0)"""
        self.set_dump_count(0)

    def set_dump_count(self, count: int) -> None:
        """The number of the next dump. An action of this count runs."""
        if not _ott.dumper_active():
            return
        _ott.dumper_set_count(count)
        if count in self._actions:
            self._actions[count]()

    def perform_after_dump_count(self, count: int, action: Callable[[], Any]) -> None:
        """Has action() called when the count of dumps reaches this one, as `exit`; it replaces an earlier one of it."""
        if _ott.dumper_active():
            self._actions[count] = action

    def register_custom_converter(self, data_type: type, converter_func: Callable[[Any], Any]) -> None:
        """Has objects of exactly this type dumped as what the function returns, which may be converted again."""
        if _ott.dumper_active():
            self._converters[data_type] = converter_func

    def enable_ragged_batch_dumping(self, as_per_sample: bool = False) -> None:
        """Has RaggedBatch objects that are added from now on dumped.

        Args:
            as_per_sample: True: as a list of samples; False: as their members.

        Raises:
            ImportError: accvlab.batching_helpers is not installed.
        """
        if not _ott.dumper_active():
            return
        ragged_batch = _ragged_batch_type()
        if ragged_batch is None:
            raise ImportError("`accvlab.batching_helpers` is not installed; it is needed to dump ragged batches.")
        self.register_custom_converter(ragged_batch, _samples if as_per_sample else _members)

    def run_if_enabled(self, func: Callable[[], Any]) -> None:
        """Calls func() where the dumper is on."""
        if _ott.dumper_active():
            func()


def _is_tensor(data: Any) -> bool:
    return isinstance(data, _ott.Tensor) or (hasattr(data, "shape") and hasattr(data, "dtype"))


def _excluded(data: Any, names: Sequence[str]) -> Any:
    if not isinstance(data, dict):
        return data
    return {name: _excluded(child, names) for name, child in data.items() if name not in names}


def _ragged_batch_type() -> Optional[type]:
    spec = importlib.util.find_spec("accvlab")
    if spec is None or importlib.util.find_spec("accvlab.batching_helpers") is None:
        return None
    from accvlab.batching_helpers import RaggedBatch  # type: ignore[import]

    return RaggedBatch


def _samples(batch: Any) -> Any:
    return batch.split()


def _members(batch: Any) -> Dict[str, Any]:
    return {
        "data": batch.tensor,
        "sample_sizes": batch.sample_sizes,
        "non_uniform_dim": batch.non_uniform_dim,
        "num_batch_dims": batch.num_batch_dims,
    }
