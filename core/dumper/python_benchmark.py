#!/usr/bin/env python3
"""Dumping and comparing JSON beside plain Python that does the same with the standard library.

usage: core/dumper/python_benchmark.py [PATH OF dump_benchmark]

    bazel build //core/dumper:dump_benchmark && core/dumper/python_benchmark.py

Both write float32 numbers to /dev/shm as json.dump(indent=2) lays them out, and compare a tensor in memory with such a
dump. Fails where dumping on two cores is not 20 times, and comparing not 100 times as fast as Python. By CPU time, so
that what else runs on the machine does not count: of all threads of ours, times the number of cores they keep busy.
"""

import json
import math
import numbers
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import typing

PYTHON_NUMBERS = 1 << 16  # a rate is enough
ROW = 64
TARGETS = {"BM_DumpJson": 20, "BM_CompareToJsonDump": 100}
CORES = {"BM_DumpJson": 2, "BM_CompareToJsonDump": 1}  # one thread parses


def random_numbers(count):
    generator = random.Random(1)
    as_float32 = struct.Struct("f")
    flat = [as_float32.unpack(as_float32.pack(generator.gauss(0, 1)))[0] for _ in range(count)]
    return {"a": [flat[i:i + ROW] for i in range(0, count, ROW)]}


def write(tree, path):
    with open(path, "w") as file:
        json.dump(tree, file, indent=2)


def compare(reference, current, path, tolerance):
    """The differences. As costly as in the Python dumper, which for every number and list checks abstract types, builds
    the path, and defines an error class and functions that it may need."""

    class Difference:
        def __init__(self, message, weight):
            self.message = message
            self.weight = weight

    def by_weight(differences):
        return sorted(differences, key=lambda difference: difference.weight, reverse=True)

    def child_path(key):
        return "%s,%s" % (path, key)

    if isinstance(reference, typing.Dict):
        found = []
        for key in reference:
            found += by_weight(compare(reference[key], current[key], child_path(key), tolerance))
        return found
    if isinstance(reference, typing.Sequence):
        if len(reference) != len(current):
            return [Difference(path, math.inf)]
        found = []
        for i in range(len(reference)):
            found += compare(reference[i], current[i], child_path(i), tolerance)
        return found
    if isinstance(reference, numbers.Number) and isinstance(current, numbers.Number):
        difference = abs(reference - current)
        return [Difference(path, difference)] if difference > tolerance else []
    return [] if reference == current else [Difference(path, 0.0)]


def compare_to_dump(tree, path):
    # The current goes through text too, so that it is rounded as the dump was.
    current = json.loads(json.dumps(tree, indent=2))
    with open(path) as file:
        reference = json.load(file)
    assert not compare(reference, current, "", 1e-6)


def rate(function, *args):
    """Numbers a second, the best of three."""
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        function(*args)
        best = min(best, time.process_time() - start)
    return PYTHON_NUMBERS / best


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "bazel-bin/core/dumper/dump_benchmark"
    command = [binary, "--benchmark_filter=DumpJson|CompareToJsonDump", "--benchmark_format=json",
               "--benchmark_repetitions=5"]
    results = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["benchmarks"]
    ours = {name: CORES[name] * max(result["items_per_second"] for result in results
                                    if result["name"].startswith(name) and result["run_type"] == "iteration")
            for name in TARGETS}

    tree = random_numbers(PYTHON_NUMBERS)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        path = os.path.join(directory, "tensors.json")
        python = {"BM_DumpJson": rate(write, tree, path), "BM_CompareToJsonDump": rate(compare_to_dump, tree, path)}

    good = True
    for name, target in TARGETS.items():
        ratio = ours[name] / python[name]
        good &= ratio >= target
        print("%-21s %6.2f M numbers/s, Python %5.2f M numbers/s: %4.0f times (at least %d)" %
              (name[3:], ours[name] / 1e6, python[name] / 1e6, ratio, target))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
