"""Healthy programs of one process: what looks like a fault and is none. Each takes `fault`, which is empty."""

import copy
import os
import shutil
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

import optim_test_tools as ott
from sound_common import ConvNet, Net, Parts, batch, images, learn, loader, loss_of, start_observation, step, train, with_optimizer
from sound_planted import gan, resumed


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
    def forward(self, x):
        h = self.encoder(x).relu()
        mean, log = self.mean(h), self.log(h)
        return self.decoder(mean + torch.randn_like(mean) * (log / 2).exp()), mean, log

    parts = {"encoder": nn.Linear(8, 16), "mean": nn.Linear(16, 2), "log": nn.Linear(16, 2), "decoder": nn.Linear(2, 8)}
    model, optimizer = with_optimizer(Parts(forward, **parts), torch.optim.Adam)
    for _ in range(6):
        x = batch()[0]
        y, mean, log = model(x)
        step(optimizer, F.mse_loss(y, x) - 0.5 * (1 + log - mean**2 - log.exp()).mean())


def siamese(fault):
    """SimSiam: one network twice, with a stop-gradient."""
    model, predictor = Net(), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*model.parameters(), *predictor.parameters()], 0.05)
    for _ in range(6):
        x = batch()[0]
        a, b = model(x), model(x + 0.1 * torch.randn_like(x))
        step(optimizer, -(F.cosine_similarity(predictor(a), b.detach()) + F.cosine_similarity(predictor(b), a.detach())).mean())


def lora(fault):
    def forward(self, x):
        return self.head(self.base(x) + self.b(self.a(x)))

    base, a, b = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
    nn.init.zeros_(b.weight)
    model = Parts(forward, base=base, a=a, b=b, head=nn.Linear(8, 4))
    held = model.parameters() if fault == "all" else [p for p in model.parameters() if p.requires_grad]
    train(model, torch.optim.AdamW(held, 1e-3))


def ema(fault):
    model = Net()
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        data = batch()
        with torch.no_grad():
            target = teacher(data[0])
        step(optimizer, loss_of(model, data) + F.mse_loss(model(data[0]), target))
        with torch.no_grad():
            for a, b in zip(teacher.parameters(), model.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)


def momentum_encoder(fault):
    """MoCo: the copy is a part of the model, and written through .data."""

    def forward(self, x):
        with torch.no_grad():
            for a, b in zip(self.k.parameters(), self.q.parameters()):
                a.data = a.data * 0.9 + b.data * 0.1
            k = self.k(x)
        return (self.q(x) - k).square().mean()

    model, optimizer = with_optimizer(Parts(forward, q=Net(), k=Net()))
    for _ in range(6):
        step(optimizer, model(batch()[0]))


def experts(fault):
    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts[:2]):  # two are idle
            rows = chosen % 2 == i
            if rows.any():
                out[rows] = expert(x[rows])
        return self.head(out * weight[:, None])

    experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
    train(*with_optimizer(Parts(forward, gate=nn.Linear(8, 4), experts=experts, head=nn.Linear(8, 4)), torch.optim.AdamW))


def recomputed(fault):
    from torch.utils.checkpoint import checkpoint

    for reentrant in (True, False):
        model, optimizer = with_optimizer(Net())
        for _ in range(4):
            x, y = batch()
            x.requires_grad_()
            step(optimizer, F.cross_entropy(checkpoint(model, x, use_reentrant=reentrant), y))


def recomputed_inside(fault):
    from torch.utils.checkpoint import checkpoint

    class Model(Net):
        def forward(self, x):
            return self.head(checkpoint(self.norm, self.body(x), use_reentrant=True))

    train(*with_optimizer(Model()), 4)


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
        step(oc, critic(x).square().mean())
        if i % 2:
            step(oa, (actor(x).softmax(-1) * critic(x)).sum(1).mean())


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


def scaled_with_infinities(fault):
    """The scaler leaves steps out, and the schedule goes on."""
    model, optimizer = with_optimizer(Net())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i in range(8):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch()) * (float("inf") if i in (0, 4) else 1)).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()


