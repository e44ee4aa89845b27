#!/usr/bin/env python3
"""reference_check.py OTT FOLDER: MLPerf's reference convergence check beside `ott curves`, on published logs.

FOLDER/BENCHMARK/.../CONFIGURATION/result_N.txt.gz are logs, FOLDER/rcps/rcps_BENCHMARK.json the reference points. The check is
that of mlcommons/logging (mlperf_logging/rcp_checker): of the samples to the target the smallest and the largest count on neither
side; a t-test with a common variance, on one side, at 5 %; who needs significantly fewer samples than the reference fails. Between
two batch sizes with reference points, mean and standard deviation are interpolated. Needs scipy.
"""

import collections
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile

import numpy
from scipy import stats

LEVEL = 0.05


def read_log(path):
    """The batch size, and the samples or epochs at which the run reached its target; None if it did not."""
    batch, at, reached = None, None, None
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            _, mark, text = line.partition(":::MLLOG ")
            if not mark:
                continue
            event = json.loads(text)
            metadata = event.get("metadata") or {}
            if event["key"] == "global_batch_size":
                batch = event["value"]
            elif event["key"] == "eval_accuracy":
                at = metadata.get("samples_count", metadata.get("epoch_num"))
            elif event["key"] == "run_stop" and metadata.get("status") == "success":
                reached = at
    return batch, reached


def read_configurations(root):
    """Lists of (folder, batch size, samples to the target)."""
    for folder, _, names in sorted(os.walk(root)):
        logs = [read_log(os.path.join(folder, name)) for name in sorted(names) if name.startswith("result_")]
        reached = [at for _, at in logs if at is not None]
        if len(reached) > 3 and len({batch for batch, _ in logs}) == 1:
            yield folder, logs[0][0], reached


def read_references(path):
    """Samples to the target by batch size."""
    with open(path, encoding="utf-8") as file:
        points = json.load(file)
    return {point["BS"]: next(value for key, value in point.items() if key.lower().endswith("to converge")) for point in points.values()}


def trimmed(values):
    kept = sorted(values)[1:-1]
    return numpy.mean(kept), numpy.std(kept), len(kept)


def reference_at(references, batch):
    """Mean, standard deviation and number of runs, and the runs where this batch size has some. None beyond all batch sizes."""
    if batch in references:
        return trimmed(references[batch]), references[batch]
    sizes = sorted(references)
    if not sizes[0] < batch < sizes[-1]:
        return None
    each = [trimmed(references[size]) for size in sizes]
    mean, deviation = (numpy.interp(batch, sizes, [one[i] for one in each]) for i in (0, 1))
    return (mean, deviation, each[0][2]), None


def fails(submitted, reference):
    mean, deviation, count = trimmed(submitted)
    if deviation == 0 and reference[1] == 0:
        return bool(mean < reference[0])
    return stats.ttest_ind_from_stats(mean, deviation, count, *reference, equal_var=True, alternative="less").pvalue <= LEVEL


def ask_ott(ott, reference, submitted):
    """The verdict on samples to the target, of which fewer are better, at 5 % on each side."""
    with tempfile.TemporaryDirectory() as folder:
        for side, values in (("a", reference), ("b", submitted)):
            with open(os.path.join(folder, side + ".csv"), "w", encoding="utf-8", newline="") as file:
                rows = csv.writer(file)
                rows.writerow(["run", "step", "samples_to_target"])
                rows.writerows((run, 1, value) for run, value in enumerate(values))
        command = [ott, "curves", "--better", "lower", "--confidence", "90", "--metric", "samples_to_target", "--format", "json",
                   os.path.join(folder, "a.csv"), "---", os.path.join(folder, "b.csv")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode not in (0, 1, 2) or not done.stdout:
            raise RuntimeError(done.stderr)
        answer = json.loads(done.stdout)["answers"][0]
    return answer["evidence"]["metrics"][0].get("kind", "CANNOT_TELL")


def main(ott, root):
    print("| benchmark | configurations | no reference | of them interpolated | the check | of `ott curves` |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sorted(os.listdir(os.path.join(root, "rcps"))):
        benchmark = name[len("rcps_"):-len(".json")]
        references = read_references(os.path.join(root, "rcps", name))
        total, unknown, interpolated = 0, 0, collections.Counter()
        verdicts = {"pass": collections.Counter(), "fail": collections.Counter()}
        for _, batch, submitted in read_configurations(os.path.join(root, benchmark)):
            total += 1
            found = reference_at(references, batch)
            if found is None:
                unknown += 1
                continue
            reference, runs = found
            result = "fail" if fails(submitted, reference) else "pass"
            if runs is None:
                interpolated[result] += 1
            else:
                verdicts[result][ask_ott(ott, runs, submitted)] += 1
        for result, counts in verdicts.items():
            told = ", ".join(f"{count} {kind.lower().replace('_', ' ')}" for kind, count in sorted(counts.items()))
            print(f"| {benchmark} | {total} | {unknown} | {interpolated[result]} | {result}: {sum(counts.values())} | {told or 'none'} |")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
