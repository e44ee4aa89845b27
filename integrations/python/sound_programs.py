"""Small training programs of many kinds, healthy ones and the same with one line that breaks them, and what is found in them.

    sound_programs.py [--seeds 10] [--only NAME...] [--healthy 30] [--show]
    sound_programs.py --cost 12

Each is run under observation, without a configuration but for where it writes; those of several ranks on 2 and 4 ranks of this
machine. Prints for each planted fault of how many runs it was found within two iterations, by the right rule and name, and how many
of the healthy runs have a finding. Ends with 1 where a fault was missed or a healthy run has one.
"""

import argparse
import copy
import datetime
import glob
import itertools
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import optim_test_tools as ott

warnings.filterwarnings("ignore")
AT = 3  # the iteration that faults of the middle of a training begin with


class Net(nn.Module):
    def __init__(self, width=16, dropout=0.1):
        super().__init__()
        self.body = nn.Linear(8, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.dropout(self.norm(self.body(x)).relu()))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 36, 4)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).relu().flatten(1))


class Language(nn.Module):
    def __init__(self, tied=True):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True)
        self.head = nn.Linear(16, 20, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.block(self.embedding(x), src_mask=mask))


def batch(n=8):
    return torch.randn(n, 8), torch.randint(4, (n,))


def images(n=6):
    return torch.randn(n, 1, 8, 8), torch.randint(4, (n,))


def loader(n=32, **options):
    data = torch.utils.data.TensorDataset(torch.randn(n, 8), torch.randint(4, (n,)))
    return torch.utils.data.DataLoader(data, batch_size=4, **options)


def loss_of(model, data):
    return F.cross_entropy(model(data[0]), data[1])


# Programs of one process. `fault` is empty in healthy runs.


