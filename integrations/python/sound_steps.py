"""Healthy programs by how they step, and what they do with gradients, rates and weights. Each takes `fault`, which is empty."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from sound_common import ConvNet, Net, batch, gradients_of, images, learn_from, loader, loss_of, step, steps, with_optimizer


def averaged_weights(fault):
    """SWA: an averaged model, its schedule, and statistics that are estimated anew."""
    from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

    model = ConvNet()
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    schedule, late = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3), SWALR(optimizer, 0.02)
    data = DataLoader(list(zip(*images(24))), 6, shuffle=True)
    for epoch in range(5):
        learn_from(model, optimizer, data)
        if epoch >= 2:
            average.update_parameters(model)
            late.step()
        else:
            schedule.step()
    update_bn(data, average)
    average.eval()
    with torch.no_grad():
        average(images()[0])


def warmed_up(fault):
    """A chain of schedules, whose rate begins with 0."""
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
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


def surgery(fault):
    """PCGrad: a backward pass for each task, gradients that are kept aside, projected and put back."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
    for _ in range(6):
        kept = [gradients_of(model, optimizer, batch()) for _ in range(2)]
        optimizer.zero_grad()
        for p, a, b in zip(model.parameters(), *kept):
            dot = (a * b).sum()
            p.grad = a + b - (dot.clamp(max=0) / b.square().sum().clamp(min=1e-9)) * b
        optimizer.step()


def sharpness(fault):
    """SAM: up to the worst point near by, a second gradient there, back, and a step."""
    model, optimizer = with_optimizer(Net(dropout=0), momentum=0.9)
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
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    slow = [p.detach().clone() for p in model.parameters()]
    for i in range(9):
        step(optimizer, loss_of(model, batch()))
        if i % 3 == 2:
            for s, p in zip(slow, model.parameters()):
                s += 0.5 * (p.data - s)
                p.data.copy_(s)


def learned_to_learn(fault):
    """MAML: a step within the graph, and a gradient through it."""
    from torch.func import functional_call

    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
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
        steps(fast, inner, 3)
        for p, f in zip(model.parameters(), fast.parameters()):
            p.grad = p.data - f.data
        outer.step()


def noisy(fault):
    """SGLD: noise is added to the parameters after each step, and to gradients before it."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.SGD, 0.01)
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

    model, optimizer = with_optimizer(Net(dropout=0))

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


def folds(fault):
    """Cross-validation: a new model and a new optimizer in each fold."""
    for _ in range(3):
        model, optimizer = with_optimizer(Net(), torch.optim.Adam)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        for _ in range(3):
            learn_from(model, optimizer, loader(16, shuffle=True))
            model.eval()
            with torch.no_grad():
                loss = sum(loss_of(model, data) for data in loader(8))
            model.train()
            schedule.step(loss)


def tried_rates(fault):
    """A search for a rate: parameters and state go back where they were after each trial, then the training begins."""
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    begin = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    for rate in (1e-5, 1e-3, 1e-1):
        for group in optimizer.param_groups:
            group["lr"] = rate
        steps(model, optimizer, 3)
        model.load_state_dict(begin[0])
        optimizer.load_state_dict(copy.deepcopy(begin[1]))
    steps(model, optimizer, 5)


def best_so_far(fault):
    """The best parameters come back at the end, and are trained a little more with a smaller rate."""
    model, optimizer = with_optimizer(Net(), momentum=0.9)
    best = copy.deepcopy(model.state_dict())
    for i in range(9):
        step(optimizer, loss_of(model, batch()))
        if i == 2:
            best = copy.deepcopy(model.state_dict())
        if i == 5:
            model.load_state_dict(best)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)


def uneven_accumulation(fault):
    """The last group of an epoch has fewer micro batches."""
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
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
