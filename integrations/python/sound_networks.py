"""Healthy programs of several networks: against each other, beside each other, and copies of one another. Each takes `fault`, which is empty."""

import copy
import itertools

import torch
from torch import nn
from torch.nn import functional as F

from sound_common import Net, batch, evaluate, loss_of, step, with_optimizer


def critic_with_penalty(fault):
    """WGAN-GP: five steps of the critic, whose gradient is a part of its loss."""
    G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    for _ in range(5):
        D.requires_grad_(True)
        for _ in range(5):
            real = torch.randn(8, 8)
            with torch.no_grad():
                fake = G(torch.randn(8, 4))
            mix = (0.3 * real + 0.7 * fake).requires_grad_()
            (g,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
            step(od, D(fake).mean() - D(real).mean() + 10 * (g.norm(dim=1) - 1).square().mean())
        D.requires_grad_(False)
        step(og, -D(G(torch.randn(8, 4))).mean())


def clamped_critic(fault):
    """WGAN: weights of the critic are clamped after each step."""
    G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    og, od = torch.optim.RMSprop(G.parameters(), 1e-3), torch.optim.RMSprop(D.parameters(), 1e-3)
    one = torch.tensor(1.0)
    for i in range(12):
        D.zero_grad()
        D(torch.randn(8, 8)).mean().backward(one)
        D(G(torch.randn(8, 4)).detach()).mean().backward(-one)
        od.step()
        for p in D.parameters():
            p.data.clamp_(-0.01, 0.01)
        if i % 3 == 2:
            G.zero_grad()
            D(G(torch.randn(8, 4))).mean().backward(one)
            og.step()


def two_directions(fault):
    """CycleGAN: one optimizer for two generators, one for two critics that are frozen in between."""
    A, B = (nn.Linear(8, 8) for _ in range(2))
    DA, DB = (nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in range(2))
    og = torch.optim.Adam(itertools.chain(A.parameters(), B.parameters()))
    critics = nn.ModuleList([DA, DB])
    od = torch.optim.Adam(critics.parameters())
    for _ in range(6):
        a, b = torch.randn(4, 8), torch.randn(4, 8)
        critics.requires_grad_(False)
        fb, fa = A(a), B(b)
        step(og, DB(fb).square().mean() + DA(fa).square().mean() + F.l1_loss(B(fb), a) + F.l1_loss(A(fa), b))
        critics.requires_grad_(True)
        od.zero_grad()
        for critic, real, fake in ((DA, a, fa), (DB, b, fb)):
            (0.5 * (critic(real).square() + critic(fake.detach()).square()).mean()).backward()
        od.step()


def pictures_from_noise(fault):
    """DCGAN: norm layers in both, one optimizer each, and samples that are drawn in training mode."""
    G = nn.Sequential(nn.ConvTranspose2d(4, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())
    D = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.LeakyReLU(), nn.Conv2d(8, 1, 4), nn.Sigmoid())
    od, og = torch.optim.Adam(D.parameters(), 2e-4), torch.optim.Adam(G.parameters(), 2e-4)
    fixed = torch.randn(4, 4, 1, 1)
    for i in range(6):
        D.zero_grad()
        F.binary_cross_entropy(D(torch.randn(4, 1, 8, 8)).flatten(), torch.ones(4)).backward()
        fake = G(torch.randn(4, 4, 1, 1))
        F.binary_cross_entropy(D(fake.detach()).flatten(), torch.zeros(4)).backward()
        od.step()
        G.zero_grad()
        F.binary_cross_entropy(D(fake).flatten(), torch.ones(4)).backward()
        og.step()
        if i % 3 == 0:
            with torch.no_grad():
                G(fixed)


def spectral_critic(fault):
    """Spectral norms, the old and the new one, in a critic that is evaluated after it was trained."""
    G = nn.Linear(4, 8)
    D = nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 16)), nn.ReLU(), nn.utils.parametrizations.spectral_norm(nn.Linear(16, 1)))
    og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    for i in range(6):
        step(od, F.relu(1 - D(torch.randn(8, 8))).mean() + F.relu(1 + D(G(torch.randn(8, 4)).detach())).mean())
        step(og, -D(G(torch.randn(8, 4))).mean())
        if i % 3 == 2:
            evaluate(D, torch.randn(8, 8))


