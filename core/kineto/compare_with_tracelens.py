#!/usr/bin/env python3
"""Compares `ott prof` and `ott trace` with the figures that TraceLens published for a trace.

    compare_with_tracelens.py OTT TRACE REFERENCE.csv [GPU_TIMELINE.csv]

REFERENCE.csv is a cut of TraceLens's unified_perf_summary.csv, GPU_TIMELINE.csv its gpu_timeline.csv. Exits with 1 where
time, or the FLOPs of a matrix product, a convolution or an attention, differ. Other FLOPs and bytes that differ are
listed: docs/prof.md says why for each op."""

import ast
import collections
import csv
import json
import re
import subprocess
import sys

MATRIX = ("GEMM", "CONV", "SDPA", "BMM", "GROUPED")


def plain(name):
    """"aten::mm" is mm; of a kernel that an op launched beside those of the ops it calls, it is the op."""
    return name.split("->")[0].split("::")[-1]


def key_of(text):
    value = ast.literal_eval(text) if text.strip() else ()
    return json.dumps(value)


def reference_rows(path):
    rows = collections.defaultdict(lambda: collections.Counter())
    for row in csv.DictReader(open(path)):
        op = row["name"]
        key = (plain(op), key_of(row["Input Dims"]), key_of(row["Input type"]), key_of(row["Input Strides"]),
               key_of(row["Concrete Inputs"]))
        count = int(row["operation_count"])
        into = rows[key]
        into["time"] += float(row["Kernel Time (µs)_sum"])
        into["is_matrix"] |= any(part in row["op category"].upper() for part in MATRIX)
        into["has_model"] |= row["has_perf_model"] == "True" and "Synthetic" not in op
        into["calls"] += count
        if row["GFLOPS"]:
            into["has_flops"] = 1
            into["flops"] += float(row["GFLOPS"]) * 1e9 * count
        if row["Data Moved (MB)"]:
            into["has_bytes"] = 1
            into["bytes"] += float(row["Data Moved (MB)"]) * 2**20 * count
    return rows


def our_rows(ott, trace, at):
    """Kernels by the op that was called: one of `at`, else the innermost, not the forward op of a backward one."""
    text = subprocess.run([ott, "prof", trace, "--json", "-c",
                           "op,calls,kernel,shapes,types,strides,inputs,sil,flops,bytes,join", "--at", ",".join(sorted(at))],
                          check=True, capture_output=True, text=True).stdout
    rows = collections.defaultdict(lambda: collections.Counter())
    for line in text.splitlines():
        row = json.loads(line)
        if row["join"] == "no_launch":
            continue
        op = row.get("op", "")
        if op not in at:
            op = plain(row.get("calls", op).split(">")[-1])
        key = (op,) + tuple(
            json.dumps(json.loads(row.get(name) or "[]")) for name in ("shapes", "types", "strides", "inputs"))
        into = rows[key]
        memset = row["kernel"].startswith("Memset")
        into["memset" if memset else "time"] += row["sil"] * 1e-3
        into["kernels"] += 1
        for name in ("flops", "bytes"):
            if memset:
                continue
            into[name] += row.get(name) or 0
            if name in row and row[name] is None:
                into["unknown_" + name] = 1
    return rows


def close(a, b, relative=1e-6, absolute=0.0):
    return abs(a - b) <= max(absolute, relative * max(abs(a), abs(b)))


def compare_ops(ott, trace, reference):
    theirs = reference_rows(reference)
    ours = our_rows(ott, trace, {key[0] for key, row in theirs.items() if row["has_model"]})
    bad = 0
    notes = collections.Counter()
    for key, row in sorted(theirs.items(), key=lambda item: -item[1]["time"]):
        our = ours.get(key)
        name = f"{key[0]} {key[1]}"
        if our is None:
            print(f"MISSING  {name}: {row['time']:.3f} us in the reference, no kernel here")
            bad += 1
            continue
        # TraceLens subtracts times of 10^12 us as binary fractions, some of which have a step of 0.0002 us.
        tolerance = 0.0005 * max(row["calls"], our["kernels"])
        with_memsets = our["time"] + our["memset"]
        if not close(our["time"], row["time"], 1e-5, tolerance) and not close(with_memsets, row["time"], 1e-5, tolerance):
            print(f"TIME     {name}: {with_memsets:.3f} us, reference {row['time']:.3f}")
            bad += 1
        elif our["memset"] and not close(with_memsets, row["time"], 1e-5, tolerance):
            notes[f"time: {key[0]}: the reference leaves out memsets"] += 1
        for name_of, word in (("flops", "FLOPs"), ("bytes", "bytes")):
            if not row["has_" + name_of]:
                continue
            if our["unknown_" + name_of]:
                notes[f"{word}: {key[0]}: not known here"] += 1
                bad += bool(row["is_matrix"] and name_of == "flops")
            elif not close(our[name_of], row[name_of], 1e-6, 1.0):
                ratio = our[name_of] / row[name_of] if row[name_of] else float("inf")
                notes[f"{word}: {key[0]}: {ratio:.6g} times the reference's"] += 1
                if row["is_matrix"] and name_of == "flops":
                    print(f"FLOPS    {name}: {our['flops']:.0f}, reference {row['flops']:.0f}")
                    bad += 1
            else:
                notes[f"{word} equal"] += 1
    left = sum(row["time"] for key, row in ours.items() if key not in theirs)
    print(f"{len(theirs)} ops compared; {left:.3f} us of ops that the reference does not list")
    for note, count in sorted(notes.items()):
        print(f"  {count} x {note}")
    return bad


def compare_timeline(ott, trace, timeline):
    theirs = {row["type"]: float(row["time ms"]) for row in csv.DictReader(open(timeline))}
    text = subprocess.run([ott, "trace", trace, "--split", "--json"], capture_output=True, text=True).stdout
    ours = json.loads(text.splitlines()[0])
    bad = 0
    rounding = 5e-5  # ms, in sums of TraceLens's binary fractions
    for name, value in theirs.items():
        mine = ours.get(name)
        if mine is None or not close(mine, value, 1e-6, rounding):
            memsets = ours["memset_time"]
            if name in ("computation_time", "busy_time", "idle_time") and mine is not None and close(
                    abs(mine - value), memsets, 1e-6, rounding):
                print(f"  {name}: {mine:.6f} ms, reference {value:.6f}, which leaves out memsets ({memsets:.6f} ms)")
                continue
            print(f"TIMELINE {name}: {mine} ms, reference {value}")
            bad += 1
    print(f"{len(theirs)} figures of the timeline compared")
    return bad


def main():
    ott, trace, reference = sys.argv[1:4]
    bad = compare_ops(ott, trace, reference)
    if len(sys.argv) > 4:
        bad += compare_timeline(ott, trace, sys.argv[4])
    print("equal" if bad == 0 else f"{bad} differences")
    sys.exit(1 if bad else 0)


main()
