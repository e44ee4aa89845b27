"""The training of train_mlp.cc in Python, with dumps as ACCV-Lab's TensorDumper writes them.

usage: python3 examples/torch_mlp/reference.py --out out/python
"""

import argparse
import json
import os

import numpy
import torch
from torch.nn import functional

parser = argparse.ArgumentParser(description="Trains a small network on handwritten digits with PyTorch.")
parser.add_argument("--data", default="examples/train_digits/data/digits.csv.gz")
parser.add_argument("--out", required=True, help="folder of dumps to write")
parser.add_argument("--iterations", type=int, default=50)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--dump-every", type=int, default=10)
flags = parser.parse_args()


class Dump:
    """One folder of dumps. Blobs are raw bytes, what they hold is in a file of JSON beside them."""

    def __init__(self, folder):
        os.makedirs(folder)
        self.folder = folder

    def write(self, name, tree):
        with open(os.path.join(self.folder, name), "w") as file:
            json.dump(tree, file, indent=2)

    def blob(self, tree_file, path, tensor):
        """Returns what stands in the tree instead of the tensor."""
        tensor = tensor.detach()
        name = "[%s]%s.bin" % (tree_file, path)
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(tensor.contiguous().numpy().tobytes())
        self.write(name + ".meta.json", {"file_data_shape": list(tensor.shape), "file_data_dtype": str(tensor.dtype)})
        return path + ".bin"

    def layer(self, name, layer):
        return {
            "weight": self.blob("tensors.json", name + ".weight", layer.weight),
            "bias": layer.bias.tolist(),
            "weight_grad": self.blob("tensors.json", name + ".weight_grad", layer.weight.grad),
            "bias_grad": layer.bias.grad.tolist(),
        }


torch.set_num_threads(1)
torch.manual_seed(flags.seed)
digits = numpy.loadtxt(flags.data, delimiter=",", dtype=numpy.float32)
all_pixels = torch.from_numpy(digits[:, :-1] / 16)
all_labels = torch.from_numpy(digits[:, -1]).long()
layer1 = torch.nn.Linear(64, 32)
layer2 = torch.nn.Linear(32, 10)
optimizer = torch.optim.SGD([*layer1.parameters(), *layer2.parameters()], lr=0.1, momentum=0.9)

for iteration in range(flags.iterations):
    chosen = torch.randint(len(all_labels), (flags.batch,))
    pixels, labels = all_pixels[chosen], all_labels[chosen]
    hidden = torch.relu(layer1(pixels))
    loss = functional.cross_entropy(layer2(hidden), labels)
    (hidden_grad,) = torch.autograd.grad([loss], [hidden], retain_graph=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % flags.dump_every == 0:
        dump = Dump(os.path.join(flags.out, str(iteration)))
        dump.write("tensors.json", {
            "pixels": dump.blob("tensors.json", "pixels", pixels),
            "hidden": dump.blob("tensors.json", "hidden", hidden),
            "loss": loss.tolist(),
            "layer1": dump.layer("layer1", layer1),
            "layer2": dump.layer("layer2", layer2),
        })
        dump.write("grads.json", {
            "pixels": "`.requires_grad == False`",
            "hidden": dump.blob("grads.json", "hidden", hidden_grad),
        })
print("loss %.6f after %d iterations" % (loss.item(), flags.iterations))
