"""A training program of another repository, in Python: measures and dumps below the directory that it is given."""

import array
import os
import sys

import optim_test_tools as ott

stopwatch, dumper = ott.Stopwatch(), ott.TensorDumper()
run_dir = os.path.join(sys.argv[1], "run")
with ott.TrainingRun({"run_dir": run_dir, "stopwatch": {}, "dump": {"iterations": {"every": 2}}}) as run:
    weights = array.array("f", [1.0, 2.0])
    for _ in range(3):
        with stopwatch("step"):
            weights[0] *= 0.5
        dumper.add("weights", weights)
        run.finish_iter()

dumps = os.path.join(run_dir, "rank_00000", "dumps")
assert sorted(os.listdir(dumps)) == ["0", "2"]
assert ott.compare(os.path.join(dumps, "2"), {"weights": array.array("f", [0.125, 2.0])})