def classifier(fault, iterations=8):
    """SGD with momentum, clipping, a schedule and an evaluation, the usual loop."""
    model = Net()
    if fault == "half_of_the_parameters":
        optimizer = torch.optim.SGD(model.body.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if fault == "replaced_head":
        model.head = nn.Linear(16, 4)
    if fault == "copied_model":
        model = copy.deepcopy(model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
    parameters = model.parameters()
    list(parameters)
    if fault == "eval_from_the_start":
        model.eval()
    for i in range(iterations):
        if fault == "schedule_first":
            schedule.step()
        data = batch()
        if not (fault == "no_zero_grad" or (fault == "no_zero_grad_later" and i >= AT)):
            optimizer.zero_grad()
        if fault == "replaced_later" and i == AT:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())
        if fault == "other_optimizer" and i == AT:
            model = Net()
        x = data[0]
        if fault == "input_is_nan" and i == AT:
            x = x / 0 * 0
        loss = F.cross_entropy(model(x), data[1])
        loss.backward()
        if fault == "zero_grad_after_backward":
            optimizer.zero_grad()
        if fault == "module_zero_grad_after_backward":
            model.zero_grad(set_to_none=False)
        if fault == "gradient_is_nan" and i == AT:
            model.body.weight.grad[0, 0] = float("nan")
        if fault == "gradient_is_infinite" and i == AT:
            model.head.bias.grad[1] = float("inf")
        if fault == "clipped_nothing":
            nn.utils.clip_grad_norm_(parameters, 1e-3)
        elif fault != "clipped_after_step":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if fault == "stepped_twice" or (fault == "stepped_twice_later" and i == AT):
            optimizer.step()
        if fault == "clipped_after_step":
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        if fault != "schedule_first":
            schedule.step()
        if i % 3 == 2:
            model.eval()
            with torch.no_grad():
                model(x)
            if fault != "eval_after_evaluation":
                model.train()


class Broken(Net):
    """Loses the gradient of its body."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "no_grad":
            with torch.no_grad():
                x = self.norm(self.body(x))
        else:
            x = self.norm(self.body(x))
            x = {"detach": x.detach, "data": lambda: x.data, "": lambda: x}[self.how]()
        return self.head(x)


def detached(fault):
    model = Broken(fault)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(5):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


def unregistered(fault):
    """Layers in a list, of which PyTorch knows nothing."""

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [nn.Linear(8, 8) for _ in range(3)]
            self.layers = layers if fault else nn.ModuleList(layers)
            self.head = nn.Linear(8, 4)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return self.head(x)

    model = Stack()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, batch()).backward()
        optimizer.step()


def convolution(fault):
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(6):
        model.train()
        if fault and i >= AT:
            model.eval()
        loss_of(model, images()).backward()
        optimizer.step()
        optimizer.zero_grad()


def gan(fault, critics=1):
    G, D = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    if fault == "generator_in_no_optimizer":
        og = torch.optim.Adam(G[:1].parameters(), 1e-3)
    for _ in range(6):
        for _ in range(critics):
            if fault != "critic_not_zeroed":
                od.zero_grad()
            fake = G(torch.randn(8, 4)).detach()
            (F.softplus(-D(torch.randn(8, 8))).mean() + F.softplus(D(fake)).mean()).backward()
            od.step()
        og.zero_grad()
        F.softplus(-D(G(torch.randn(8, 4)))).mean().backward()
        og.step()


def gan_with_critics(fault):
    gan(fault, 3)


def recurrent(fault):
    rnn, head = nn.LSTM(8, 16, 2, batch_first=True, dropout=0.1), nn.Linear(16, 4)
    optimizer = torch.optim.RMSprop([*rnn.parameters(), *head.parameters()], 1e-3)
    state = None
    for _ in range(6):
        out, state = rnn(torch.randn(4, 5, 8), state)
        state = tuple(s.detach() for s in state)
        optimizer.zero_grad()
        F.cross_entropy(head(out[:, -1]), torch.randint(4, (4,))).backward()
        nn.utils.clip_grad_value_(rnn.parameters(), 1.0)
        optimizer.step()


def vae(fault):
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.mean, self.log, self.decoder = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 2), nn.Linear(2, 8)

        def forward(self, x):
            h = self.encoder(x).relu()
            mean, log = self.mean(h), self.log(h)
            return self.decoder(mean + torch.randn_like(mean) * (log / 2).exp()), mean, log

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        x = batch()[0]
        y, mean, log = model(x)
        loss = F.mse_loss(y, x) - 0.5 * (1 + log - mean**2 - log.exp()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def siamese(fault):
    """SimSiam: one network twice, with a stop-gradient."""
    model, predictor = Net(), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*model.parameters(), *predictor.parameters()], 0.05)
    for _ in range(6):
        x = batch()[0]
        a, b = model(x), model(x + 0.1 * torch.randn_like(x))
        loss = -(F.cosine_similarity(predictor(a), b.detach()) + F.cosine_similarity(predictor(b), a.detach())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def language(fault):
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(i / 4, 1))  # from 0
    for i in range(8):
        if fault == "untied" and i == AT:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())
            optimizer.param_groups[0]["params"].append(model.head.weight)
        tokens = torch.randint(20, (4, 7))
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def lora(fault):
    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = nn.Linear(8, 8)
            self.base.requires_grad_(False)
            self.a, self.b = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
            nn.init.zeros_(self.b.weight)
            self.head = nn.Linear(8, 4)

        def forward(self, x):
            return self.head(self.base(x) + self.b(self.a(x)))

    model = Adapted()
    held = model.parameters() if fault == "all" else [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(held, 1e-3)
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


def frozen(fault):
    """A part is frozen in the middle of a training."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for i in range(7):
        optimizer.zero_grad(set_to_none=not fault)
        if i == AT:
            model.body.requires_grad_(False)
        loss_of(model, batch()).backward()
        optimizer.step()


def ema(fault):
    model = Net()
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        data = batch()
        with torch.no_grad():
            target = teacher(data[0])
        optimizer.zero_grad()
        (loss_of(model, data) + F.mse_loss(model(data[0]), target)).backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(teacher.parameters(), model.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)


def momentum_encoder(fault):
    """MoCo: the copy is a part of the model, and written through .data."""

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = Net(), Net()

        def forward(self, x):
            with torch.no_grad():
                for a, b in zip(self.k.parameters(), self.q.parameters()):
                    a.data = a.data * 0.9 + b.data * 0.1
                k = self.k(x)
            return (self.q(x) - k).square().mean()

    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model(batch()[0]).backward()
        optimizer.step()


def experts(fault):
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(8, 4)
            self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
            self.head = nn.Linear(8, 4)

        def forward(self, x):
            weight, chosen = self.gate(x).softmax(-1).max(-1)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts[:2]):  # two are idle
                rows = chosen % 2 == i
                if rows.any():
                    out[rows] = expert(x[rows])
            return self.head(out * weight[:, None])

    model = Mixture()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


