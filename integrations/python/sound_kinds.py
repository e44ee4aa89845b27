"""More healthy programs of one process, of kinds for which no rule was made. Each takes `fault`, which is empty."""

import copy
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from sound_common import ConvNet, Language, Net, batch, images, loader, loss_of


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def critic_with_penalty(fault):
    """WGAN-GP: five steps of the critic, whose gradient is a part of its loss."""
    G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    for _ in range(5):
        for p in D.parameters():
            p.requires_grad_(True)
        for _ in range(5):
            real = torch.randn(8, 8)
            with torch.no_grad():
                fake = G(torch.randn(8, 4))
            mix = (0.3 * real + 0.7 * fake).requires_grad_()
            (g,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
            step(od, D(fake).mean() - D(real).mean() + 10 * (g.norm(dim=1) - 1).square().mean())
        for p in D.parameters():
            p.requires_grad_(False)
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
    od = torch.optim.Adam(itertools.chain(DA.parameters(), DB.parameters()))
    for _ in range(6):
        a, b = torch.randn(4, 8), torch.randn(4, 8)
        for p in itertools.chain(DA.parameters(), DB.parameters()):
            p.requires_grad_(False)
        og.zero_grad()
        fb, fa = A(a), B(b)
        (DB(fb).square().mean() + DA(fa).square().mean() + F.l1_loss(B(fb), a) + F.l1_loss(A(fa), b)).backward()
        og.step()
        for p in itertools.chain(DA.parameters(), DB.parameters()):
            p.requires_grad_(True)
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


def prompt(fault):
    """A prompt is all that learns of a frozen model in training mode."""
    model = Language().requires_grad_(False)
    learned = nn.Parameter(torch.randn(1, 3, 16))
    optimizer = torch.optim.AdamW([learned], 1e-2)
    for _ in range(6):
        tokens = torch.randint(20, (4, 6))
        h = torch.cat([learned.expand(4, -1, -1), model.embedding(tokens)], 1)
        out = model.head(model.block(h))[:, 3:]
        step(optimizer, F.cross_entropy(out[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()))


def averaged_weights(fault):
    """SWA: an averaged model, its schedule, and statistics that are estimated anew."""
    from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

    model = ConvNet()
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    schedule, late = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3), SWALR(optimizer, 0.02)
    data = DataLoader(list(zip(*images(24))), 6, shuffle=True)
    for epoch in range(5):
        for x, y in data:
            step(optimizer, F.cross_entropy(model(x), y))
        if epoch >= 2:
            average.update_parameters(model)
            late.step()
        else:
            schedule.step()
    update_bn(data, average)
    average.eval()
    with torch.no_grad():
        average(images()[0])


def balanced_experts(fault):
    """The two best of four experts, a loss that balances them, and some that idle."""

    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.gate = nn.LayerNorm(8), nn.Linear(8, 4, bias=False)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(4))
            self.head = nn.Linear(8, 4)

        def forward(self, x):
            h = self.norm(x)
            p = self.gate(h).softmax(-1)
            weight, chosen = p.topk(2)
            out = torch.zeros_like(x)
            for e, expert in enumerate(self.experts):
                rows, place = (chosen == e).nonzero(as_tuple=True)
                if len(rows):
                    out.index_add_(0, rows, expert(h[rows]) * weight[rows, place, None])
            self.balance = 4 * (p.mean(0) * F.one_hot(chosen[:, 0], 4).float().mean(0)).sum()
            return self.head(x + out)

    model = Mixture()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(6):
        x, y = batch(2)
        step(optimizer, F.cross_entropy(model(x), y) + 0.01 * model.balance)


def recomputed_sequence(fault):
    """checkpoint_sequential, with dropout and norm layers."""
    from torch.utils.checkpoint import checkpoint_sequential

    layers = [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2)) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        x, y = batch()
        step(optimizer, F.cross_entropy(checkpoint_sequential(model, 2, x, use_reentrant=False), y))