def policy_gradient(fault):
    """REINFORCE: an episode of single steps, one loss of all of them, and dropout."""
    policy = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.6), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
    for _ in range(5):
        logs = []
        for _ in range(torch.randint(3, 7, ()).item()):
            chosen = torch.distributions.Categorical(logits=policy(torch.randn(1, 4)))
            logs.append(chosen.log_prob(chosen.sample()))
        step(optimizer, -(torch.stack(logs) * torch.randn(len(logs), 1)).sum())


def proximal(fault):
    """PPO: a rollout without gradients, then several epochs of its batches, an actor and a critic of one body."""
    body, actor, critic = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-3, eps=1e-5)
    for _ in range(3):
        x = torch.randn(16, 4)
        with torch.no_grad():
            old = torch.distributions.Categorical(logits=actor(body(x).tanh()))
            chosen = old.sample()
            before = old.log_prob(chosen)
        for _ in range(3):
            for rows in torch.randperm(16).split(8):
                h = body(x[rows]).tanh()
                new = torch.distributions.Categorical(logits=actor(h))
                ratio = (new.log_prob(chosen[rows]) - before[rows]).exp()
                loss = -torch.minimum(ratio, ratio.clamp(0.8, 1.2)).mean() + critic(h).square().mean() - 0.01 * new.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()


def soft_actor(fault):
    """SAC: two critics with slow copies, an actor through critics that keep its gradients, and a temperature."""
    actor, q1, q2 = nn.Linear(4, 2), nn.Linear(6, 1), nn.Linear(6, 1)
    t1, t2 = copy.deepcopy(q1), copy.deepcopy(q2)
    log_alpha = torch.zeros(1, requires_grad=True)
    oq = torch.optim.Adam([*q1.parameters(), *q2.parameters()])
    oa, ot = torch.optim.Adam(actor.parameters()), torch.optim.Adam([log_alpha])
    for i in range(8):
        x, u = torch.randn(8, 4), torch.randn(8, 2)
        with torch.no_grad():
            y = torch.minimum(t1(torch.cat([x, actor(x)], 1)), t2(torch.cat([x, actor(x)], 1)))
        step(oq, F.mse_loss(q1(torch.cat([x, u], 1)), y) + F.mse_loss(q2(torch.cat([x, u], 1)), y))
        if i % 2 == 0:
            for _ in range(2):
                a = actor(x)
                step(oa, (log_alpha.exp().detach() * a.square().sum(1) - q1(torch.cat([x, a], 1))[:, 0]).mean())
                step(ot, (log_alpha.exp() * (1 - a.detach().square().sum(1))).mean())
        with torch.no_grad():
            for target, q in ((t1, q1), (t2, q2)):
                for p, s in zip(target.parameters(), q.parameters()):
                    p.data.mul_(0.99)
                    p.data.add_(0.01 * s.data)


def triplets(fault):
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    for _ in range(6):
        a, b, c = (model(batch()[0]) for _ in range(3))
        step(optimizer, F.triplet_margin_loss(a, b, c))


def bootstrapped(fault):
    """BYOL: a slow copy whose outputs are targets, within one model that the optimizer has as a whole."""

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.online, self.predictor = Net(), nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
            self.target = copy.deepcopy(self.online).requires_grad_(False)

        def forward(self, x, y):
            with torch.no_grad():
                tx, ty = self.target(x), self.target(y)
            return 2 - F.cosine_similarity(self.predictor(self.online(x)), ty).mean() - F.cosine_similarity(self.predictor(self.online(y)), tx).mean()

        @torch.no_grad()
        def update(self):
            for t, o in zip(self.target.parameters(), self.online.parameters()):
                t.lerp_(o, 0.05)

    model, optimizer = with_optimizer(Pair(), torch.optim.SGD, 0.05, momentum=0.9, weight_decay=1e-4)
    for _ in range(6):
        x = batch()[0]
        step(optimizer, model(x + 0.1, x - 0.1))
        model.update()