def recomputed(fault):
    from torch.utils.checkpoint import checkpoint

    for reentrant in (True, False):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            x, y = batch()
            x.requires_grad_()
            optimizer.zero_grad()
            F.cross_entropy(checkpoint(model, x, use_reentrant=reentrant), y).backward()
            optimizer.step()


def recomputed_inside(fault):
    from torch.utils.checkpoint import checkpoint

    class Model(Net):
        def forward(self, x):
            return self.head(checkpoint(self.norm, self.body(x), use_reentrant=True))

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


def reinforcement(fault):
    """DQN: a target network that is copied now and then, and acting without gradients."""
    online = Net(dropout=0)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters())
    for i in range(8):
        with torch.no_grad():
            online(torch.randn(1, 8))
            value = target(torch.randn(8, 8)).max(1).values
        x, a = batch()
        optimizer.zero_grad()
        F.smooth_l1_loss(online(x).gather(1, a[:, None])[:, 0], value).backward()
        nn.utils.clip_grad_value_(online.parameters(), 100)
        optimizer.step()
        if i % 3 == 0:
            target.load_state_dict(online.state_dict())


def actor_critic(fault):
    """Two losses, two optimizers, and an actor that learns every second time."""
    actor, critic = Net(dropout=0), Net(dropout=0)
    oa, oc = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    for i in range(8):
        x, a = batch()
        oc.zero_grad()
        critic(x).square().mean().backward()
        oc.step()
        if i % 2:
            oa.zero_grad()
            (actor(x).softmax(-1) * critic(x)).sum(1).mean().backward()
            oa.step()


def hogwild(fault):
    """A3C: the optimizer has a shared model, whose gradients are those of a local one."""
    shared = Net(dropout=0)
    local = Net(dropout=0)
    optimizer = torch.optim.Adam(shared.parameters())
    for _ in range(6):
        local.load_state_dict(shared.state_dict())
        optimizer.zero_grad()
        local.zero_grad()
        loss_of(local, batch()).backward()
        for a, b in zip(shared.parameters(), local.parameters()):
            a._grad = b.grad
        optimizer.step()


def lbfgs(fault):
    model = Net(dropout=0)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    data = batch(32)

    def closure():
        if not fault:
            optimizer.zero_grad()
        loss = loss_of(model, data)
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)


def accumulation(fault):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(18):
        (loss_of(model, batch()) / 3).backward()
        if i % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if not fault:
                optimizer.zero_grad()


def scaled(fault):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        (loss if fault == "not_scaled" and i == AT else scaler.scale(loss)).backward()
        if fault != "clipped_scaled":
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def scaled_simply(fault):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i in range(6):
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        scaler.scale(loss).backward()
        if fault and i == AT:
            optimizer.step()
            optimizer.zero_grad()
            continue
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def scaled_with_infinities(fault):
    """The scaler leaves steps out, and the schedule goes on."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i in range(8):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch()) * (float("inf") if i in (0, 4) else 1)).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()


def autocast(fault):
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 4)
            if fault:
                self.body.forward = lambda x: F.linear(x.double(), self.body.weight.double(), self.body.bias.double()).float()

        def forward(self, x):
            return self.head(self.body(x))

    model = Cast()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        loss.backward()
        optimizer.step()


def recreated(fault):
    """A new optimizer for each epoch is meant, one for each step is not."""
    model = Net()
    for _ in range(6 if fault else 2):
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(1 if fault else 4):
            optimizer.zero_grad()
            loss_of(model, batch()).backward()
            optimizer.step()


def epochs(fault):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    data = loader(shuffle=fault != "restarted")
    for _ in range(24 if fault == "restarted" else 4):
        for x, y in [next(iter(data))] if fault == "restarted" else data:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        if not fault:
            schedule.step()
        if fault == "restarted":
            continue
        model.eval()
        with torch.no_grad():
            for x, y in loader():
                model(x)
        model.train()


def endless(fault):
    """A new iterator for each batch of a shuffled loader, as many GANs have it."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = loader(shuffle=True)
    for _ in range(10):
        x, y = next(iter(data))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def resumed(fault):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    ott.torch.finish()
    for _ in range(3):
        optimizer.step()
        schedule.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}, path)
    start_observation()
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3 if fault == "fine_tuned" else 1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    checkpoint = torch.load(path, weights_only=False)
    shutil.rmtree(os.path.dirname(path))
    model.load_state_dict(checkpoint["model"])
    if fault not in ("no_optimizer", "fine_tuned"):
        optimizer.load_state_dict(checkpoint["optimizer"])
    if fault not in ("no_schedule", "fine_tuned"):
        schedule.load_state_dict(checkpoint["schedule"])
    for _ in range(4):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()
        schedule.step()


