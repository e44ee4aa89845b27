"""Trains with Accelerate and Lightning, resumes, and compares the checkpoints: frameworks_test.py OTT."""

import os
import random
import subprocess
import sys
import tempfile
import unittest

import accelerate
import lightning
import numpy
import torch

OTT = sys.argv.pop(1)


def compare(reference, current, *flags):
    result = subprocess.run([OTT, "compare", *flags, reference, current], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def train_with_accelerate(directory, resume_from=None, keep_optimizer=True):
    """Four steps, of which the second and the fourth are saved; returns the folder."""
    seed(1)
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.5), torch.nn.Linear(6, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    data = torch.utils.data.TensorDataset(torch.randn(16, 4, generator=torch.Generator().manual_seed(5)))
    # An iterator of the loader draws a number; from a generator of its own, so that skipping draws none of the others.
    loader = torch.utils.data.DataLoader(data, batch_size=4, generator=torch.Generator())
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    first = 0
    if resume_from:
        fresh = torch.optim.AdamW(model.parameters(), lr=0.01).state_dict()
        accelerator.load_state(resume_from)
        if not keep_optimizer:
            optimizer.load_state_dict(fresh)
        first = 2
        loader_from = accelerator.skip_first_batches(loader, 2)
    for step, (batch,) in enumerate(loader_from if resume_from else loader, first + 1):
        accelerator.backward(model(batch).square().sum())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 2 == 0:
            accelerator.save_state(os.path.join(directory, f"checkpoint_{step}"))
    accelerator.free_memory()
    return directory


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.save_hyperparameters({"width": 2})

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().sum()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def train_with_lightning(path, epochs, resume_from=None):
    seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(8, 4, generator=torch.Generator().manual_seed(5)))
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4), ckpt_path=resume_from)
    trainer.save_checkpoint(path)
    return path


class FrameworksTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()

    def path(self, name):
        return os.path.join(self.directory, name)

    def test_accelerate_resumed_is_equal_and_without_its_optimizer_is_not(self):
        run = train_with_accelerate(self.path("run"))
        resumed = train_with_accelerate(self.path("resumed"), os.path.join(run, "checkpoint_2"))
        code, text = compare(run, resumed, "--bitwise")
        self.assertEqual(code, 0, text)
        self.assertIn("note: iteration 2 only in the reference: the current begins later", text)
        _, text = compare(os.path.join(run, "checkpoint_4"), os.path.join(resumed, "checkpoint_4"))
        for kind in ("weights", "optimizer moments", "optimizer step", "schedule", "random numbers"):
            self.assertIn(f"{kind} equal", text)
        broken = train_with_accelerate(self.path("broken"), os.path.join(run, "checkpoint_2"), keep_optimizer=False)
        code, text = compare(run, broken)
        self.assertEqual(code, 1, text)
        self.assertIn("optimizer moments from iteration 4 on, optimizer step from iteration 4 on", text)

    def test_random_numbers_of_a_rank_are_named(self):
        run = self.path("run")
        seed(1)
        for name, other in (("a", 3), ("b", 4)):
            os.makedirs(os.path.join(run, name))
            for rank in range(4):
                state = torch.Generator().manual_seed(other if rank == 3 else rank).get_state()
                torch.save({"torch_manual_seed": state}, os.path.join(run, name, f"random_states_{rank}.pkl"))
        code, text = compare(os.path.join(run, "a"), os.path.join(run, "b"))
        self.assertEqual(code, 1, text)
        self.assertIn("random numbers DIFFER (1 of 4; of rank 3)", text)

    def test_lightning_resumed_is_equal_and_each_part_is_known(self):
        whole = train_with_lightning(self.path("whole.ckpt"), 2)
        half = train_with_lightning(self.path("half.ckpt"), 1)
        resumed = train_with_lightning(self.path("resumed.ckpt"), 2, resume_from=half)
        code, text = compare(whole, resumed)
        for part in ("weights equal (2)", "optimizer moments equal (4)", "optimizer step equal (2)", "schedule equal"):
            self.assertIn(part, text)
        code, text = compare(half, whole)
        self.assertEqual(code, 1, text)
        for part in ("weights DIFFER (2 of 2)", "optimizer step DIFFER (2 of 2)", "data position DIFFER"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
