"""The log of operations, in the iterations that `op_log` of the configuration selects: each operation of PyTorch with its
module and the line of the program that called it, for `ott origin`."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _ott
from . import _hooks

# These hold or are given what lies elsewhere, or memory that nothing was written to, and are no computation.
_LEFT_OUT = (
    "aten::set_",
    "aten::empty",
    "aten::new_empty",
    "aten::resize_",
    "aten::_resize_output",
    "aten::_local_scalar_dense",
    "aten::is_pinned",
)
# These write their first argument and do not read it.
_WRITERS = {
    "_foreach_copy_",
    "_foreach_zero_",
    "bernoulli_",
    "cauchy_",
    "copy_",
    "exponential_",
    "fill_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
    "zero_",
}


class Operations:
    """Logs from begin() to end(), which are called around each iteration that is selected."""

    def __init__(self, models: Any, fail: Callable[[Exception], None]):
        self._models = models
        self.fail = fail
        self._mode: Optional[_Mode] = None
        self._ended: List[_Mode] = []  # within a backward pass
        self._hooks: List[Any] = []
        self._names: Dict[int, str] = {}
        # The modules whose forward pass is open.
        self.modules: List[str] = []
        self.phase = ""
        self._updates: List[Tuple[Any, List[Any]]] = []
        # Collectives that nobody has waited for: the Work or tensor to wait for, the operation, and the outputs that it makes then.
        self._unfinished: Dict[int, Tuple[Any, Any, List[Any]]] = {}

    @property
    def is_on(self) -> bool:
        return self._mode is not None

    def begin(self) -> None:
        """Does nothing within a backward pass, which would take the mode away as it ends."""
        self.leave()
        if _is_in_backward():
            return
        self._names = {id(module): name for name, module in self._models.modules()}
        self.modules = []
        module_hooks = torch.nn.modules.module
        self._hooks = [
            module_hooks.register_module_forward_pre_hook(self._enter),
            module_hooks.register_module_forward_hook(self._leave, **_hooks.ALWAYS),
        ]
        self._mode = _Mode(self)
        self._mode.__enter__()

    def end(self) -> None:
        for _, operation, _ in self._unfinished.values():
            operation.close()
        self._unfinished.clear()
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.logs = False
            self._ended.append(mode)
        while self._hooks:
            self._hooks.pop().remove()
        self.leave()

    def leave(self) -> None:
        """Takes away the modes that have ended, once no backward pass keeps them."""
        while self._ended and not _is_in_backward():
            self._ended.pop().__exit__(None, None, None)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves out what the observation itself computes."""
        if self._mode is None:
            yield
            return
        was, self._mode.logs = self._mode.logs, False
        try:
            yield
        finally:
            if self._mode is not None:
                self._mode.logs = was

    def name_models(self) -> None:
        """Adds models that came since begin()."""
        if self.is_on:
            self._names = {id(module): name for name, module in self._models.modules()}

    def _enter(self, module: Any, args: Any) -> None:
        if not _hooks.is_compiling():
            self.modules.append(self._names.get(id(module), self.modules[-1] if self.modules else ""))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if not _hooks.is_compiling() and self.modules:
            self.modules.pop()

    def add(self, name: str, role: str, module: str, inputs: List[Any], outputs: List[Any]) -> None:
        """An operation that is seen as a whole: a batch that was loaded, gradients that were reduced."""
        if self.is_on and not _hooks.is_learning_shapes():
            self._finish_unless_pending(self.start(name, role, module, inputs), outputs)

    def add_shards(self) -> None:
        """This rank's parts of the parameters, by their names: what gathers them reads them all at once."""
        for name, parameter in self._models.parameters().items():
            if _hooks.is_sharded(parameter):
                self.add("shard", "operation", name, [parameter], [])

    def start(self, name: str, role: str, module: str, inputs: List[Any]) -> Any:
        """An operation that reads its inputs now, to be given to finish_when_waited()."""
        with self.paused():
            return _ott.Operation(name, role, module, self.phase, *_hooks.caller(), [_plain(t) for t in inputs])

    def finish_when_waited(self, operation: Any, awaited: List[Tuple[Any, List[Any]]], outputs: List[Any]) -> None:
        """awaited: Works, or tensors of functional collectives, and what is made once they were waited for; outputs: what is made by now."""
        self._unfinished.update({_key_of(pending): (pending, operation, made) for pending, made in awaited})
        self._finish_unless_pending(operation, outputs)

    def waited(self, pending: Any) -> None:
        """pending: a Work, or what a functional collective makes, or a view of that."""
        if self._unfinished:
            _, operation, made = self._unfinished.pop(_key_of(pending), (None, None, []))
            if operation is not None:
                self._finish_unless_pending(operation, made)

    def _finish_unless_pending(self, operation: Any, outputs: List[Any]) -> None:
        with self.paused():
            operation.set_outputs([_plain(t) for t in outputs])
        if all(other is not operation for _, other, _ in self._unfinished.values()):
            operation.close()

    # An optimizer's step is an update of each parameter, whatever it is computed by.

    def begin_updates(self, name: str, parameters: Dict[str, Any], state: Dict[str, Dict[str, Any]]) -> None:
        if self._mode is None:
            return
        self._mode.logs = False
        file, line = _hooks.caller()
        for parameter_name, parameter in parameters.items():
            held = [parameter, *(t for t in state.get(parameter_name, {}).values() if t.numel() > 1)]
            inputs = held if parameter.grad is None else [parameter.grad, *held]
            operation = _ott.Operation(
                name.lower(), "update", parameter_name, "update", file, line, [_plain(t) for t in inputs]
            )
            self._updates.append((operation, [parameter]))

    def end_updates(self) -> None:
        while self._updates:
            operation, outputs = self._updates.pop()
            operation.set_outputs([_plain(t) for t in outputs])
            operation.close()
        if self._mode is not None:
            self._mode.logs = True


