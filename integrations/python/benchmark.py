"""Measures what ott costs in Python, beside limits and peers that are measured in the same run.

    bazel run //integrations/python:benchmark
"""

import json
import os
import shutil
import tempfile
import time
import types

import numpy

import optim_test_tools as ott
from optim_test_tools import accvlab


class Empty:
    def start_meas(self, name):
        pass

    def end_meas(self, name):
        pass


class ByHand:
    """Does what a program would write."""

    def __init__(self):
        self.seconds = {}
        self.started = {}

    def start_meas(self, name, now=time.perf_counter):
        self.started[name] = now()

    def end_meas(self, name, now=time.perf_counter):
        self.seconds[name] = self.seconds.get(name, 0.0) + now() - self.started[name]


def nanoseconds(function, number=20_000, repeats=50):
    """Returns the least time of one call, of many repetitions."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        function(number)
        best = min(best, time.perf_counter() - begin)
    return best / number * 1e9


def nothing(number):
    for _ in range(number):
        pass


def perf_counter_pairs(number):
    now, seconds = time.perf_counter, {}
    for _ in range(number):
        begin = now()
        seconds["forward"] = seconds.get("forward", 0.0) + now() - begin


def blocks(stopwatch):
    def run(number):
        for _ in range(number):
            with stopwatch("forward"):
                pass

    return run


def line(what, value, unit, ratio, limit, at_most=True):
    good = ratio <= limit if at_most else ratio >= limit
    word = "at most" if at_most else "at least"
    print(f"{what:46} {value:10.1f} {unit:4} ratio {ratio:6.2f} (limit: {word} {limit}){'' if good else '  MISSED'}")
    return good


def benchmark_stopwatch():
    loop = nanoseconds(nothing)
    empty = nanoseconds(method_pairs(Empty())) - loop
    off = nanoseconds(method_pairs(accvlab.Stopwatch())) - loop
    ok = line("stopwatch off, a pair", off, "ns", off / empty, 1.2)
    print(f"{'two empty method calls':46} {empty:10.1f} ns")
    stopwatch = ott.Stopwatch()
    stopwatch.enable()
    on = nanoseconds(method_pairs(accvlab.Stopwatch())) - loop
    inline = nanoseconds(perf_counter_pairs) - loop
    by_hand = nanoseconds(method_pairs(ByHand())) - loop
    ok &= line("stopwatch on, a pair, above two empty calls", on - empty, "ns", (on - empty) / (by_hand - empty), 0.5)
    print(f"{'two methods with perf_counter and a dict':46} {by_hand - empty:10.1f} ns above two empty calls")
    print(f"{'two perf_counter calls and a dict, inline':46} {inline:10.1f} ns")
    print(f"{'stopwatch on, a with block':46} {nanoseconds(blocks(stopwatch)) - loop:10.1f} ns")
    stopwatch.disable()
    return ok


def run_methods(stopwatch, number):
    for _ in range(number):
        stopwatch.start_meas("forward")
        stopwatch.end_meas("forward")


def method_pairs(stopwatch):
    """With a code object of its own, which the interpreter specialises for this class."""
    run = types.FunctionType(run_methods.__code__.replace(), globals())
    return lambda number: run(stopwatch, number)


def benchmark_dump():
    x = numpy.random.default_rng(1).standard_normal(1_000_000).astype(numpy.float32)
    directory = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    dumper = ott.TensorDumper()
    dumper.enable(directory)
    ours = theirs = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        dumper.add("x", x)
        dumper.dump()
        ours = min(ours, time.perf_counter() - begin)
        begin = time.perf_counter()
        with open(os.path.join(directory, "theirs.json"), "w", encoding="ascii") as file:
            json.dump(x.tolist(), file)
        theirs = min(theirs, time.perf_counter() - begin)
    dumper.disable()
    shutil.rmtree(directory)
    ok = line("JSON dump of 1 M float32", ours * 1e3, "ms", theirs / ours, 12, at_most=False)
    print(f"{'json.dump(x.tolist())':46} {theirs * 1e3:10.1f} ms")
    y = x.copy()
    y[-1] += 1
    begin = time.perf_counter()
    ott.compare(x, y)
    ours = time.perf_counter() - begin
    begin = time.perf_counter()
    numpy.allclose(x, y)
    print(f"{'comparing 1 M float32, all figures':46} {ours * 1e3:10.1f} ms; numpy.allclose takes "
          f"{(time.perf_counter() - begin) * 1e3:.1f} ms")
    return ok


if __name__ == "__main__":
    raise SystemExit(0 if benchmark_stopwatch() & benchmark_dump() else 1)
