"""Trainings by Hugging Face's Trainer, Accelerate and Lightning on two ranks, as they are and observed: the bits must be the same.
What is not installed is skipped; tools/setup --test installs it beside PyTorch 2.13."""

import importlib.util
import os
import unittest

import torch
from torch import nn
from torch_for_test import DIRECTORY, RANK, WORLD, ObservedTestCase, digest, learns_alike, main


def installed(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"no {name} here; tools/setup --test installs it for PyTorch 2.13")


class Rows(torch.utils.data.Dataset):
    def __init__(self, length):
        self.tokens = torch.randint(32, (length, 8), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.dropout, self.head = nn.Embedding(32, 16), nn.Dropout(0.1), nn.Linear(16, 32)

    def forward(self, input_ids, labels=None):
        scores = self.head(self.dropout(self.embedding(input_ids)))
        return {"loss": nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten()), "logits": scores}


class FrameworksTest(ObservedTestCase):
    @installed("transformers")
    def test_trainer_of_hugging_face(self):
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

        def train():
            torch.manual_seed(3)
            sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": 32, "n_positions": 8}
            model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
            arguments = TrainingArguments(
                output_dir=os.path.join(DIRECTORY, "trainer"),
                use_cpu=True,
                max_steps=6,
                per_device_train_batch_size=2,
                gradient_accumulation_steps=2,
                eval_strategy="steps",
                eval_steps=3,
                save_steps=3,
                report_to=[],
                disable_tqdm=True,
                seed=5,
            )
            trainer = Trainer(model=model, args=arguments, train_dataset=Rows(48), eval_dataset=Rows(8))
            trainer.train()
            return digest(model)

        observed = self.check("trainer", train, 6, forward=12, backward=12, clipping=6, optimizer=6)
        _, names = observed.measurements()
        self.assertIn("evaluation", names)
        self.assertIn("checkpoint", names)
        self.assertTrue(any(name.startswith("data of Rows, torch_frameworks_test.py:") for name in names), names)

    @installed("accelerate")
    @learns_alike(3, forward=6, backward=6, clipping=3, optimizer=3, dist__gradients=3)
    def test_accelerate(self):
        from accelerate import Accelerator

        torch.manual_seed(3)
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = Language()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        loader = torch.utils.data.DataLoader(Rows(48), batch_size=4, shuffle=True)
        model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch)["loss"])
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        return digest(accelerator.unwrap_model(model))

    @installed("lightning")
    def test_lightning(self):
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.language = Language()

            def training_step(self, batch, index):
                return self.language(**batch)["loss"]

            def validation_step(self, batch, index):
                self.log("loss", self.language(**batch)["loss"], sync_dist=True)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        def train():
            lightning.seed_everything(3, verbose=False)
            module = Module()
            trainer = lightning.Trainer(
                accelerator="cpu",
                devices=WORLD,
                strategy="ddp",
                max_epochs=2,
                default_root_dir=os.path.join(DIRECTORY, "lightning"),
                logger=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                gradient_clip_val=0.5,
            )
            loaders = [torch.utils.data.DataLoader(Rows(length), batch_size=4) for length in (24, 8)]
            trainer.fit(module, *loaders)
            return digest(module)

        os.environ["LOCAL_RANK"] = str(RANK)
        os.environ["NODE_RANK"] = "0"
        observed = self.check("lightning", train, 6, forward=6, backward=6, clipping=6, dist__gradients=6)
        _, names = observed.measurements()
        self.assertIn("evaluation", names)
        # Lightning lets rank 0 alone write.
        self.assertEqual("checkpoint" in names, RANK == 0)


if __name__ == "__main__":
    main()