class _Mode(TorchDispatchMode):
    def __init__(self, operations: Operations):
        super().__init__()
        self.logs = True
        self._operations = operations
        # Places of operations of the forward pass, by the number that their nodes of the backward
        # pass have.
        self._places: Dict[int, Tuple[str, str, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.logs or not _is_logged(func) or _hooks.is_learning_shapes():
            return func(*args, **kwargs)
        operation, result = self._begin(func, args, kwargs), None
        try:
            result = func(*args, **kwargs)
            return result
        finally:
            self._end(operation, result if func._schema.returns else _written(func, args, kwargs))

    def fail(self, error: Exception) -> None:
        self.logs = False
        self._operations.fail(error)

    @_hooks.guarded
    def _begin(self, func: Any, args: Any, kwargs: Any) -> Any:
        module, file, line = self._place()
        name = func._schema.name.split("::")[-1]
        written = {argument.name for argument in _written_arguments(func)}
        read = {key: value for key, value in kwargs.items() if key not in written}  # but for out=
        inputs = [_plain(tensor) for tensor in _hooks.tensors_in([args[1:] if name in _WRITERS else args, read])]
        return _ott.Operation(name, "operation", module, self._operations.phase, file, line, inputs)

    @_hooks.guarded
    def _end(self, operation: Any, result: Any) -> None:
        if operation is not None:
            operation.set_outputs([_plain(tensor) for tensor in _hooks.tensors_in(result)])
            operation.close()

    def _place(self) -> Tuple[str, str, int]:
        """The module and the line of the program; in a backward pass those of the operation it is of."""
        if hasattr(torch._C, "_current_autograd_node"):
            node = torch._C._current_autograd_node()
            if node is not None:
                number = node._sequence_nr() if hasattr(node, "_sequence_nr") else -1
                return self._places.get(number, ("", *_hooks.caller()))
        modules = self._operations.modules
        place = (modules[-1] if modules else "", *_hooks.caller())
        if hasattr(torch.autograd, "_get_sequence_nr"):
            self._places[torch.autograd._get_sequence_nr() - 1] = place
        return place


def _is_logged(func: Any) -> bool:
    schema = func._schema
    if not schema.name.startswith("aten::") or schema.name.startswith(_LEFT_OUT):
        return False
    # A view computes nothing.
    return not any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _is_in_backward() -> bool:
    """Returns True in hooks of a backward pass, where some programs step."""
    task = getattr(torch._C, "_current_graph_task_id", None)  # from PyTorch 2.0 on
    return task is not None and task() != -1


def _written_arguments(func: Any) -> List[Any]:
    return [argument for argument in func._schema.arguments if argument.alias_info is not None and argument.alias_info.is_write]


def _written(func: Any, args: Any, kwargs: Any) -> List[Any]:
    """Returns what an operation writes that returns nothing, as those of lists of tensors."""
    given = dict(zip((argument.name for argument in func._schema.arguments), args), **kwargs)
    return [given.get(argument.name) for argument in _written_arguments(func)]


def _key_of(pending: Any) -> int:
    """Of a tensor its memory, as views of it are waited for; of a Work its identity."""
    if not isinstance(pending, torch.Tensor):
        return id(pending)
    return getattr(pending, "untyped_storage", pending.storage)().data_ptr()  # the latter before PyTorch 2.0


def _plain(tensor: Any) -> Any:
    held = _hooks.local(tensor).detach()
    return held if held.layout == torch.strided else held.to_dense()