def warmed_up(fault):
    """A chain of schedules, whose rate begins with 0."""
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedulers = torch.optim.lr_scheduler
    warm = schedulers.LambdaLR(optimizer, lambda i: i / 3 if i < 3 else 1.0)
    schedule = schedulers.SequentialLR(optimizer, [warm, schedulers.CosineAnnealingLR(optimizer, 5)], [3])
    for _ in range(8):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def line_search(fault):
    """LBFGS with a line search, of an LSTM cell in double precision."""
    cell, head = nn.LSTMCell(1, 8).double(), nn.Linear(8, 1).double()
    optimizer = torch.optim.LBFGS([*cell.parameters(), *head.parameters()], lr=0.8, max_iter=4, line_search_fn="strong_wolfe")
    data = torch.sin(torch.arange(24.0).double().view(4, 6))

    def closure():
        optimizer.zero_grad()
        state, loss = None, 0
        for t in range(5):
            state = cell(data[:, t : t + 1], state)
            loss = loss + F.mse_loss(head(state[0]), data[:, t + 1 : t + 2])
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)


def triplets(fault):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        a, b, c = (model(batch()[0]) for _ in range(3))
        step(optimizer, F.triplet_margin_loss(a, b, c))


def bootstrapped(fault):
    """BYOL: a slow copy whose outputs are targets, within one model that the optimizer has as a whole."""

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.online, self.predictor = Net(), nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
            self.target = copy.deepcopy(self.online)
            for p in self.target.parameters():
                p.requires_grad = False

        def forward(self, x, y):
            with torch.no_grad():
                tx, ty = self.target(x), self.target(y)
            return 2 - F.cosine_similarity(self.predictor(self.online(x)), ty).mean() - F.cosine_similarity(self.predictor(self.online(y)), tx).mean()

        @torch.no_grad()
        def update(self):
            for t, o in zip(self.target.parameters(), self.online.parameters()):
                t.lerp_(o, 0.05)

    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    for _ in range(6):
        x = batch()[0]
        step(optimizer, model(x + 0.1, x - 0.1))
        model.update()


def self_distilled(fault):
    """DINO: teacher and student, a center, and a last layer that is held still at first by cancelling its gradients."""
    student, head = Net(), nn.utils.parametrizations.weight_norm(nn.Linear(4, 8, bias=False))
    teacher, teacher_head = copy.deepcopy(student), copy.deepcopy(head)
    for p in [*teacher.parameters(), *teacher_head.parameters()]:
        p.requires_grad = False
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


def alternating_tasks(fault):
    """One task in each iteration: the other head gets no gradient."""
    body, heads = nn.Linear(8, 16), nn.ModuleList([nn.Linear(16, 4), nn.Linear(16, 2)])
    optimizer = torch.optim.Adam([*body.parameters(), *heads.parameters()])
    for i in range(8):
        x, _ = batch()
        out = heads[i % 2](body(x).relu())
        step(optimizer, F.cross_entropy(out, torch.randint(out.shape[1], (len(x),))))


