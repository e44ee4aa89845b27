"""Dumps what tensor_dumper_test.cc dumps, with PyTorch and Python's own json: tensor_dumper_for_test.py DIR"""

import json
import sys

import torch

directory = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(7)

x = torch.randn(5, 4)
w1 = torch.randn(6, 4, requires_grad=True)
b1 = torch.zeros(6, requires_grad=True)
w2 = torch.randn(6, dtype=torch.float64, requires_grad=True)
unused = torch.ones(2, requires_grad=True)
hidden = torch.tanh(torch.nn.functional.linear(x, w1, b1))
output = hidden.double() @ w2
loss = (output ** 2).mean()


def write(name, tree):
    with open("%s/%s.json" % (directory, name), "w") as file:
        json.dump(tree, file, indent=2)


def binary(file, path, tensor):
    """Returns what stands in the tree; PyTorch's bfloat16 has no numpy, so its bytes are read as integers."""
    tensor = tensor.detach().contiguous()
    blob = "%s/[%s.json]%s.bin" % (directory, file, path)
    with open(blob, "wb") as data:
        data.write((tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes())
    with open(blob + ".meta.json", "w") as meta:
        json.dump({"file_data_shape": list(tensor.shape), "file_data_dtype": str(tensor.dtype)}, meta, indent=2)
    return path + ".bin"


def pairs(tensor):
    return torch.view_as_real(tensor).tolist()


write("tensors", {
    "input": x.tolist(),
    "input_t": x.t().tolist(),
    "hidden": binary("tensors", "hidden", hidden),
    "hidden_t": binary("tensors", "hidden_t", hidden.t()),
    "output": output.tolist(),
    "loss": loss.tolist(),
    "dtypes": {
        "bfloat16": x.bfloat16().tolist(),
        "bfloat16_bytes": binary("tensors", "dtypes.bfloat16_bytes", x.bfloat16()),
        "half": x.half().tolist(),
        "half_bytes": binary("tensors", "dtypes.half_bytes", x.half()),
        "bool": (x > 0).tolist(),
        "bool_bytes": binary("tensors", "dtypes.bool_bytes", x > 0),
        "byte": (x * 10).abs().byte().tolist(),
        "long": (x * 1e15).long().tolist(),
        "complex64": pairs(torch.complex(x, x)),
        "complex128": pairs(torch.complex(x.double(), x.double())),
        "complex128_bytes": binary("tensors", "dtypes.complex128_bytes", torch.complex(x.double(), x.double())),
    },
})

variables = {"w1": w1, "b1": b1, "w2": w2, "hidden": hidden, "unused": unused}
grads = dict(zip(variables, torch.autograd.grad(loss, list(variables.values()), retain_graph=True, allow_unused=True)))
write("grads", {
    "input": "`.requires_grad == False`",
    "weights": {
        "w1": grads["w1"].tolist(),
        "b1": binary("grads", "weights.b1", grads["b1"]),
        "w2": grads["w2"].tolist(),
    },
    "hidden": grads["hidden"].tolist(),
    "unused": grads["unused"],
})
