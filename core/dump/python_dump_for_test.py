"""Writes a dump as the Python TensorDumper does, with nothing but Python's own json and struct.

usage: python_dump_for_test.py DIR < lines

Each line is one entry, in order, its fields separated by tabs:
  path  json    dtype  shape  elements in hexadecimal     a tensor as numbers
  path  binary  dtype  shape  elements in hexadecimal     a tensor in a file of its own
  path  value   JSON text
"""

import json
import os
import struct
import sys

# Codes of the struct module; the other dtypes are decoded by their definition.
CODES = {
    "float64": "d", "float32": "f", "float16": "e", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "bool": "?", "complex64": "f", "complex128": "d",
}


def bfloat16(data):
    return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]


def float8_e5m2(data):
    return [struct.unpack("<e", bytes([0, byte]))[0] for byte in data]


def float8_e4m3fn(data):
    def decode(byte):
        sign = -1.0 if byte & 0x80 else 1.0
        exponent, mantissa = byte >> 3 & 15, byte & 7
        if byte & 0x7f == 0x7f:
            return float("nan")
        return sign * (mantissa / 8 * 2.0 ** -6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    return [decode(byte) for byte in data]


def elements(dtype, data):
    if dtype in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        return globals()[dtype](data)
    code = CODES[dtype]
    return list(struct.unpack("<%d%s" % (len(data) // struct.calcsize(code), code), data))


def nested(flat, shape):
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [nested(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def insert(tree, path, value):
    *parents, name = path.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[name] = value


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=2)


def main():
    directory = sys.argv[1]
    tree = {}
    for line in sys.stdin.buffer.read().decode("utf-8").split("\n")[:-1]:
        path, kind, *rest = line.split("\t")
        if kind == "value":
            insert(tree, path, json.loads(rest[0]))
            continue
        dtype, shape, data = rest[0], json.loads(rest[1]), bytes.fromhex(rest[2])
        if kind == "json":
            pairs = [2] if dtype.startswith("complex") else []
            insert(tree, path, nested(elements(dtype, data), shape + pairs))
            continue
        insert(tree, path, path + ".bin")
        blob = os.path.join(directory, "[tensors.json]" + path + ".bin")
        with open(blob, "wb") as file:
            file.write(data)
        write_json(blob + ".meta.json", {"file_data_shape": shape, "file_data_dtype": "torch." + dtype})
    write_json(os.path.join(directory, "tensors.json"), tree)


main()