def late_task(fault):
    """A head joins after some epochs; a model that returns the results of all of its heads."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4), nn.Linear(16, 4)

        def forward(self, x):
            h = self.body(x).relu()
            return self.first(h), self.second(h.detach())

    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(8):
        x, y = batch()
        a, b = model(x)
        step(optimizer, F.cross_entropy(a, y) + (F.cross_entropy(b, y) if i >= 4 else 0))


def surgery(fault):
    """PCGrad: a backward pass for each task, gradients that are kept aside, projected and put back."""
    model = Net(dropout=0)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        kept = []
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(model, batch()).backward()
            kept.append([p.grad.clone() for p in model.parameters()])
        optimizer.zero_grad()
        for p, a, b in zip(model.parameters(), *kept):
            dot = (a * b).sum()
            p.grad = a + b - (dot.clamp(max=0) / b.square().sum().clamp(min=1e-9)) * b
        optimizer.step()


def sharpness(fault):
    """SAM: up to the worst point near by, a second gradient there, back, and a step."""
    model = Net(dropout=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(6):
        data = batch()
        loss_of(model, data).backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moves = [0.05 * p.grad / (norm + 1e-12) for p in model.parameters()]
            for p, e in zip(model.parameters(), moves):
                p.add_(e)
        optimizer.zero_grad()
        loss_of(model, data).backward()
        with torch.no_grad():
            for p, e in zip(model.parameters(), moves):
                p.sub_(e)
        optimizer.step()
        optimizer.zero_grad()


def sharpness_as_optimizer(fault):
    """SAM as a subclass of Optimizer around another one, with which it shares its groups."""

    class SAM(torch.optim.Optimizer):
        def __init__(self, parameters, base, **options):
            super().__init__(parameters, {"rho": 0.05, **options})
            self.base = base(self.param_groups, **options)
            self.param_groups = self.base.param_groups

        @torch.no_grad()
        def first_step(self):
            norm = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
            for g in self.param_groups:
                for p in g["params"]:
                    self.state[p]["old"] = p.data.clone()
                    p.add_(p.grad * (g["rho"] / (norm + 1e-12)))
            self.zero_grad()

        @torch.no_grad()
        def second_step(self):
            for g in self.param_groups:
                for p in g["params"]:
                    p.data = self.state[p]["old"]
            self.base.step()
            self.zero_grad()

        def step(self, closure=None):
            raise NotImplementedError

    model = Net(dropout=0)
    optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
    for _ in range(6):
        data = batch()
        loss_of(model, data).backward()
        optimizer.first_step()
        loss_of(model, data).backward()
        optimizer.second_step()


def looking_ahead(fault):
    """Lookahead: slow weights that are mixed in every third step."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    slow = [p.detach().clone() for p in model.parameters()]
    for i in range(9):
        step(optimizer, loss_of(model, batch()))
        if i % 3 == 2:
            for s, p in zip(slow, model.parameters()):
                s += 0.5 * (p.data - s)
                p.data.copy_(s)


def unfrozen_gradually(fault):
    """Layers join the optimizer from the top, each with a rate of its own."""
    model = Net()
    for p in model.parameters():
        p.requires_grad = False
    model.head.requires_grad_(True)
    optimizer = torch.optim.Adam(model.head.parameters(), 1e-3)
    for i in range(9):
        if i in (3, 6):
            part = (model.norm, model.body)[i // 3 - 1]
            part.requires_grad_(True)
            optimizer.add_param_group({"params": list(part.parameters()), "lr": 1e-4})
        step(optimizer, loss_of(model, batch()))


def phases(fault):
    """A curriculum: another part is frozen in each phase, with an optimizer of its own."""
    model = Net()
    for part in (model.body, model.head, model):
        model.requires_grad_(False)
        part.requires_grad_(True)
        optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), 1e-3)
        for _ in range(4):
            step(optimizer, loss_of(model, batch()))


