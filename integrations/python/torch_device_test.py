"""A training whose parameters say that they lie on a CUDA device: its parts are timed by events on the device, here the stand-in
for the CUDA runtime; where there is none, by the host alone, which is said. torch_device_test.py {device | host}"""

import io
import itertools
import os
import sys
import tempfile
import time
from contextlib import redirect_stderr

import torch
from torch import nn

import optim_test_tools as ott


class OnDevice(nn.Parameter):
    __torch_function__ = torch._C._disabled_torch_function_impl
    is_cuda = True


PARTS = {"forward", "backward", "optimizer"}


def timed_parts():
    """Those of which the device's time is known by now, as nothing waits for it."""
    measurements = ott.Stopwatch().stats().get("measurements", [])
    return PARTS & {m["name"] for m in measurements if int(m.get("device_per_interval", {}).get("count", 0)) > 0}


def main():
    has_device = sys.argv[1:] == ["device"]
    model = nn.Linear(4, 4, bias=False)
    model.weight = OnDevice(model.weight.detach())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    directory = os.path.join(os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp(), f"run_{sys.argv[1]}")
    said = io.StringIO()
    with redirect_stderr(said):
        ott.torch.observe(model, optimizer, config={"run_dir": directory, "stopwatch": {}})
        end = time.monotonic() + 30
        for i in itertools.count():
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            if i >= 20 and (not has_device or timed_parts() == PARTS or time.monotonic() > end):
                break
        timed = timed_parts()
        ott.torch.finish()
    assert timed == (PARTS if has_device else set()), timed
    assert ("times are those of the host" in said.getvalue()) != has_device, said.getvalue()


if __name__ == "__main__":
    main()
