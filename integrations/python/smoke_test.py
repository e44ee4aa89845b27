"""Tests what the package does where neither NumPy nor PyTorch is installed."""

import array
import importlib.metadata
import importlib.util
import os
import sys
import tempfile

import optim_test_tools as ott
from optim_test_tools import accvlab

assert "numpy" not in sys.modules and "torch" not in sys.modules
assert importlib.metadata.version("optim-test-tools") == ott.__version__
assert importlib.util.find_spec("optim_test_tools.torch") and importlib.util.find_spec("optim_test_tools.__main__")
directory = tempfile.mkdtemp()
stopwatch, dumper = ott.Stopwatch(), ott.TensorDumper()
with ott.TrainingRun({"run_dir": f"{directory}/run", "stopwatch": {}, "dump": {}}, ranks="local") as run:
    for i in range(3):
        with stopwatch("forward"):
            dumper.add("x", {"data": array.array("d", [1.0, float(i)]), "note": "text"}, "binary")
        run.finish_iter()
dumps = f"{directory}/run/rank_00000/dumps"
assert sorted(os.listdir(dumps)) == ["0", "1", "2"]
assert memoryview(ott.load_dump(f"{dumps}/2", "raw").tensors["x"]["data"]).tolist() == [1.0, 2.0]
comparison = ott.compare(f"{dumps}/1", f"{dumps}/2")
assert comparison.verdict is ott.Verdict.DIFFERENT and "x.data: mismatch" in str(comparison), comparison
assert ott.compare(f"{dumps}/1", f"{dumps}/1")
accvlab.Stopwatch(0, None, False)
try:
    accvlab.Stopwatch().end_meas("never")
except AssertionError as error:
    assert "start it first" in str(error)
else:
    raise AssertionError("misuse was not noticed")
print("ott", ott.__version__, "works in", sys.prefix)