def phases_of_one_optimizer(fault):
    """The same, with one optimizer that has all parameters, and gradients that are None where they are frozen."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for part in (model.body, model.head, model):
        model.requires_grad_(False)
        part.requires_grad_(True)
        for _ in range(4):
            step(optimizer, loss_of(model, batch()))


def weights_as_products(fault):
    """weight_norm, the old and the new one, and orthogonal weights."""
    model = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(8, 16)), nn.ReLU(), nn.utils.weight_norm(nn.Linear(16, 16)), nn.ReLU(),
        nn.utils.parametrizations.orthogonal(nn.Linear(16, 4)),
    )
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        step(optimizer, loss_of(model, batch()))


def spectral_critic(fault):
    """Spectral norms, the old and the new one, in a critic that is evaluated after it was trained."""
    G = nn.Linear(4, 8)
    D = nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 16)), nn.ReLU(), nn.utils.parametrizations.spectral_norm(nn.Linear(16, 1)))
    og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    for i in range(6):
        step(od, F.relu(1 - D(torch.randn(8, 8))).mean() + F.relu(1 + D(G(torch.randn(8, 4)).detach())).mean())
        step(og, -D(G(torch.randn(8, 4))).mean())
        if i % 3 == 2:
            D.eval()
            with torch.no_grad():
                D(torch.randn(8, 8))
            D.train()


def learned_to_learn(fault):
    """MAML: a step within the graph, and a gradient through it."""
    from torch.func import functional_call

    model = Net(dropout=0)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        total = 0
        for _ in range(2):
            x, y = batch()
            weights = dict(model.named_parameters())
            gradients = torch.autograd.grad(F.cross_entropy(functional_call(model, weights, (x,)), y), weights.values(), create_graph=True)
            fast = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients)}
            x, y = batch()
            total = total + F.cross_entropy(functional_call(model, fast, (x,)), y)
        step(optimizer, total)


def reptile(fault):
    """Reptile: a copy learns with an optimizer of its own, and the difference is the gradient of the model."""
    model = Net(dropout=0)
    outer = torch.optim.SGD(model.parameters(), 0.5)
    for _ in range(4):
        fast = copy.deepcopy(model)
        inner = torch.optim.SGD(fast.parameters(), 0.1)
        for _ in range(3):
            step(inner, loss_of(fast, batch()))
        for p, f in zip(model.parameters(), fast.parameters()):
            p.grad = p.data - f.data
        outer.step()


def distilled(fault):
    teacher, student = Net().eval(), Net()
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in range(6):
        x, y = batch()
        with torch.no_grad():
            target = (teacher(x) / 4).softmax(-1)
        out = student(x)
        step(optimizer, F.cross_entropy(out, y) + 16 * F.kl_div((out / 4).log_softmax(-1), target, reduction="batchmean"))


def mixed_up(fault):
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(6):
        x, y = images()
        rows, share = torch.randperm(len(x)), 0.7
        out = model(share * x + (1 - share) * x[rows])
        step(optimizer, share * F.cross_entropy(out, y) + (1 - share) * F.cross_entropy(out, y[rows]))


class Endless(IterableDataset):
    def __iter__(self):
        for _ in range(24):
            yield torch.randn(8), torch.randint(4, ()).item()


def streamed(fault):
    """An IterableDataset, without workers and with two that draw for themselves."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for workers in (0, 2):
        for x, y in DataLoader(Endless(), 4, num_workers=workers):
            step(optimizer, F.cross_entropy(model(x), y))


def full_batch(fault):
    """All samples in one batch, the same for ever, by a loader and by hand."""
    model = Net(dropout=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        for x, y in loader(4):
            step(optimizer, F.cross_entropy(model(x), y))
    data = batch(32)
    for _ in range(5):
        step(optimizer, loss_of(model, data))


def one_batch_for_ever(fault):
    """Whether the model can learn one batch by heart."""
    model = Net(dropout=0)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = next(iter(loader(shuffle=True)))
    for _ in range(8):
        step(optimizer, F.cross_entropy(model(x), y))


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


def forward_forward(fault):
    """Each layer has a loss and an optimizer of its own, and gets a detached input."""

    class Layer(nn.Linear):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.optimizer = torch.optim.Adam(super().parameters(), 0.03)

        def forward(self, x):
            return super().forward(x / (x.norm(dim=1, keepdim=True) + 1e-4)).relu()

        def learn(self, good, bad):
            for _ in range(3):
                a, b = self(good).square().mean(1), self(bad).square().mean(1)
                step(self.optimizer, F.softplus(torch.cat([2 - a, b - 2])).mean())
            return self(good).detach(), self(bad).detach()

    layers = nn.ModuleList([Layer(8, 16), Layer(16, 16)])
    for _ in range(3):
        good, bad = torch.randn(8, 8), torch.randn(8, 8)
        for layer in layers:
            good, bad = layer.learn(good, bad)


def graph(fault):
    """A graph network: all nodes in each iteration, a loss of some of them, and eval mode after each step."""
    adjacency = (torch.rand(12, 12) > 0.7).float() + torch.eye(12)
    adjacency = adjacency / adjacency.sum(1, keepdim=True)
    x, y, rows = torch.randn(12, 8), torch.randint(4, (12,)), torch.arange(6)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 16, bias=False), nn.Linear(16, 4, bias=False)

        def forward(self, x):
            h = F.dropout(F.relu(adjacency @ self.a(x)), 0.5, self.training)
            return adjacency @ self.b(h)

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), 0.01, weight_decay=5e-4)
    for _ in range(6):
        model.train()
        step(optimizer, F.cross_entropy(model(x)[rows], y[rows]))
        model.eval()
        with torch.no_grad():
            model(x)


