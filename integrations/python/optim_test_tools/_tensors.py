"""Reads and makes tensors of other libraries. None of them is imported here unless the program has done so."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Tuple

# Some memory is no tensor's: then a tensor with elements has no address.
_FREED = "the tensor's memory was freed; dump it before its storage is resized or its module is resharded"


def export(data: Any) -> Tuple[Any, ...]:
    """Says how to read an object that is no basic type of Python, for _ott:

    ("description", (address, dtype, shape, strides in elements, CUDA device or -1, stream), what keeps it alive),
    ("buffer", an object with the buffer protocol), ("dlpack", capsule, stream), or ("value", what it stands for).
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor"):
        if isinstance(data, torch.Tensor):
            return _export_torch(torch, data)
        if isinstance(data, torch.dtype):
            return "value", str(data)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, getattr(numpy, "generic", ())):
        return _export_numpy_scalar(data)
    if isinstance(data, float):
        return "value", float.__float__(data)
    try:
        memoryview(data).release()
        return "buffer", data
    except TypeError:
        pass
    except (ValueError, BufferError):
        return "buffer", data  # whose reading says what is wrong
    if hasattr(type(data), "__dlpack__"):
        return _export_dlpack(data)
    if hasattr(type(data), "__array__"):
        return "buffer", data.__array__()
    raise TypeError(
        f"{type(data).__module__}.{type(data).__qualname__} is neither a tensor nor None, bool, int, float, str, list, "
        "tuple or dict; register a converter for it, or pass one of these"
    )


def _export_numpy_scalar(data: Any) -> Tuple[Any, ...]:
    value = data.item()
    if isinstance(value, complex):
        raise TypeError("JSON has no complex numbers; pass an array")
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"no number or text stands for numpy's {type(data).__name__}; convert it first, as by str()")
    return "value", value


def _export_dlpack(data: Any) -> Tuple[Any, ...]:
    device_type, _ = data.__dlpack_device__()
    if device_type in (2, 13):  # CUDA: 1 is the legacy default stream, which the exporter orders its work before
        return "dlpack", data.__dlpack__(stream=1), 0
    return "dlpack", data.__dlpack__(), 0


def _export_torch(torch: Any, tensor: Any) -> Tuple[Any, ...]:
    if tensor.layout is not torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout} has no strides; pass tensor.to_dense()")
    if tensor.is_quantized:
        raise TypeError("a quantized tensor cannot be read; pass tensor.dequantize() or tensor.int_repr()")
    if hasattr(tensor, "to_local"):
        raise TypeError("a DTensor lies on several ranks; pass tensor.to_local() or tensor.full_tensor()")
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"a tensor on the device {device} cannot be read; pass tensor.cpu()")
    dtype = str(tensor.dtype)[len("torch.") :]
    if dtype == "complex32":
        raise TypeError("complex32 cannot be dumped; pass tensor.to(torch.complex64)")
    # Its memory holds other numbers than the tensor, until that is done.
    keeper = tensor
    if tensor.is_conj() or tensor.is_neg():
        keeper = tensor.detach().resolve_conj().resolve_neg()
    address = keeper.data_ptr()
    if keeper.numel() > 0 and (address == 0 or _num_storage_bytes(keeper) < _num_bytes_reached(keeper)):
        raise ValueError(_FREED)
    ordinal, stream = -1, 0
    if device.type == "cuda":
        ordinal = device.index
        stream = torch.cuda.current_stream(device).cuda_stream
    owner = tensor if keeper is tensor else (keeper, tensor)
    return "description", (address, dtype, tuple(keeper.shape), keeper.stride(), ordinal, stream), owner


def _num_storage_bytes(tensor: Any) -> int:
    if hasattr(tensor, "untyped_storage"):  # from 2.0 on
        return tensor.untyped_storage().nbytes()
    return tensor.storage().nbytes()


def _num_bytes_reached(tensor: Any) -> int:
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


# The inverse: _ott.Tensor as others have it. A framework's tensor is a copy where it can be written to.


def _to_numpy(tensor: Any) -> Any:
    import numpy

    array = numpy.asarray(tensor)
    if tensor.dtype != "bfloat16" and not tensor.dtype.startswith("float8"):
        return array
    try:
        import ml_dtypes
    except ImportError:
        if tensor.dtype == "bfloat16":  # the upper half of the float32 that is the same number
            return (array.astype(numpy.uint32) << 16).view(numpy.float32)
        raise ValueError(f"NumPy has no {tensor.dtype}: install the package ml_dtypes, or load as 'torch'") from None
    return array.view(getattr(ml_dtypes, tensor.dtype))


def _to_torch(tensor: Any) -> Any:
    import numpy
    import torch

    if not hasattr(torch, tensor.dtype) or tensor.dtype in ("uint16", "uint32", "uint64"):
        raise ValueError(f"this PyTorch has no {tensor.dtype}: load the dump as 'numpy'")
    array = numpy.array(tensor)  # a copy, since a file's pages cannot be written to
    if tensor.dtype == "bfloat16":
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    if tensor.dtype.startswith("float8"):
        return torch.from_numpy(array).view(getattr(torch, tensor.dtype))
    return torch.from_numpy(array)


IMPORTERS: Dict[str, Callable[[Any], Any]] = {"numpy": _to_numpy, "torch": _to_torch, "raw": lambda tensor: tensor}
