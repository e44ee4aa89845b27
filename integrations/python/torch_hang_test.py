"""What PyTorch's Flight Recorder writes of jobs of four processes over Gloo that stand still: `ott hang` names who is to blame, and
nobody where it cannot be told. torch_hang_test.py OTT"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d

RANKS = 4
# Iterations that all complete: an all_reduce of all, one of each half, and a barrier of all.
ITERATIONS = 3


def write_dump(directory, rank):
    with open(os.path.join(directory, f"trace_{rank}"), "wb") as file:
        file.write(_distributed_c10d._dump_fr_trace(True, True, False))


def entries():
    return json.loads(_distributed_c10d._dump_fr_trace_json(True, False))["entries"]


def run_rank(kind, directory, rank):
    store = dist.FileStore(os.path.join(directory, "store"), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=datetime.timedelta(seconds=120))
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    numbers = torch.ones(8)

    def leave():
        """Ends when all have written, whatever the training's thread stands in."""
        write_dump(directory, rank)
        store.set(f"wrote {rank}", "")
        store.wait([f"wrote {i}" for i in range(RANKS)])
        os._exit(0)

    def stand(call):
        """Calls what does not return, and leaves once the recorder shows it, or that it records no such call."""
        before = len(entries())
        threading.Thread(target=call, daemon=True).start()
        while call is not receive and len(entries()) == before:
            pass
        leave()

    def receive():
        dist.recv(torch.ones(8), src=3)

    for _ in range(ITERATIONS):
        dist.all_reduce(numbers)
        dist.all_reduce(numbers, group=halves[rank // 2])
        dist.barrier()
    dist.all_reduce(numbers)
    while not all(entry["retired"] for entry in entries()):
        pass
    if kind == "complete":
        leave()
    if kind == "absent" and rank == 2 or kind == "receives" and rank == 3:
        leave()
    if kind == "receives" and rank == 0:
        stand(receive)
    if kind == "other" and rank == 1:
        stand(lambda: dist.all_gather([torch.ones(8) for _ in range(RANKS)], numbers))
    stand(dist.barrier)


class HangTest(unittest.TestCase):
    def ask(self, kind):
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, os.path.abspath(__file__), kind, directory]
            environment = dict(os.environ, TORCH_FR_BUFFER_SIZE="2000")
            ranks = [subprocess.Popen(command + [str(rank)], env=environment) for rank in range(RANKS)]
            self.assertEqual([rank.wait() for rank in ranks], [0] * RANKS)
            said = subprocess.run([OTT, "hang", directory], stdout=subprocess.PIPE, text=True, check=False)
            return said.returncode, said.stdout.splitlines()[0]

    def test_ranks_that_completed_all_do_not_hang(self):
        self.assertEqual(self.ask("complete"), (0, "not hanging: no rank waits for another"))

    def test_the_rank_that_never_came_is_named(self):
        code, verdict = self.ask("absent")
        self.assertEqual(code, 1)
        self.assertRegex(verdict, "^rank 2 never came to barrier #8 of group 0, where ranks 0, 1, 3 have waited")

    def test_the_rank_that_called_something_else_is_named(self):
        code, verdict = self.ask("other")
        self.assertEqual(code, 1)
        self.assertRegex(verdict, '^rank 1 as "all_?gather" called #8 of group 0, which ranks 0, 2, 3 as "barrier" called')

    def test_no_rank_is_blamed_for_a_message_that_is_not_recorded(self):
        code, verdict = self.ask("receives")
        self.assertEqual(code, 2)
        self.assertRegex(verdict, "^cannot tell: ranks 0, 3 .*send or receive, which Gloo does not record$")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        run_rank(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    OTT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