def self_distilled(fault):
    """DINO: teacher and student, a center, and a last layer that is held still at first by cancelling its gradients."""
    student, head = Net(), nn.utils.parametrizations.weight_norm(nn.Linear(4, 8, bias=False))
    teacher, teacher_head = copy.deepcopy(student), copy.deepcopy(head)
    for part in (teacher, teacher_head):
        part.requires_grad_(False)
    center = torch.zeros(8)
    optimizer = torch.optim.AdamW([*student.parameters(), *head.parameters()])
    for i in range(8):
        x = batch()[0]
        t = teacher_head(teacher(x))
        loss = -(((t - center) / 0.04).softmax(-1).detach() * (head(student(x)) / 0.1).log_softmax(-1)).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        if i < 3:
            for p in head.parameters():
                p.grad = None
        optimizer.step()
        with torch.no_grad():
            center = 0.9 * center + 0.1 * t.mean(0)
            for a, b in zip(teacher.parameters(), student.parameters()):
                a.data.mul_(0.99).add_(b.detach().data, alpha=0.01)


def distilled(fault):
    teacher, student = Net().eval(), Net()
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in range(6):
        x, y = batch()
        with torch.no_grad():
            target = (teacher(x) / 4).softmax(-1)
        out = student(x)
        step(optimizer, F.cross_entropy(out, y) + 16 * F.kl_div((out / 4).log_softmax(-1), target, reduction="batchmean"))


def ensemble(fault):
    """Three models in one loop, each with its optimizer."""
    models = [Net() for _ in range(3)]
    optimizers = [torch.optim.Adam(m.parameters()) for m in models]
    for _ in range(5):
        data = batch()
        for m, o in zip(models, optimizers):
            step(o, loss_of(m, data))


def reversed_gradient(fault):
    """Domains are told apart by a part whose gradient is turned around."""

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return -0.1 * g

    body, head, domain = nn.Linear(8, 16), nn.Linear(16, 4), nn.Linear(16, 2)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters(), *domain.parameters()], 0.1)
    for _ in range(6):
        (x, y), (z, _) = batch(), batch()
        h, g = body(x).relu(), body(z).relu()
        side = domain(Reverse.apply(torch.cat([h, g])))
        step(optimizer, F.cross_entropy(head(h), y) + F.cross_entropy(side, torch.arange(16) // 8))


def quantized(fault):
    """A vector-quantized autoencoder: rounding that lets gradients through, a codebook that is averaged."""
    encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
    codes = nn.Embedding(6, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codes.parameters()])
    for _ in range(6):
        x = batch()[0]
        h = encoder(x)
        q = codes(torch.cdist(h, codes.weight).argmin(1))
        loss = F.mse_loss(q, h.detach()) + 0.25 * F.mse_loss(h, q.detach())
        step(optimizer, loss + F.mse_loss(decoder(h + (q - h).detach()), x))


def diffusion(fault):
    """Noise of a random strength is predicted; an average of the weights draws pictures now and then."""
    model = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8))
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(6):
        x, t, e = torch.randn(8, 8), torch.rand(8, 1), torch.randn(8, 8)
        step(optimizer, F.mse_loss(model(torch.cat([(1 - t).sqrt() * x + t.sqrt() * e, t], 1)), e))
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p.detach(), 0.1)
        if i % 3 == 2:
            z = torch.randn(4, 8)
            for t in (1.0, 0.5):
                z = z - 0.5 * average(torch.cat([z, torch.full((4, 1), t)], 1))


def micro_batches(fault):
    """A pipeline by hand: two stages, four micro batches, and a backward pass of each stage by the gradient of the next."""
    first, second = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 4)
    optimizers = [torch.optim.Adam(stage.parameters()) for stage in (first, second)]
    for _ in range(5):
        x, y = batch()
        outputs = [first(part) for part in x.chunk(4)]
        for h, part in zip(outputs, y.chunk(4)):
            given = h.detach().requires_grad_()
            (F.cross_entropy(second(given), part) / 4).backward()
            h.backward(given.grad)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