def ensemble(fault):
    """Three models in one loop, each with its optimizer."""
    models = [Net() for _ in range(3)]
    optimizers = [torch.optim.Adam(m.parameters()) for m in models]
    for _ in range(5):
        data = batch()
        for m, o in zip(models, optimizers):
            step(o, loss_of(m, data))


def noisy(fault):
    """SGLD: noise is added to the parameters after each step, and to gradients before it."""
    model = Net(dropout=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        for p in model.parameters():
            p.grad += 0.01 * torch.randn_like(p.grad)
        optimizer.step()
        with torch.no_grad():
            for p in model.parameters():
                p += 0.001 * torch.randn_like(p)


def per_sample(fault):
    """Private training: a gradient of each sample, by torch.func, clipped and added up."""
    from torch.func import functional_call, grad, vmap

    model = Net(dropout=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss(weights, x, y):
        return F.cross_entropy(functional_call(model, weights, (x[None],)), y[None])

    for _ in range(5):
        x, y = batch()
        weights = {n: p.detach() for n, p in model.named_parameters()}
        gradients = vmap(grad(loss), (None, 0, 0))(weights, x, y)
        for n, p in model.named_parameters():
            g = gradients[n].flatten(1)
            p.grad = (g * (1 / g.norm(dim=1, keepdim=True).clamp(min=1))).mean(0).view_as(p)
        optimizer.step()


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


def random_depth(fault):
    """Layers are left out at random."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = nn.ModuleList(nn.Linear(8, 8) for _ in range(4)), nn.Linear(8, 4)

        def forward(self, x):
            for layer in self.layers:
                if not self.training or torch.rand(()) > 0.5:
                    x = x + layer(x).relu()
            return self.head(x)

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(8):
        step(optimizer, loss_of(model, batch()))


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


def fixed_point(fault):
    """A deep equilibrium: the layer runs without gradients up to a fixed point, and once more with them."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, x):
            z = torch.zeros_like(x)
            with torch.no_grad():
                for _ in range(5):
                    z = (0.3 * self.layer(z) + x).tanh()
            return self.head((0.3 * self.layer(z) + x).tanh())

    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        step(optimizer, loss_of(model, batch()))


def folds(fault):
    """Cross-validation: a new model and a new optimizer in each fold."""
    for _ in range(3):
        model = Net()
        optimizer = torch.optim.Adam(model.parameters())
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        for _ in range(3):
            for x, y in loader(16, shuffle=True):
                step(optimizer, F.cross_entropy(model(x), y))
            model.eval()
            with torch.no_grad():
                loss = sum(F.cross_entropy(model(x), y) for x, y in loader(8))
            model.train()
            schedule.step(loss)


def tried_rates(fault):
    """A search for a rate: parameters and state go back where they were after each trial, then the training begins."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    begin = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    for rate in (1e-5, 1e-3, 1e-1):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for _ in range(3):
            step(optimizer, loss_of(model, batch()))
        model.load_state_dict(begin[0])
        optimizer.load_state_dict(copy.deepcopy(begin[1]))
    for _ in range(5):
        step(optimizer, loss_of(model, batch()))


def best_so_far(fault):
    """The best parameters come back at the end, and are trained a little more with a smaller rate."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    best = copy.deepcopy(model.state_dict())
    for i in range(9):
        step(optimizer, loss_of(model, batch()))
        if i == 2:
            best = copy.deepcopy(model.state_dict())
        if i == 5:
            model.load_state_dict(best)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)


def pruned(fault):
    """Weights are pruned in the middle of a training, and stay 0."""
    from torch.nn.utils import prune

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(9):
        if i in (3, 5):
            prune.l1_unstructured(model.body, "weight", 0.3)
        if i == 7:
            prune.remove(model.body, "weight")
            optimizer = torch.optim.SGD(model.parameters(), 0.05)
        step(optimizer, loss_of(model, batch()))


def sparse_rows(fault):
    """An embedding with sparse gradients and its own optimizer, of which few rows are used."""
    embedding, head = nn.EmbeddingBag(100, 8, sparse=True, mode="mean"), nn.Linear(8, 4)
    optimizers = [torch.optim.SparseAdam(embedding.parameters()), torch.optim.Adam(head.parameters())]
    for _ in range(6):
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(head(embedding(torch.randint(5, (8, 3)))), torch.randint(4, (8,))).backward()
        for optimizer in optimizers:
            optimizer.step()


def with_and_without_labels(fault):
    """FixMatch: two loaders side by side, labels that the model makes for itself without gradients."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, nesterov=True, momentum=0.9)
    for (x, y), (u, _) in zip(itertools.cycle(loader(16, shuffle=True)), loader(48, shuffle=True)):
        with torch.no_grad():
            certainty, guess = model(u + 0.01 * torch.randn_like(u)).softmax(-1).max(-1)
        strong = F.cross_entropy(model(u + 0.5 * torch.randn_like(u)), guess, reduction="none")
        step(optimizer, F.cross_entropy(model(x), y) + (strong * (certainty > 0.3)).mean())


def echoed(fault):
    """Each batch is used twice, as reading it takes longer than using it; workers stay from epoch to epoch."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = loader(24, shuffle=True, num_workers=2, persistent_workers=True)
    for _ in range(2):
        for x, y in data:
            for _ in range(2):
                step(optimizer, F.cross_entropy(model(x), y))


def uneven_accumulation(fault):
    """The last group of an epoch has fewer micro batches."""
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20)
    for _ in range(3):
        batches = list(loader(28, shuffle=True))
        for i, (x, y) in enumerate(batches):
            (F.cross_entropy(model(x), y) / 3).backward()
            if i % 3 == 2 or i == len(batches) - 1:
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()


