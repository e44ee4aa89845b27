"""The places of PyTorch at which a training is observed, of 1.13 as of 2.x; what a version lacks is left out."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import weakref
from typing import Any, Callable, Iterator, List, Optional, Tuple

import torch

from .._errors import AbortedError

OWN_FOLDERS = (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# While torch.compile traces, what is observed must leave nothing in the graph.
if hasattr(torch, "compiler") and hasattr(torch.compiler, "is_compiling"):
    is_compiling = torch.compiler.is_compiling
elif hasattr(torch._utils, "is_compiling"):  # 2.1 and 2.2
    is_compiling = torch._utils.is_compiling
else:

    def is_compiling() -> bool:
        return False


def keep_from_being_compiled() -> None:
    """Needed after torch.compile(): in 2.0 and 2.1 it compiles what is called between graphs, and never ends with this package."""
    skipped = sys.modules.get("torch._dynamo.skipfiles")
    if not hasattr(skipped, "FILENAME_ALLOWLIST") or skipped.check(OWN_FOLDERS[1] + "/torch/_hooks.py"):
        return
    # The files of these functions are compiled in any case. If they are observed, that is a file of this package.
    functions = (torch.nn.Sequential.__init__, torch.set_rng_state)
    skipped.FILENAME_ALLOWLIST.difference_update(f.__code__.co_filename for f in functions)
    skipped.FILENAME_ALLOWLIST.update(inspect.unwrap(f).__code__.co_filename for f in functions)
    skipped.SKIP_DIRS.append("<frozen ")  # what Python has within itself, such as isinstance() of abstract classes
    skipped.add(__package__.rpartition(".")[0])


def is_learning_shapes() -> bool:
    """Returns True while a stage of torch.distributed.pipelining computes from whatever lies in memory, to learn shapes."""
    stage = "torch.distributed.pipelining.stage"
    frame: Any = sys._getframe() if stage in sys.modules else None
    while frame is not None:
        if frame.f_code.co_name in ("_prepare_forward_infra", "_prepare_backward_infra") and frame.f_globals.get("__name__") == stage:
            return True
        frame = frame.f_back
    return False


def is_transforming() -> bool:
    """Returns True within torch.func's vmap and grad, whose tensors have no memory of their own."""
    functorch = getattr(torch._C, "_functorch", None)
    return hasattr(functorch, "peek_interpreter_stack") and functorch.peek_interpreter_stack() is not None


def is_tracing() -> bool:
    """Returns True while torch.fx or torch.jit traces, where what is observed would become part of the graph."""
    fx = sys.modules["torch.fx._symbolic_trace"]
    of_thread = getattr(fx, "_get_is_fx_tracing", None)  # from 2.14 on
    return torch._C._is_tracing() or (of_thread() if of_thread is not None else getattr(fx, "_is_fx_tracing_flag", False))