def fine_tuned(fault):
    resumed("fine_tuned")


def unused_output(fault):
    """A head whose result is not used, as BERT's pooler often is."""

    class Model(Net):
        def __init__(self):
            super().__init__()
            self.pooler = nn.Linear(16, 16)

        def forward(self, x):
            h = self.body(x).relu()
            return self.head(h), self.pooler(h)

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        optimizer.zero_grad()
        x, y = batch()
        F.cross_entropy(model(x)[0], y).backward()
        optimizer.step()


def adversarial(fault):
    """An attack in eval mode before each step, and a perceptual network that is not meant to learn."""
    model, critic = Net(), Net().eval()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        x, y = batch()
        model.eval()
        x.requires_grad_()
        F.cross_entropy(model(x), y).backward()
        x = (x + 0.01 * x.grad.sign()).detach()
        model.train()
        optimizer.zero_grad()
        (loss_of(model, (x, y)) + 0.1 * critic(torch.cat([model(x), model(x)], 1)).square().mean()).backward()
        optimizer.step()


def frozen_norm(fault):
    """Norm layers in eval mode within a model that trains."""
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(5):
        model.train()
        model.norm.eval()
        optimizer.zero_grad()
        loss_of(model, images()).backward()
        optimizer.step()


def style(fault):
    """The picture learns, and the network does not."""
    model, picture = Net(dropout=0), nn.Parameter(torch.randn(1, 8))
    optimizer = torch.optim.Adam([picture], 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(picture).square().mean().backward()
        optimizer.step()


def two_optimizers(fault):
    """Disjoint parameters, one backward pass."""
    model = Net()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    optimizers = [torch.optim.SGD(matrices, 0.1), torch.optim.AdamW([p for p in model.parameters() if p.dim() != 2])]
    for _ in range(6):
        loss_of(model, batch()).backward()
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers[:1] if fault else optimizers:
            optimizer.zero_grad()


def evolution(fault):
    """Gradients without a backward pass."""
    model = Net(dropout=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        with torch.no_grad():
            model(batch()[0])
        for p in model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            p.grad.data.copy_(torch.randn_like(p))
        optimizer.step()


def by_hand(fault):
    """Without an optimizer: p -= rate * gradient."""
    model = Net()
    helper = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(helper.parameters(), 0.1)
    for _ in range(5):
        x, y = batch()
        F.cross_entropy(helper(model(x)), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        optimizer.step()
        optimizer.zero_grad()


def double_backward(fault):
    """A penalty on the gradient."""
    model = Net(dropout=0)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        x, y = batch()
        x.requires_grad_()
        loss = loss_of(model, (x, y))
        (g,) = torch.autograd.grad(loss, x, create_graph=True)
        optimizer.zero_grad()
        (loss + g.square().sum()).backward()
        optimizer.step()


# Programs of several ranks.


def ddp(fault, rank, culprit, variant=""):
    import torch.distributed as dist

    torch.manual_seed(5)
    model = ConvNet() if variant == "conv" else Net()
    inner = model
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    torch.manual_seed(5 if fault == "same_seed" else 50 + rank)
    mine = rank == culprit
    for i in range(8):
        optimizer.zero_grad()
        now = mine and i == AT
        if fault == "eval_on_one_rank" and now:
            model.eval()
        if fault == "rate_on_one_rank" and now:
            optimizer.param_groups[0]["lr"] *= 2
        if fault == "parameter_changed" and now:
            with torch.no_grad():
                inner.head.weight[0, 0] += 1e-3
        if fault == "state_changed" and now:
            optimizer.state[inner.head.weight]["exp_avg"][0, 0] += 1e-3
        if fault == "extra_schedule_step" and now:
            schedule.step()
        data = images() if variant == "conv" else batch(4 if fault == "same_seed" else 4 + rank)
        if variant == "accumulation":
            with model.no_sync():
                loss_of(model, data).backward()
            data = batch()
        if fault in ("no_sync", "clipped_before_reduction") or variant == "by_hand":
            with model.no_sync():
                loss_of(model, data).backward()
        elif fault == "inner_module":
            loss_of(inner, data).backward()
        else:
            loss_of(model, data).backward()
        if fault == "clipped_before_reduction" or variant == "clip":
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        if fault == "clipped_before_reduction" or variant == "by_hand":
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        if fault == "other_dtype":
            dist.all_reduce(torch.ones(4, dtype=torch.int32 if now else torch.float32))
        optimizer.step()
        schedule.step()


def ddp_clipped(fault, rank, culprit):
    ddp(fault, rank, culprit, "clip")


def ddp_convolution(fault, rank, culprit):
    ddp(fault, rank, culprit, "conv")


def ddp_accumulation(fault, rank, culprit):
    ddp(fault, rank, culprit, "accumulation")


def ddp_by_hand(fault, rank, culprit):
    ddp(fault, rank, culprit, "by_hand")


def ddp_epochs(fault, rank, culprit):
    from torch.utils.data.distributed import DistributedSampler

    torch.manual_seed(5)
    model = nn.parallel.DistributedDataParallel(Net())
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(4, (32,)))
    sampler = DistributedSampler(data)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(4):
        if not fault:
            sampler.set_epoch(epoch)
        for x, y in torch.utils.data.DataLoader(data, 2, sampler=sampler):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def fsdp(fault, rank, culprit):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(5)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3) if fault == "optimizer_first" else None
    model = fully_shard(model)
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), 1e-3)
    torch.manual_seed(5 if fault == "same_seed" else 50 + rank)
    for i in range(8):
        if fault != "no_zero_grad":
            optimizer.zero_grad()
        if fault == "eval_on_one_rank" and rank == culprit and i == AT:
            model.eval()
        if fault == "rate_on_one_rank" and rank == culprit and i == AT:
            optimizer.param_groups[0]["lr"] *= 2
        loss_of(model, batch()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def tensor_parallel(fault, rank, culprit):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor, Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(5)
    model = Net(dropout=0)
    model = parallelize_module(model, mesh, {"head": ColwiseParallel()})
    model.body.weight = nn.Parameter(distribute_tensor(model.body.weight.detach(), mesh, [Replicate()]))
    model.body.bias = nn.Parameter(distribute_tensor(model.body.bias.detach(), mesh, [Replicate()]))
    model.norm.weight = nn.Parameter(distribute_tensor(model.norm.weight.detach(), mesh, [Replicate()]))
    model.norm.bias = nn.Parameter(distribute_tensor(model.norm.bias.detach(), mesh, [Replicate()]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(8):
        if fault == "norm_drifts" and rank == culprit and i == AT:
            model.norm.weight.to_local().data[0] += 1e-3
        x = distribute_tensor(torch.randn(4, 8), mesh, [Replicate()])
        optimizer.zero_grad()
        out = model(x)
        out.square().mean().backward()
        optimizer.step()


ALONE = [
    classifier, detached, unregistered, convolution, gan, gan_with_critics, recurrent, vae, siamese, language, lora, frozen, ema,
    momentum_encoder, experts, recomputed, recomputed_inside, reinforcement, actor_critic, hogwild, lbfgs, accumulation, scaled,
    scaled_simply, scaled_with_infinities, autocast, recreated, epochs, endless, resumed, fine_tuned, unused_output, adversarial,
    frozen_norm, style, two_optimizers, evolution, by_hand, double_backward,
]
TOGETHER = [ddp, ddp_clipped, ddp_convolution, ddp_accumulation, ddp_by_hand, ddp_epochs, fsdp, tensor_parallel]

# Program, fault, the rule that finds it, a name that it must have, and the last iteration that it may name.
FAULTS = [
    (classifier, "half_of_the_parameters", "parameter_in_no_optimizer", "head.weight", 1),
    (classifier, "replaced_head", "parameter_in_no_optimizer", "head.weight", 1),
    (classifier, "copied_model", "parameter_in_no_optimizer", "body.weight", 1),
    (classifier, "replaced_later", "parameter_in_no_optimizer", "head.weight", AT + 1),
    (unregistered, "list", "parameter_in_no_optimizer", "a parameter of Linear", 1),
    (gan, "generator_in_no_optimizer", "parameter_in_no_optimizer", "", 1),
    (classifier, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (classifier, "no_zero_grad_later", "gradients_not_zeroed", "body.weight", AT),
    (gan, "critic_not_zeroed", "gradients_not_zeroed", "", 1),
    (accumulation, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (two_optimizers, "one_not_zeroed", "gradients_not_zeroed", "bias", 1),
    (lbfgs, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (classifier, "zero_grad_after_backward", "gradients_zeroed_before_step", "", 0),
    (classifier, "module_zero_grad_after_backward", "gradients_zeroed_before_step", "", 1),
    (classifier, "stepped_twice", "gradient_used_twice", "", 1),
    (classifier, "stepped_twice_later", "gradient_used_twice", "", AT + 1),
    (classifier, "gradient_is_nan", "nonfinite_gradient", "body.weight", AT),
    (classifier, "gradient_is_infinite", "nonfinite_gradient", "head.bias", AT),
    (classifier, "input_is_nan", "nonfinite_gradient", "body.weight", AT),
    (classifier, "eval_from_the_start", "eval_in_training", "Net", 0),
    (classifier, "eval_after_evaluation", "eval_in_training", "Net", 3),
    (convolution, "eval_later", "eval_in_training", "ConvNet", AT),
    (classifier, "clipped_nothing", "clipped_nothing", "", 0),
    (classifier, "clipped_after_step", "clipped_after_step", "", 1),
    (classifier, "schedule_first", "scheduler_before_optimizer", "StepLR", 1),
    (detached, "detach", "missing_gradient", "body.weight", 1),
    (detached, "data", "missing_gradient", "norm.weight", 1),
    (detached, "no_grad", "missing_gradient", "norm.weight", 1),
    (language, "untied", "tied_weights_broken", "head.weight", AT),
    (frozen, "gradient_stays", "frozen_parameter_updated", "body.weight", AT),
    (scaled, "clipped_scaled", "clipped_scaled_gradients", "", 0),
    (scaled, "not_scaled", "loss_not_scaled", "", AT),
    (scaled_simply, "stepped_scaled", "stepped_scaled_gradients", "", AT),
    (autocast, "cast_back", "autocast_dtype", "body", 0),
    (recreated, "each_step", "optimizer_recreated", "", 2),
    (epochs, "no_schedule", "scheduler_not_stepped", "CosineAnnealingLR", 99),
    (epochs, "restarted", "loader_restarted", "", 2),
    (resumed, "no_optimizer", "resumed_without_optimizer", "optimizer", 0),
    (resumed, "no_schedule", "resumed_without_scheduler", "StepLR", 0),
    (ddp, "no_sync", "gradients_not_reduced", "Net", 0),
    (ddp, "inner_module", "gradients_not_reduced", "Net", 0),
    (ddp, "same_seed", "same_data_on_ranks", "the batch", 0),
    (ddp, "eval_on_one_rank", "modes_differ", "modes", AT),
    (ddp, "rate_on_one_rank", "rates_differ", "learning rates", AT),
    (ddp, "extra_schedule_step", "rates_differ", "learning rates", AT + 1),
    (ddp, "parameter_changed", "replicas_differ", "parameters", AT),
    (ddp, "state_changed", "replicas_differ", "optimizer state", AT),
    (ddp, "other_dtype", "collectives_differ", "collectives of ranks", AT),
    (ddp, "clipped_before_reduction", "clip_norms_differ", "gradient norms", 0),
    (ddp_epochs, "no_set_epoch", "epoch_not_reshuffled", "DistributedSampler", 99),
    (fsdp, "optimizer_first", "parameter_in_no_optimizer", "body.weight", 1),
    (fsdp, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (fsdp, "same_seed", "same_data_on_ranks", "the batch", 0),
    (fsdp, "eval_on_one_rank", "modes_differ", "modes", AT),
    (fsdp, "rate_on_one_rank", "rates_differ", "learning rates", AT),
    (tensor_parallel, "norm_drifts", "replicas_differ", "replicated parameters", AT),
]
ON_ONE_RANK = ("on_one_rank", "other_dtype", "_changed", "drifts", "extra_schedule")

_directory = ""


def start_observation():
    ott.torch.observe(config={"run_dir": _directory, "stopwatch": {}})


def run_alone(program, fault, seed):
    """What was found, as text."""
    global _directory
    _directory = tempfile.mkdtemp(prefix="ott_sound_")
    torch.manual_seed(seed)
    ott.set_text_sink(lambda text: None)
    start_observation()
    program(fault)
    ott.torch.finish()
    found = findings_of(_directory)
    shutil.rmtree(_directory)
    return found


def findings_of(directory):
    from optim_test_tools import _ott

    if not os.path.exists(os.path.join(directory, "rank_00000", "sound.json")):
        return "no record: nothing was looked at"
    found = _ott.describe_unsound(directory)
    for path in glob.glob(os.path.join(directory, "rank_*", "sound.json")):
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        ended = [rule["not_checked"] for rule in record["rules"] if "the checks ended" in rule.get("not_checked", "")]
        if not found and (ended or record["num_iterations"] < 3):
            return f"not looked at: {ended[:1]} {record['num_iterations']} iterations"
    return found


def run_together(jobs, ranks, seed):
    """What was found in each of the jobs, (program, fault), by ranks that are forked once for all of them."""
    directory = tempfile.mkdtemp(prefix="ott_sound_")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sys.stdout.flush()
    children = [fork_rank(jobs, rank, ranks, port, directory, seed) for rank in range(ranks)]
    for child in children:
        os.waitpid(child, 0)
    found = []
    for number in range(len(jobs)):
        path = os.path.join(directory, str(number))
        found.append(findings_of(path) if os.path.exists(path) else "not run")
    shutil.rmtree(directory)
    return found


def fork_rank(jobs, rank, ranks, port, directory, seed):
    global _directory
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(240)
        import torch.distributed as dist

        with open(os.path.join(directory, f"output{rank}"), "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
        for number, (program, fault) in enumerate(jobs):
            _directory = os.path.join(directory, str(number))
            torch.manual_seed(seed)
            start_observation()
            program(fault, rank, (seed + number) % ranks)
            ott.torch.finish()
            dist.barrier()
    except BaseException:  # noqa: BLE001  as the interpreter would
        traceback.print_exc()
    finally:
        with open(os.path.join(directory, f"output{rank}"), encoding="utf-8", errors="replace") as file:
            text = file.read()
        if "Traceback" in text:
            os.write(sys.__stderr__.fileno(), text.encode())
        os._exit(0)


def is_found(text, rule, name, last, ranks, culprit):
    """Whether a line of the findings is of the rule, names it in time, and on the rank where it was planted."""
    for line in text.splitlines():
        if not line.startswith(f"{rule} since iteration "):
            continue
        iteration = int(line.split(" since iteration ")[1].split()[0].rstrip(":,"))
        blamed = culprit is None or ranks == 2 or f"on rank {culprit}:" in line
        if iteration <= last and name in line and blamed:
            return True
    return False


def measure(iterations):
    """The share of time that the checks take, and how often they read values, of a transformer of 100 M parameters."""
    global _directory
    _directory = tempfile.mkdtemp(prefix="ott_sound_")
    layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(20000, 768), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), nn.Linear(768, 20))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    observer = ott.torch.observe(model, optimizer, config={"run_dir": _directory, "stopwatch": {}})
    rows = []
    for _ in range(iterations):
        begin, spent = time.perf_counter(), observer.sound.seconds
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randint(20000, (8, 128))).flatten(0, 1), torch.randint(20, (1024,))).backward()
        optimizer.step()
        rows.append((time.perf_counter() - begin, observer.sound.seconds - spent))
    ott.torch.finish()
    shutil.rmtree(_directory)
    number = sum(p.numel() for p in model.parameters())
    whole, spent = sorted(row[0] for row in rows[2:]), sorted(row[1] for row in rows[2:])
    share = sorted(row[1] / row[0] for row in rows[2:])
    middle = len(share) // 2
    print(f"{number / 1e6:.0f} M parameters: iteration {whole[middle]:.3f} s, checks {spent[middle] * 1e3:.1f} ms, {share[middle]:.2%} of it")
    return 0 if share[middle] <= 0.02 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each planted fault")
    parser.add_argument("--healthy", type=int, default=30, help="runs of each healthy program")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--only", nargs="*", help="programs or faults")
    parser.add_argument("--cost", type=int, metavar="ITERATIONS", help="measure what the checks take instead")
    parser.add_argument("--show", action="store_true", help="print what was found")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.cost:
        return measure(options.cost)

    def is_wanted(program, fault):
        return not options.only or program.__name__ in options.only or fault in options.only

    failed = 0
    # Those of several ranks first: forked before this process has threads.
    together = [job for job in FAULTS if job[0] in TOGETHER and is_wanted(*job[:2])]
    counts = dict.fromkeys(range(len(together)), 0)
    total = options.seeds * len(options.ranks)
    for ranks, seed in itertools.product(options.ranks, range(options.seeds)):
        texts = run_together([job[:2] for job in together], ranks, seed) if together else []
        for number, (job, text) in enumerate(zip(together, texts)):
            culprit = (seed + number) % ranks if any(part in job[1] for part in ON_ONE_RANK) else None
            ok = is_found(text, *job[2:], ranks, culprit)
            counts[number] += ok
            if options.show or not ok:
                print(f"{job[0].__name__} {job[1]}, {ranks} ranks, seed {seed}:\n{text}", flush=True)
    healthy = [(program, "") for program in TOGETHER if is_wanted(program, "")]
    runs = findings = 0
    for ranks, seed in itertools.product(options.ranks, range(options.healthy)):
        for (program, _), text in zip(healthy, run_together(healthy, ranks, seed) if healthy else []):
            runs += 1
            if text:
                findings += 1
                print(f"healthy {program.__name__}, {ranks} ranks, seed {seed}:\n{text}", flush=True)
    for program, fault, rule, name, last in [job for job in FAULTS if job[0] in ALONE and is_wanted(*job[:2])]:
        found = 0
        for seed in range(options.seeds):
            text = run_alone(program, fault, seed)
            ok = is_found(text, rule, name, last, 1, None)
            found += ok
            if options.show or not ok:
                print(f"{program.__name__} {fault}, seed {seed}:\n{text}", flush=True)
        print(f"{program.__name__:20}{fault:34}{rule:32}{found} of {options.seeds}", flush=True)
        failed += found < options.seeds
    for number, job in enumerate(together):
        print(f"{job[0].__name__:20}{job[1]:34}{job[2]:32}{counts[number]} of {total}", flush=True)
        failed += counts[number] < total
    for program, seed in itertools.product([p for p in ALONE if is_wanted(p, "")], range(options.healthy)):
        text = run_alone(program, "", seed)
        runs += 1
        if text:
            findings += 1
            print(f"healthy {program.__name__}, seed {seed}:\n{text}", flush=True)
    print(f"planted: {len(FAULTS) if not options.only else '-'} faults, not found in all runs: {failed}")
    print(f"healthy: {runs} runs of {len(ALONE) + len(TOGETHER)} programs, with a finding: {findings}")
    return 1 if failed or findings else 0


if __name__ == "__main__":
    sys.exit(main())
