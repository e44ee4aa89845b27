"""Runs trainings of many kinds as they are and under `python -m optim_test_tools`, on two ranks of this machine.

    torch_programs.py [--only NAME...] [--ott PATH] [--show]

For each program it says whether observation left the losses of all iterations and the random numbers as they were, bit for bit, and the
exit codes; whether the run is reported without a finding; and how many iterations were seen. Ends with 1 where one of these is not so.
"""

import argparse
import contextlib
import copy
import os
import re
import shutil
import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from torch_faults import FINDINGS, bad_answers, first_screen, import_for_all, start

DDP = nn.parallel.DistributedDataParallel


class Layer(nn.Module):
    def __init__(self, width=16, recomputes=False):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.norm, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, width))
        self.recomputes = recomputes

    def attend(self, x):
        return x + self.attention(x, x, x, need_weights=False)[0]

    def forward(self, x):
        if self.recomputes:
            from torch.utils.checkpoint import checkpoint

            x = checkpoint(self.attend, x, use_reentrant=False)
        else:
            x = self.attend(x)
        return x + self.mlp(self.norm(x))


class Language(nn.Module):
    def __init__(self, recomputes=False):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)
        self.layers = nn.ModuleList([Layer(recomputes=recomputes) for _ in range(2)])

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        torch.manual_seed(index)
        return torch.randint(20, (6,)), index % 4


def tell(loss):
    """What is learned: every loss by its bits."""
    print("learned", dist.get_rank(), loss.detach().double().item().hex(), flush=True)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell(loss)


def tokens():
    x = torch.randint(20, (4, 7))
    return x[:, :-1], x[:, 1:]


def language_loss(model, batch):
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def seeded(make):
    """A model that all ranks begin with, and random numbers of each rank."""
    torch.manual_seed(1)
    model = make()
    torch.manual_seed(7 + dist.get_rank())
    return model


def compiled():
    """torch.compile of a model in DistributedDataParallel, with batches of two sizes."""
    model = torch.compile(DDP(seeded(Language)), backend="aot_eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for i in range(6):
        x, y = tokens()
        step(optimizer, language_loss(model, (x[: 3 + i % 2], y[: 3 + i % 2])))


def recomputed():
    """Activation checkpointing, accumulation over two micro steps, clipping, a schedule."""
    model = DDP(seeded(lambda: Language(recomputes=True)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=8)
    for _ in range(6):
        for micro_step in range(2):
            with model.no_sync() if micro_step == 0 else contextlib.nullcontext():
                loss = language_loss(model, tokens()) / 2
                loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        tell(loss)


def convolutions():
    """A channels_last CNN with BatchNorm in bfloat16, evaluated and saved after each epoch."""
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    model = DDP(seeded(lambda: net.to(memory_format=torch.channels_last)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    for _ in range(2):
        for _ in range(4):
            x = torch.randn(4, 3, 8, 8).to(memory_format=torch.channels_last)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                step(optimizer, F.cross_entropy(model(x), torch.randint(4, (4,)), label_smoothing=0.1))
        model.eval()
        with torch.inference_mode():
            tell(model(torch.ones(2, 3, 8, 8)).sum())
        model.train()
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), os.path.join(os.environ["FAULTS_DIR"], "best.pt"))
        dist.barrier()


def workers():
    """DataLoaders with processes by fork and by spawn, that stay and that do not, and a DistributedSampler."""
    sampler = torch.utils.data.distributed.DistributedSampler(Tokens(), shuffle=True, seed=3)
    model = DDP(seeded(lambda: nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(48, 4))))
    optimizer = torch.optim.Adam(model.parameters())
    for method, stays in (("fork", True), ("spawn", False)):
        processes = {"num_workers": 2 if method == "fork" else 1, "multiprocessing_context": method, "persistent_workers": stays}
        loader = torch.utils.data.DataLoader(Tokens(), batch_size=4, sampler=sampler, **processes)
        for epoch in range(2 if stays else 1):
            sampler.set_epoch(epoch)
            for x, y in loader:
                step(optimizer, F.cross_entropy(model(x), y))


def distilled():
    """A student that learns from a frozen teacher and from a moving average of itself."""
    teacher, student = seeded(lambda: Language().eval().requires_grad_(False)), DDP(seeded(Language))
    average = torch.optim.swa_utils.AveragedModel(student.module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.AdamW([{"params": student.module.head.parameters(), "lr": 1e-3}, {"params": [p for n, p in student.named_parameters() if "head" not in n], "lr": 1e-2}])
    for i in range(6):
        x, y = tokens()
        with torch.no_grad():
            wanted = teacher(x)
        scores = student(x)
        loss = F.kl_div(scores.log_softmax(-1), wanted.log_softmax(-1), log_target=True, reduction="batchmean") + F.cross_entropy(scores.flatten(0, 1), y.flatten())
        step(optimizer, loss)
        average.update_parameters(student.module)
        if i % 3 == 2:
            with torch.no_grad():
                tell(language_loss(average.eval(), (x, y)))


def averaged():
    """Stochastic weight averaging with a schedule of its own, and its BatchNorm renewed at the end."""
    model = DDP(seeded(lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))))
    average = torch.optim.swa_utils.AveragedModel(model.module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    data = torch.utils.data.TensorDataset(torch.randn(16, 8), torch.randint(4, (16,)))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    for _ in range(2):
        for x, y in loader:
            step(optimizer, F.cross_entropy(model(x), y))
        average.update_parameters(model.module)
        schedule.step()
    torch.optim.swa_utils.update_bn(loader, average)
    tell(average.eval()(torch.ones(1, 8)).sum())


def sharded():
    """FSDP2 in bfloat16 with float32 reductions, by layer, with recomputation, clipping and distributed checkpoints."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model = seeded(lambda: Language(recomputes=True))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    path = os.path.join(os.environ["FAULTS_DIR"], "sharded")
    for i in range(6):
        loss = language_loss(model, tokens())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tell(loss)
        if i == 2:
            state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
            dcp.save(state, checkpoint_id=path)
            dcp.load(state, checkpoint_id=path)
            set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


def pipelined():
    """Two stages of torch.distributed.pipelining by 1F1B, of which the second is three times as long, and long enough to be judged."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank = dist.get_rank()
    torch.manual_seed(1)
    parts = [nn.Sequential(nn.Embedding(20, 16), Layer()), nn.Sequential(Layer(), Layer(), Layer(), nn.Linear(16, 20))]
    stage = PipelineStage(parts[rank], rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda scores, y: F.cross_entropy(scores.flatten(0, 1), y.flatten()))
    optimizer = torch.optim.AdamW(parts[rank].parameters(), lr=1e-2)
    torch.manual_seed(5)
    for _ in range(60):
        x, y = tokens()
        losses = []
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=losses)
        optimizer.step()
        tell(torch.stack(losses).sum() if losses else torch.rand(()))