def is_abstract(tensor: Any) -> bool:
    """Returns True for a tensor without numbers: on the meta device, or a fake one, as estimates of memory and of operations use."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return isinstance(tensor, torch.Tensor) and (tensor.is_meta or (fake is not None and isinstance(tensor, fake.FakeTensor)))


# Arguments of a module's hook with which it is called for a forward pass that raises, too: from 2.1 on.
ALWAYS = {"always_call": True} if "always_call" in inspect.signature(torch.nn.Module.register_forward_hook).parameters else {}


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Ends the observation if something goes wrong in it, and never the training. For methods of classes that have a fail(error)."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except AbortedError:
            raise  # as the configuration wants
        except Exception as error:  # noqa: BLE001  whatever it is
            self.fail(error)
            return None

    return run


class ModuleHook:
    """A hook of one module. Copies of the module, which some make in their forward pass, have one that does nothing."""

    def __init__(self, function: Optional[Callable[..., Any]] = None) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args) if self._function is not None else None

    def __deepcopy__(self, memo: Any) -> "ModuleHook":
        return ModuleHook()


class _Call:
    """A function that is observed, and what became of its call."""

    __slots__ = ("function", "error", "has_ended", "result")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.error: Optional[BaseException] = None
        self.has_ended = False
        self.result: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            self.result = self.function(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        self.has_ended = True
        return self.result


class Patches:
    """Attributes that were replaced, to be put back."""

    def __init__(self, fail: Callable[[Exception], None]) -> None:
        """fail: is told of errors of what was put around a function, which the function's caller does not see."""
        self._fail = fail
        self._undo: List[Callable[[], None]] = []

    def wrap(self, owner: Any, name: str, around: Callable[..., Any], also: Tuple[Any, ...] = ()) -> None:
        """Has owner.name(*args) call around(original, *args); so has each of `also` that has the same function."""
        original = getattr(owner, name, None)
        if original is None or getattr(original, "_observed_by_ott", False):
            return

        @functools.wraps(original)
        def observed(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            call = _Call(original)
            try:
                return around(call, *args, **kwargs)
            except Exception as error:  # noqa: BLE001  whatever it is
                if error is call.error or isinstance(error, AbortedError):
                    raise
                self._fail(error)
                failed = call.error
            finally:
                call.error = None  # its frames have the call, and what lies in them would stay until a collection of garbage
            if failed is not None:
                raise failed
            return call.result if call.has_ended else original(*args, **kwargs)

        observed._observed_by_ott = True  # type: ignore[attr-defined]
        for place in (owner, *also):
            if getattr(place, name, None) is not original:
                continue
            own = vars(place).get(name)
            setattr(place, name, staticmethod(observed) if isinstance(own, staticmethod) else observed)
            self._undo.append(functools.partial(_put_back, place, name, own))

    def add(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def remove(self) -> None:
        while self._undo:
            self._undo.pop()()


def _put_back(place: Any, name: str, own: Any) -> None:
    if own is not None:
        setattr(place, name, own)
    else:
        delattr(place, name)


def keyword_arguments(depth: int) -> dict:
    """Keyword arguments of the module's call whose global hook runs; hooks get them from 2.0 on, and not as global ones."""
    try:
        called = sys._getframe(depth)  # of _call_impl() itself, or of a function within it
        found = (called if "kwargs" in called.f_locals else sys._getframe(depth + 1)).f_locals.get("kwargs")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def caller() -> Tuple[str, int]:
    """The innermost line that is neither PyTorch's nor this package's."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OWN_FOLDERS):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith("<"):
        return "", 0
    return frame.f_code.co_filename, frame.f_lineno


def place_of_caller() -> str:
    """caller() as "train.py:288"; "" where there is none."""
    file, line = caller()
    return f"{os.path.basename(file)}:{line}" if file else ""


def is_running(called: Any) -> bool:
    """Whether the call of this frame has not ended."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame is not called:
        frame = frame.f_back
    return frame is not None


def calling_module() -> Optional[torch.nn.Module]:
    """The innermost module whose method calls, PyTorch's own included; None: there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_locals.get("self")
        if isinstance(module, torch.nn.Module):
            return module
        frame = frame.f_back
    return None


def place_of(function: Any) -> str:
    """Returns where a function is written, as "train.py:288"; "" for what is PyTorch's own or has no source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or code.co_filename.startswith((*OWN_FOLDERS, "<")):
        return ""
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def unwrap(module: torch.nn.Module) -> torch.nn.Module:
    """The model itself, without DistributedDataParallel and torch.compile around it."""
    while True:
        if is_ddp(module):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def find_ddp(module: torch.nn.Module) -> Optional[torch.nn.Module]:
    """The DistributedDataParallel around it, or within torch.compile's wrapper."""
    while not is_ddp(module):
        if not hasattr(module, "_orig_mod"):
            return None
        module = module._orig_mod
    return module


def is_ddp(module: Any) -> bool:
    parallel = sys.modules.get("torch.nn.parallel")
    return parallel is not None and isinstance(module, parallel.DistributedDataParallel)


def kept_alike(ddp: Any) -> List[torch.Tensor]:
    """The parameters that a DistributedDataParallel keeps alike on its ranks: not those that it was told to leave alone, as experts."""
    ignored = set(getattr(ddp, "parameters_to_ignore", ()))
    return [p for name, p in ddp.module.named_parameters() if name not in ignored and not is_sharded(p)]


def is_sharded(tensor: Any) -> bool:
    """Returns True if a rank holds a part of it: DTensor, as FSDP2 and tensor parallelism have."""
    return hasattr(tensor, "to_local")


def local(tensor: Any) -> Any:
    """Returns what this rank holds of it, waiting for the collective that makes it. It is a plain tensor where the class has functions of
    its own, as that of images may have: these are called, and may fail, for what the observation computes."""
    held = tensor.to_local() if is_sharded(tensor) else tensor
    if hasattr(held, "trigger_wait"):  # AsyncCollectiveTensor, as functional collectives return
        waited = held.trigger_wait()
        held = held.elem if waited is held else waited  # until 2.2 it returns the wrapper itself
    functions, dispatch = (getattr(type(held), name, None) for name in ("__torch_function__", "__torch_dispatch__"))
    is_plain = type(held) is torch.Tensor or functions is torch._C._disabled_torch_function_impl
    # A class that dispatches by itself may have no memory of its own, so its tensors stay as they are.
    return held if is_plain or dispatch is not torch.Tensor.__torch_dispatch__ else held.as_subclass(torch.Tensor)


def tensors_in(data: Any) -> Iterator[torch.Tensor]:
    """The tensors of nested lists and dicts, and of what holds its fields in a dict."""
    if isinstance(data, torch.Tensor):
        yield data
    elif isinstance(data, (list, tuple)):
        for item in data:
            yield from tensors_in(item)
    elif callable(getattr(data, "values", None)) and hasattr(data, "keys"):
        for item in data.values():
            yield from tensors_in(item)


class WeakIds:
    """A set of objects by identity that keeps none of them alive."""

    def __init__(self) -> None:
        self._references: dict = {}

    def add(self, item: Any) -> None:
        try:
            self._references[id(item)] = weakref.ref(item, lambda _, key=id(item): self._references.pop(key, None))
        except TypeError:
            pass  # which nothing refers to weakly

    def discard(self, item: Any) -> None:
        self._references.pop(id(item), None)

    def __contains__(self, item: Any) -> bool:
        reference = self._references.get(id(item))
        return reference is not None and reference() is item
