"""Times `ott compare` of two equal checkpoints beside reading both files, page cache warm: speed.py OTT [GIGABYTES [FOLDER [FORMAT]]].

FORMAT: torch, legacy, safetensors or npz. Prints the seconds of each, how fast the comparison is relative to reading, the seconds of one
process and of two of one thread each, those of the latter that pass before they compare, and the largest resident set. Needs PyTorch
and Open MPI.
"""

import os
import subprocess
import sys
import tempfile
import time

OTT = sys.argv[1]
GIGABYTES = float(sys.argv[2]) if len(sys.argv) > 2 else 4
FOLDER = sys.argv[3] if len(sys.argv) > 3 else None
FORMAT = sys.argv[4] if len(sys.argv) > 4 else "torch"
RUNS = 5
MPIRUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../third_party/mpi/mpirun.sh")
# In a process of its own: what is started from a large one begins with its resident set.
WRITE = """
import sys, numpy, torch
layer = torch.randn(1 << 25)  # 128 MiB
layers = {f"layers.{i}": layer.roll(i) for i in range(int(sys.argv[2]))}
for path in sys.argv[3:]:
    if sys.argv[1] == "safetensors":
        import safetensors.torch
        safetensors.torch.save_file(layers, path)
    elif sys.argv[1] == "npz":
        with open(path, "wb") as file:
            numpy.savez(file, **{name: tensor.numpy() for name, tensor in layers.items()})
    else:
        torch.save(layers, path, _use_new_zipfile_serialization=sys.argv[1] == "torch")
"""


def read(path):
    buffer = bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def seconds(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
    paths = [os.path.join(folder, name) for name in ("a.pt", "b.pt")]
    subprocess.run([sys.executable, "-c", WRITE, FORMAT, str(max(1, round(GIGABYTES * 8))), *paths], check=True)

    def read_both():
        for path in paths:
            read(path)

    resident = []

    tiny = [os.path.join(folder, name) for name in ("a.json", "b.json")]
    for path in tiny:
        with open(path, "w") as file:
            file.write('{"step": 1}')

    def compare(of=paths, *options, launcher=()):
        process = subprocess.Popen([*launcher, OTT, "compare", *of, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, "the files are not equal"
        resident.append(usage.ru_maxrss)

    def by_processes(count, of=paths):
        compare(of, "--threads", "1", launcher=(MPIRUN, str(count)))

    read_both()
    # In turn, so that a load of the machine meets all.
    works = (read_both, compare, lambda: by_processes(1), lambda: by_processes(2), lambda: by_processes(2, tiny))
    times = [[seconds(work) for work in works] for _ in range(RUNS)]
    for reading, comparing, one, two, start in times:
        print(
            f"reading {reading:.2f} s, comparing {comparing:.2f} s: {reading / comparing:.2f} of reading; "
            f"one process {one:.2f} s, two {two:.2f} s: {two / one:.2f} of one, {start:.2f} s to start"
        )
    print(f"largest resident set: {max(resident) / 1024:.0f} MiB; cores: {os.cpu_count()}")