def handed_on():
    """Two stages alike by send() and recv(), long enough to be judged."""
    rank = dist.get_rank()
    stage = seeded(lambda: nn.Sequential(Layer(), Layer()))
    optimizer = torch.optim.SGD(stage.parameters(), lr=1e-2)
    for _ in range(60):
        x = torch.randn(8, 8, 16)
        if rank == 0:
            out = stage(x)
            dist.send(out.detach(), 1)
            gradient = torch.empty_like(out)
            dist.recv(gradient, 1)
            out.backward(gradient)
            tell(out.mean())
        else:
            dist.recv(x, 0)
            loss = stage(x.requires_grad_()).square().mean()
            loss.backward()
            dist.send(x.grad, 0)
            tell(loss)
        optimizer.step()
        optimizer.zero_grad()


def newton():
    """LBFGS with a line search, whose closure runs as often as it likes, and returns the mean of all ranks."""
    model = DDP(seeded(lambda: nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    x, y = torch.randn(16, 8), torch.randint(4, (16,))

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        return mean

    for _ in range(4):
        tell(optimizer.step(closure))


def resumed():
    """A loop that ends by an exception, and goes on from its checkpoint; the program ends with 3."""
    rank = dist.get_rank()
    path = os.path.join(os.environ["FAULTS_DIR"], f"resumed{rank}.pt")

    def train(fails):
        model = DDP(seeded(Language))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        first = 0
        if os.path.exists(path):
            state = torch.load(path)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["random"])
            first = state["iteration"]
        for i in range(first, 8):
            loss = language_loss(model, tokens())
            if fails and i == 5:
                raise RuntimeError("as planned")
            step(optimizer, loss)
            if i == 3:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state(), "iteration": i + 1}, path)

    try:
        train(fails=True)
    except RuntimeError:
        print("goes on", flush=True)
    train(fails=False)
    os.remove(path)
    dist.destroy_process_group()
    sys.exit(3)


def stepped_in_backward():
    """An optimizer for each parameter, which steps as soon as the gradient is there."""
    model = seeded(Language)
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def step_at_once(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step_at_once)
    for _ in range(6):
        loss = language_loss(model, tokens())
        loss.backward()
        tell(loss)


def uneven():
    """Ranks with unlike numbers of batches, which Join lets wait for each other."""
    model = DDP(seeded(Language))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for _ in range(5 + 2 * dist.get_rank()):
            step(optimizer, language_loss(model, tokens()))