def half_precision(fault):
    """A model in bfloat16 with a copy in float32 that the optimizer has."""
    model = Net().bfloat16()
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(masters, 1e-3)
    for _ in range(6):
        x, y = batch()
        F.cross_entropy(model(x.bfloat16()).float(), y).backward()
        for m, p in zip(masters, model.parameters()):
            m.grad = p.grad.float()
            p.grad = None
        nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
        with torch.no_grad():
            for m, p in zip(masters, model.parameters()):
                p.copy_(m)


def low_rank_of_all(fault):
    """Adapters in a model with dropout, checkpointed, whose inputs are made to want gradients."""
    from torch.utils.checkpoint import checkpoint

    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.base, self.head = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 20)
            self.requires_grad_(False)
            self.a, self.b = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.zeros(8, 2))
            self.dropout = nn.Dropout(0.1)

        def layer(self, h):
            return self.base(h) + self.dropout(h) @ self.a.T @ self.b.T

        def forward(self, tokens):
            h = self.embedding(tokens).requires_grad_()
            return self.head(checkpoint(self.layer, h, use_reentrant=True))

    model = Adapted()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
    for _ in range(6):
        tokens = torch.randint(20, (4, 7))
        step(optimizer, F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()))


def monte_carlo(fault):
    """Evaluations with dropout on purpose: by the layers' mode, and by a layer that always drops."""

    class Always(nn.Module):
        def forward(self, x):
            return F.dropout(x, 0.2, training=True)

    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), Always(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model.train()
        for _ in range(2):
            step(optimizer, loss_of(model, batch()))
        model.eval()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.train()
        with torch.no_grad():
            x = batch()[0]
            for _ in range(4):
                model(x)


PROGRAMS = [
    critic_with_penalty, clamped_critic, two_directions, pictures_from_noise, policy_gradient, proximal, soft_actor, prompt,
    averaged_weights, balanced_experts, recomputed_sequence, warmed_up, line_search, triplets, bootstrapped, self_distilled,
    alternating_tasks, late_task, surgery, sharpness, sharpness_as_optimizer, looking_ahead, unfrozen_gradually, phases,
    phases_of_one_optimizer, weights_as_products, spectral_critic, learned_to_learn, reptile, distilled, mixed_up, streamed,
    full_batch, one_batch_for_ever, micro_batches, forward_forward, graph, ensemble, noisy, per_sample, quantized, random_depth,
    reversed_gradient, diffusion, fixed_point, folds, tried_rates, best_so_far, pruned, sparse_rows, with_and_without_labels,
    echoed, uneven_accumulation, half_precision, low_rank_of_all, monte_carlo,
]