def endless(fault):
    """A new iterator for each batch of a shuffled loader, as many GANs have it."""
    model, optimizer = with_optimizer(Net())
    data = loader(shuffle=True)
    for _ in range(10):
        learn(model, optimizer, next(iter(data)))


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

    model, optimizer = with_optimizer(Model(), torch.optim.AdamW)
    for _ in range(5):
        x, y = batch()
        step(optimizer, F.cross_entropy(model(x)[0], y))


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
        step(optimizer, loss_of(model, (x, y)) + 0.1 * critic(torch.cat([model(x), model(x)], 1)).square().mean())


def frozen_norm(fault):
    """Norm layers in eval mode within a model that trains."""
    model, optimizer = with_optimizer(ConvNet(), torch.optim.SGD, 0.01)
    for _ in range(5):
        model.train()
        model.norm.eval()
        learn(model, optimizer, images())


def style(fault):
    """The picture learns, and the network does not."""
    model, picture = Net(dropout=0), nn.Parameter(torch.randn(1, 8))
    optimizer = torch.optim.Adam([picture], 0.1)
    for _ in range(5):
        step(optimizer, model(picture).square().mean())


def evolution(fault):
    """Gradients without a backward pass."""
    model, optimizer = with_optimizer(Net(dropout=0))
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
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
    for _ in range(5):
        x, y = batch()
        x.requires_grad_()
        loss = loss_of(model, (x, y))
        (g,) = torch.autograd.grad(loss, x, create_graph=True)
        step(optimizer, loss + g.square().sum())


def detached_at_first(fault):
    """A head is trained alone before the rest joins it."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.AdamW)
    for i in range(8):
        x, y = batch()
        with torch.set_grad_enabled(i >= 4):
            features = model.norm(model.body(x)).relu()
        step(optimizer, F.cross_entropy(model.head(features), y))


def detached_inside_at_first(fault):
    """The same within the model's forward pass."""

    class Warmed(Net):
        is_warm = False

        def forward(self, x):
            h = self.norm(self.body(x)).relu()
            return self.head(h if self.is_warm else h.detach())

    model, optimizer = with_optimizer(Warmed(), torch.optim.AdamW)
    for i in range(8):
        model.is_warm = i >= 4
        learn(model, optimizer, batch())


def trained_twice(fault):
    """A second training begins with the model of a whole checkpoint, and with an optimizer of its own."""
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    for number in range(2):
        model, optimizer = with_optimizer(Net(), torch.optim.Adam)
        if number == 1:
            ott.torch.finish()
            start_observation()
            model.load_state_dict(torch.load(path, weights_only=False)["model"])
        train(model, optimizer, 4)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    shutil.rmtree(os.path.dirname(path))


def shared_encoder(fault):
    """An encoder in two optimizers, each with a loss of its own, as adversarial autoencoders have it."""
    encoder, decoder, critic = nn.Linear(8, 4), nn.Linear(4, 8), nn.Linear(4, 1)
    rebuilds = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    fools = torch.optim.Adam(encoder.parameters())
    for _ in range(6):
        x = batch()[0]
        step(rebuilds, F.mse_loss(decoder(encoder(x)), x))
        step(fools, F.softplus(-critic(encoder(x))).mean())
        critic.zero_grad()


def clipped_often(fault):
    """Each micro batch is clipped, as private training has it, and noise is added."""
    model, optimizer = with_optimizer(Net())
    for _ in range(5):
        total = [torch.zeros_like(p) for p in model.parameters()]
        for _ in range(3):
            model.zero_grad()
            loss_of(model, batch(1)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-2)
            for t, p in zip(total, model.parameters()):
                t += p.grad
        for t, p in zip(total, model.parameters()):
            p.grad = t + 0.1 * torch.randn_like(t)
        optimizer.step()


def fused(fault):
    """An optimizer in one kernel, as Hugging Face's Trainer has it."""
    train(*with_optimizer(Net(), torch.optim.AdamW, fused=True), 5)


def dropout_grows(fault):
    """The chance to drop begins with 0."""
    model, optimizer = with_optimizer(Net(dropout=0.0), torch.optim.Adam)
    for i in range(6):
        model.dropout.p = 0.002 * i
        learn(model, optimizer, batch())
