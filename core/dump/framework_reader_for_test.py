"""Reads a dump with NumPy and PyTorch, and scales tensors to images with the Python TensorDumper's formula.

usage: framework_reader_for_test.py DIR

In DIR are the same random tensors of each dtype as binary.DTYPE, json.DTYPE, npy.DTYPE, image_i.DTYPE, as far as the
formats know the dtype. Fails where one is not what the binary one is.
"""

import json
import os
import sys

import numpy as np
import torch

from core.dump.png_pixels_for_test import decode


def read_binary(directory, path):
    """Returns the dtype as torch has it, though NumPy knows fewer."""
    file = os.path.join(directory, "[tensors.json]" + path + ".bin")
    with open(file + ".meta.json") as meta_file:
        meta = json.load(meta_file)
    with open(file, "rb") as data_file:
        data = bytearray(data_file.read())
    name = meta["file_data_dtype"][len("torch."):]
    if hasattr(torch, name):
        return torch.frombuffer(data, dtype=getattr(torch, name)).reshape(meta["file_data_shape"])
    return np.frombuffer(data, dtype=name).reshape(meta["file_data_shape"])


def as_numbers(array):
    return array.double().numpy() if isinstance(array, torch.Tensor) and not array.is_complex() else np.asarray(array)


def scale(image):
    """The formula of the Python TensorDumper, as it is written there."""
    smallest, largest = image.min(), image.max()
    difference = largest - smallest
    scaling = (255 / difference) if difference > 0 else 1
    return ((image + -smallest) * scaling).numpy().astype(np.uint8), [smallest.item(), largest.item()]


def main():
    directory = sys.argv[1]
    with open(os.path.join(directory, "tensors.json")) as file:
        tree = json.load(file)
    num_checked = 0
    for dtype in tree["binary"]:
        binary = read_binary(directory, "binary." + dtype)
        numbers = as_numbers(binary)
        if dtype in tree["json"]:
            from_json = np.array(tree["json"][dtype], dtype=np.uint64 if dtype == "uint64" else None)
            np.testing.assert_array_equal(from_json, numbers, dtype)
            num_checked += 1
        if dtype in tree["npy"]:
            array = np.load(os.path.join(directory, "[tensors.json]npy.%s.npy" % dtype))
            assert array.dtype.name == dtype
            assert array.tobytes() == np.asarray(binary).tobytes(), dtype
            num_checked += 1
        if dtype in tree["image_i"]:
            file = os.path.join(directory, "[tensors.json]image_i.%s.png" % dtype)
            expected, original_range = scale(binary)
            shape, pixels = decode(file)
            np.testing.assert_array_equal(np.array(pixels).reshape(shape), expected, dtype)
            with open(file + ".meta.json") as meta_file:
                assert json.load(meta_file)["original_range"] == original_range, dtype
            num_checked += 1
    print("%d tensors are what they were" % num_checked)


main()
