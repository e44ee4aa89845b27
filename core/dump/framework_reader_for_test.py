"""Reads a dump with NumPy and PyTorch, and scales tensors to images with the Python TensorDumper's formula.

usage: framework_reader_for_test.py DIR

In DIR are the same random tensors of each dtype as binary.DTYPE, json.DTYPE, npy.DTYPE, image_rgb.DTYPE, image_bgr.DTYPE
and, of their first channel, image_i.DTYPE, as far as the formats know the dtype. Fails where one is not what the binary
one is.
"""

import json
import os
import struct
import sys
import zlib

import numpy as np
import torch


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


def decode(path):
    """Returns the pixels of a PNG file of 8 bits without filters, as [height, width] or [height, width, 3]."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    compressed, position = b"", 8
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position:position + 8])
        body = data[position + 8:position + 8 + length]
        assert struct.unpack(">I", data[position + 8 + length:position + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            compressed += body
        position += 12 + length
    assert depth == 8 and color in (0, 2), path
    channels = 3 if color == 2 else 1
    rows, stride = zlib.decompress(compressed), width * channels + 1
    assert len(rows) == height * stride and not any(rows[::stride]), path
    pixels = [value for row in range(height) for value in rows[row * stride + 1:(row + 1) * stride]]
    return np.array(pixels).reshape([height, width] + ([3] if channels == 3 else []))


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
        for image, name in (("image_i", "Intensity"), ("image_rgb", "RGB"), ("image_bgr", "BGR")):
            if dtype not in tree[image]:
                continue
            file = os.path.join(directory, "[tensors.json]%s.%s.png" % (image, dtype))
            expected, original_range = scale(binary[:, :, 0] if image == "image_i" else binary)
            pixels = decode(file)
            if image == "image_bgr":  # a PNG file always has red first
                pixels = pixels[:, :, ::-1]
            np.testing.assert_array_equal(pixels, expected, dtype)
            meta = json.dumps({"original_range": original_range, "image_format": name}, indent=2)
            with open(file + ".meta.json") as meta_file:
                assert meta_file.read() == meta, dtype
            num_checked += 1
    print("%d tensors are what they were" % num_checked)


main()
