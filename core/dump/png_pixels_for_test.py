"""Scales tensors to images as the Python TensorDumper does, and compares with the PNG files of a dump.

usage: png_pixels_for_test.py DIR < lines

Each line is one image: path, format (image_rgb, image_bgr, image_i), dtype, shape, elements in hexadecimal, separated
by tabs. Uses nothing but Python's own modules: a step of float32 or float16 arithmetic is one of doubles, rounded.
"""

import json
import os
import struct
import sys
import zlib

CODES = {"float64": "d", "float32": "f", "float16": "e", "int8": "b", "uint8": "B", "int32": "i", "int64": "q"}


def rounding(dtype):
    if dtype == "float64":
        return lambda value: value
    code = "<e" if dtype == "float16" else "<f"
    return lambda value: struct.unpack(code, struct.pack(code, value))[0]


def scale(dtype, elements):
    """(image - min) * (1 / (max - min) * 255), each step rounded, then astype(uint8)."""
    r = rounding(dtype)
    smallest, largest = min(elements), max(elements)
    difference = r(largest - smallest)
    scaling = r(r(1 / difference) * 255) if difference > 0 else 1
    return [int(r(r(element - smallest) * scaling)) for element in elements], [smallest, largest]


def decode(path):
    """Width, height, channels and bytes of a PNG file of 8 bits without filters."""
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
    return [height, width] + ([3] if channels == 3 else []), pixels


def main():
    directory = sys.argv[1]
    for line in sys.stdin.read().split("\n")[:-1]:
        path, kind, dtype, shape, data = line.split("\t")
        data, code = bytes.fromhex(data), CODES[dtype]
        elements = list(struct.unpack("<%d%s" % (len(data) // struct.calcsize(code), code), data))
        expected, original_range = scale(dtype, elements)
        file = os.path.join(directory, "[tensors.json]" + path + ".png")
        actual_shape, actual = decode(file)
        if kind == "image_bgr":  # a PNG file always has red first
            actual = [value for i in range(0, len(actual), 3) for value in reversed(actual[i:i + 3])]
        assert actual_shape == json.loads(shape), (path, actual_shape)
        assert actual == expected, (path, [pair for pair in zip(actual, expected) if pair[0] != pair[1]][:5])
        name = {"image_rgb": "RGB", "image_bgr": "BGR", "image_i": "Intensity"}[kind]
        meta = json.dumps({"original_range": original_range, "image_format": name}, indent=2)
        with open(file + ".meta.json") as meta_file:
            assert meta_file.read() == meta, path


if __name__ == "__main__":
    main()