def partitioned():
    """The state of the optimizer is divided among the ranks by ZeroRedundancyOptimizer."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DDP(seeded(Language))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-2)
    for _ in range(6):
        step(optimizer, language_loss(model, tokens()))


def per_sample():
    """Gradients of each sample by torch.func, clipped and made noisy by hand."""
    model = seeded(lambda: nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    frozen = copy.deepcopy(model).to("meta")

    def loss_of(parameters, x, y):
        return F.cross_entropy(torch.func.functional_call(frozen, parameters, (x[None],)), y[None])

    for _ in range(5):
        x, y = torch.randn(6, 8), torch.randint(4, (6,))
        parameters = {name: p.detach() for name, p in model.named_parameters()}
        gradients, losses = torch.func.vmap(torch.func.grad_and_value(loss_of), (None, 0, 0))(parameters, x, y)
        for name, p in model.named_parameters():
            p.grad = gradients[name].clamp(-1, 1).mean(0)
            dist.all_reduce(p.grad)
        optimizer.step()
        optimizer.zero_grad()
        tell(losses.mean())


def recurrent():
    """A packed LSTM over a sequence in parts, whose state goes on, and a scripted head."""

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.LSTM(8, 16, batch_first=True), torch.jit.script(nn.Linear(16, 4))

        def forward(self, x, lengths, state):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, state = self.cell(packed, state)
            return self.head(nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0]), state

    model = DDP(seeded(Reader))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    state = None
    for _ in range(6):
        lengths = torch.tensor([5, 3, 4])
        out, state = model(torch.randn(3, 5, 8), lengths, state)
        state = tuple(part.detach() for part in state)
        loss = F.cross_entropy(out.flatten(0, 1), torch.randint(4, (15,)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        tell(loss)


def played():
    """A policy that collects its own data without gradients, and learns several epochs from them (PPO)."""
    policy, value = (DDP(seeded(lambda size=size: nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, size)))) for size in (3, 1))
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-3)
    for _ in range(3):
        with torch.no_grad():
            x = torch.randn(12, 4)
            chosen = torch.distributions.Categorical(logits=policy(x))
            actions = chosen.sample()
            before = chosen.log_prob(actions)
            rewards = (actions == 1).float() - value(x)[:, 0]
        for rows in torch.randperm(12).split(6):
            ratio = (torch.distributions.Categorical(logits=policy(x[rows])).log_prob(actions[rows]) - before[rows]).exp()
            step(optimizer, -torch.min(ratio * rewards[rows], ratio.clamp(0.8, 1.2) * rewards[rows]).mean() + F.mse_loss(value(x[rows])[:, 0], rewards[rows]))


def forged():
    """A generator and a critic with an optimizer each: an iteration ends with the next one, or with the run."""
    generator, critic = (DDP(seeded(lambda sizes=sizes: nn.Linear(*sizes))) for sizes in ((4, 8), (8, 1)))
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in (critic, generator)]
    for _ in range(6):
        fake = generator(torch.randn(6, 4))
        for i, optimizer in enumerate(optimizers):
            step(optimizer, -critic(fake).mean() if i else critic(fake.detach()).mean() - critic(torch.randn(6, 8)).mean())


PROGRAMS = [
    compiled, recomputed, convolutions, workers, distilled, averaged, sharded, pipelined, handed_on, newton, resumed,
    stepped_in_backward, uneven, partitioned, per_sample, recurrent, played, forged,
]  # fmt: skip
if not hasattr(torch, "compile"):  # PyTorch 1.13
    PROGRAMS = [p for p in PROGRAMS if p not in (compiled, distilled, sharded, pipelined, stepped_in_backward, per_sample)]


def run(name):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    {program.__name__: program for program in PROGRAMS}[name]()
    tell(torch.rand(()))
    dist.barrier()
    dist.destroy_process_group()


def main():
    if sys.argv[1:2] == ["--train"]:
        return run(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[program.__name__ for program in PROGRAMS])
    parser.add_argument("--ott", default=shutil.which("ott") or "bazel-bin/tools/ott", help="the command")
    parser.add_argument("--show", action="store_true", help="print what each run printed")
    options = parser.parse_args()
    import_for_all()
    return sum(not is_left_as_it_is(name, options) for name in options.only) > 0


def is_left_as_it_is(name, options):
    directory = tempfile.mkdtemp(prefix="ott_programs_")
    try:
        plain, observed = ([*start(2, directory, __file__, [name], observed=observed)] for observed in (False, True))
        report = first_screen(options.ott, os.path.join(directory, "run"))
    finally:
        shutil.rmtree(directory)
    learned = [[line for text in texts for line in text.split("\n") if line.startswith("learned")] for texts in (plain[0], observed[0])]
    wrong = []
    if not learned[0] or learned[0] != learned[1]:
        wrong.append("LEARNED OTHERWISE")
    if plain[1] != observed[1]:
        wrong.append(f"ENDED WITH {observed[1]} INSTEAD OF {plain[1]}")
    if bad_answers(report) or FINDINGS.search("".join(observed[0])) or "no longer observed" in "".join(observed[0]):
        wrong.append("FINDING")
    iterations = re.search(r"(\d+) iterations, 2 ranks", report)
    print(f"{name:22}{len(learned[0]):4} numbers, {iterations[1] if iterations else 'NO':>3} iterations: {', '.join(wrong) or 'left as it is'}", flush=True)
    if options.show or wrong or not iterations:
        print("\n".join(plain[0] + observed[0]), report, sep="\n", flush=True)
    return not wrong and iterations is not None


if __name__ == "__main__":
    sys.exit(main())
