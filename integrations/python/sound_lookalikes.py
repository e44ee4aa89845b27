"""Healthy programs that look like faults of one process, written down before they were run. Each takes `fault`, which is empty."""

import copy
import itertools

import torch
from torch import nn
from torch.nn import functional as F

from sound_common import ConvNet, Language, Net, Parts, batch, evaluate, gradients_of, images, learn_from, loader, loss_of, step
from sound_common import steps, texts, with_optimizer


def tied_late(fault):
    """Weights are tied after the optimizer was made, which keeps one that no model has."""
    model, optimizer = with_optimizer(Language(tied=False), torch.optim.AdamW)
    model.head.weight = model.embedding.weight
    steps(model, optimizer, 6, texts)


def norms_frozen_by_train(fault):
    """train() keeps norm layers in eval mode, whose scales do not learn."""

    class Model(ConvNet):
        def train(self, mode=True):
            super().train(mode)
            self.norm.eval().requires_grad_(False)
            return self

    steps(*with_optimizer(Model().train(), torch.optim.SGD, 0.05, momentum=0.9), 6, images)


def alternating(fault):
    """One loop, of which each second iteration trains the critic, and the others the generator."""
    G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizers = [torch.optim.Adam(part.parameters(), 1e-3) for part in (D, G)]
    for i in range(10):
        for optimizer in optimizers:
            optimizer.zero_grad()
        fake = G(torch.randn(8, 4))
        if i % 2 == 0:
            loss = F.softplus(-D(torch.randn(8, 8))).mean() + F.softplus(D(fake.detach())).mean()
        else:
            loss = F.softplus(-D(fake)).mean()
        loss.backward()
        optimizers[i % 2].step()


def lazy_penalty(fault):
    """A penalty on the critic's gradient in every third iteration, as a step of its own."""
    G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    for i in range(8):
        step(od, F.softplus(-D(torch.randn(8, 8))).mean() + F.softplus(D(G(torch.randn(8, 4)).detach())).mean())
        if i % 3 == 0:
            x = torch.randn(8, 8, requires_grad=True)
            (g,) = torch.autograd.grad(D(x).sum(), x, create_graph=True)
            step(od, 3 * g.square().sum(1).mean() + 0 * D(x).mean())
        step(og, F.softplus(-D(G(torch.randn(8, 4)))).mean())


def units_reset(fault):
    """Units that died are drawn anew, and their state is cleared."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
    for i in range(8):
        step(optimizer, loss_of(model, batch()))
        if i % 3 == 2:
            with torch.no_grad():
                model.body.weight[:4] = 0.1 * torch.randn(4, 8)
                model.head.weight[:, :4] = 0
                for name in ("exp_avg", "exp_avg_sq"):
                    optimizer.state[model.body.weight][name][:4] = 0


def shrunk_and_perturbed(fault):
    model, optimizer = with_optimizer(Net())
    for i in range(9):
        if i % 3 == 0:
            for p in model.parameters():
                p.data = 0.8 * p.data + 0.01 * torch.randn_like(p)
        step(optimizer, loss_of(model, batch()))


def masked(fault):
    """Lottery tickets: gradients and weights are multiplied by a mask, and some parameters are wholly masked."""
    model = Net(dropout=0)
    masks = [(torch.rand_like(p) > 0.5).float() for p in model.parameters()]
    masks[1].zero_()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        for p, mask in zip(model.parameters(), masks):
            p.grad.mul_(mask)
        optimizer.step()
        for p, mask in zip(model.parameters(), masks):
            p.data.mul_(mask)


def stepped_in_backward(fault):
    """Each parameter has an optimizer of its own, which steps as soon as the gradient is there."""
    model = Net()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def apply(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(apply)
    for _ in range(6):
        loss_of(model, batch()).backward()


class Lion(torch.optim.Optimizer):
    """The sign of an average."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    average = self.state[p].setdefault("average", torch.zeros_like(p))
                    p.add_((0.9 * average + 0.1 * p.grad).sign(), alpha=-group["lr"])
                    average.lerp_(p.grad, 0.01)


def signed(fault):
    steps(*with_optimizer(Net(), Lion), 6)


def hooked(fault):
    """Hooks center gradients and add noise to them."""
    model = Net()
    for p in model.parameters():
        p.register_hook(lambda g: g - g.mean() + 0.01 * torch.randn_like(g))
    steps(*with_optimizer(model), 6)


def frozen_by_rate(fault):
    """The body stands still by a rate of 0."""
    model = Net()
    still = [*model.body.parameters(), *model.norm.parameters()]
    steps(model, torch.optim.AdamW([{"params": still, "lr": 0.0}, {"params": model.head.parameters()}]), 6)


def swapped(fault):
    """Evaluations use an average of the weights, which is put in and out again."""
    model = Net()
    average = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(8):
        step(optimizer, loss_of(model, batch()))
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 0.1)
        if i % 3 == 2:
            kept = copy.deepcopy(model.state_dict())
            model.load_state_dict(average)
            evaluate(model, batch()[0])
            model.load_state_dict(kept)


def restarted_warm(fault):
    """The optimizer's state is cleared as each cycle of rates begins."""
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3)
    for i in range(9):
        if i % 3 == 0:
            optimizer.state.clear()
        step(optimizer, loss_of(model, batch()))
        schedule.step()


def checked_first(fault):
    """Two batches are evaluated before the training begins."""
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    model.eval()
    with torch.no_grad():
        for x, _ in itertools.islice(loader(), 2):
            model(x)
    model.train()
    learn_from(model, optimizer, loader(shuffle=True))


def skipped_by_hand(fault):
    """Steps with gradients that are not finite are left out by the program."""
    model, optimizer = with_optimizer(Net())
    for i in range(8):
        optimizer.zero_grad()
        (loss_of(model, batch()) * (float("nan") if i in (2, 5) else 1)).backward()
        if all(torch.isfinite(p.grad).all() for p in model.parameters()):
            optimizer.step()


def two_losses(fault):
    """Two losses of one graph, each with a backward pass."""
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        optimizer.zero_grad()
        x, y = batch()
        out = model(x)
        F.cross_entropy(out, y).backward(retain_graph=True)
        (0.1 * out.square().mean()).backward()
        optimizer.step()


class DropsByFunction(Net):
    """Drops by F.dropout() with these options."""

    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return self.head(F.dropout(self.norm(self.body(x)).relu(), **self.options))


def train_and_evaluate(model, call):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model.train()
        steps(model, optimizer, 2)
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                call(batch()[0])


def drawn_often(fault):
    """Monte Carlo dropout by F.dropout() without a flag: each input is evaluated several times."""
    model = DropsByFunction(p=0.3)
    train_and_evaluate(model, lambda x: torch.stack([model(x) for _ in range(4)]).std(0))


def drops_always(fault):
    """Tacotron's first layers drop in evaluations, too, as their flag says."""
    model = DropsByFunction(p=0.5, training=True)
    train_and_evaluate(model, model)


def attending(fault):
    """PyTorch's own attention with dropout, which is evaluated; a frozen part in eval mode within training."""

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=len(x) % 2 == 0)[0]
        return self.head(F.dropout(self.frozen(x).mean(1), 0.1, self.frozen.training))

    attention, frozen = nn.MultiheadAttention(8, 2, 0.2, batch_first=True), nn.TransformerEncoderLayer(8, 2, 16, 0.2, batch_first=True)
    model = Parts(forward, attention=attention, head=nn.Linear(8, 4), frozen=frozen.requires_grad_(False))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for i in range(6):
        model.frozen.eval()
        step(optimizer, loss_of(model, (torch.randn(6, 4, 8), torch.randint(4, (6,)))))
        evaluate(model, torch.randn(5 + i % 2, 4, 8))


def dropout_later(fault):
    """Functional dropout begins after some steps, or ends."""

    class Model(Net):
        def __init__(self, drops):
            super().__init__()
            self.num_passes, self.drops = 0, drops

        def forward(self, x):
            self.num_passes += 1
            h = self.norm(self.body(x)).relu()
            return self.head(F.dropout(h, 0.2, training=self.training and self.drops(self.num_passes)))

    model = nn.ModuleList([Model(lambda number: number > 4), Model(lambda number: number < 4)])
    model.forward = lambda x: model[0](x) + model[1](x)
    steps(*with_optimizer(model), 8)


def remembered(fault):
    """A-GEM: a gradient of old samples is kept, and the new one is projected where they disagree."""
    model, optimizer = with_optimizer(Net(dropout=0))
    memory = itertools.cycle(loader(16, shuffle=True))
    for (x, y), (u, v) in zip(loader(32, shuffle=True), memory):
        old = gradients_of(model, optimizer, (u, v))
        optimizer.zero_grad()
        loss_of(model, (x, y)).backward()
        dot = sum((p.grad * g).sum() for p, g in zip(model.parameters(), old))
        if dot < 0:
            for p, g in zip(model.parameters(), old):
                p.grad.sub_(dot / sum(g.square().sum() for g in old) * g)
        optimizer.step()


def surgery_by_loader(fault):
    """PCGrad with two batches of one loader for each step."""
    model, optimizer = with_optimizer(Net(dropout=0), torch.optim.Adam)
    data = iter(loader(64, shuffle=True))
    for _ in range(6):
        kept = [gradients_of(model, optimizer, next(data)) for _ in range(2)]
        for p, a, b in zip(model.parameters(), *kept):
            p.grad.copy_(a + b - (a * b).sum().clamp(max=0) / b.square().sum().clamp(min=1e-9) * b)
        optimizer.step()


def noise_scale(fault):
    """The noise of gradients is measured in every fourth iteration, by two batches whose gradients are thrown away."""
    model, optimizer = with_optimizer(Net())
    data = loader(32, shuffle=True)
    for _ in range(2):
        for i, (x, y) in enumerate(data):
            if i % 4 == 0:
                for u, v in itertools.islice(data, 2):
                    optimizer.zero_grad()
                    F.cross_entropy(model(u), v).backward()
                    sum(p.grad.square().sum() for p in model.parameters())
            step(optimizer, F.cross_entropy(model(x), y))


def partly_loaded(fault):
    """A body is loaded into a larger model, by strict=False; and a state of nothing."""

    class Large(Net):
        def __init__(self):
            super().__init__()
            self.more = nn.Linear(4, 4)

        def forward(self, x):
            return self.more(super().forward(x))

    model = Large()
    model.load_state_dict({k: v for k, v in Net().state_dict().items() if "head" not in k}, strict=False)
    model.load_state_dict({}, strict=False)
    steps(*with_optimizer(model, torch.optim.Adam), 5)


def made_lazily(fault):
    """Layers whose sizes the first pass tells."""
    model = nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(4))
    with torch.no_grad():
        model(batch()[0])
    steps(*with_optimizer(model, torch.optim.Adam), 6)


def clipped_in_parts(fault):
    """One part is clipped by its norm, then all by value, then noise is added; another optimizer clips nothing."""
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        optimizer.zero_grad()
        (10 * loss_of(model, batch())).backward()
        nn.utils.clip_grad_norm_(model.body.parameters(), 0.1)
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        nn.utils.clip_grad_norm_(model.head.parameters(), 0.1, norm_type=float("inf"))
        for p in model.parameters():
            p.grad.add_(torch.randn_like(p), alpha=0.5)
        optimizer.step()


def normalised_by_itself(fault):
    """SELU with alpha dropout, and dropout of whole channels."""
    model = nn.Sequential(nn.Linear(8, 16), nn.SELU(), nn.AlphaDropout(0.2), nn.Unflatten(1, (4, 4)), nn.Dropout1d(0.2), nn.Flatten(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        steps(model, optimizer, 2)
        evaluate(model, batch()[0])


def truncated_in_time(fault):
    """Truncated backpropagation: a state goes on, and what comes before it is cut off."""
    cell, head = nn.GRUCell(8, 16), nn.Linear(16, 4)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
    state = torch.zeros(4, 16)
    for _ in range(6):
        loss = 0
        for _ in range(3):
            state = cell(torch.randn(4, 8), state)
            loss = loss + F.cross_entropy(head(state), torch.randint(4, (4,)))
        step(optimizer, loss)
        state = state.detach()


def chosen_hard(fault):
    """A choice is made by argmax, and gradients go through the scores that weigh it."""

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        best = scores.argmax(-1)
        return self.head(self.codes(best) * scores.gather(1, best[:, None]))

    steps(*with_optimizer(Parts(forward, gate=nn.Linear(8, 6), codes=nn.Embedding(6, 16), head=nn.Linear(16, 4)), torch.optim.Adam), 6)


def probed(fault):
    """A probe learns from features of a body that another loss trains; both are one model with one optimizer."""

    def forward(self, x):
        h = self.body(x).relu()
        return self.decoder(h), self.probe(h.detach())

    model, optimizer = with_optimizer(Parts(forward, body=nn.Linear(8, 16), decoder=nn.Linear(16, 8), probe=nn.Linear(16, 4)), torch.optim.Adam)
    for _ in range(6):
        x, y = batch()
        rebuilt, scores = model(x)
        step(optimizer, F.mse_loss(rebuilt, x) + F.cross_entropy(scores, y))


def scripted(fault):
    """A copy that torch.jit.script made of the model is evaluated between steps."""
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    for _ in range(4):
        step(optimizer, loss_of(model, batch()))
        copied = torch.jit.script(model).eval()
        with torch.no_grad():
            copied(batch()[0])
            copied(batch()[0])


def tuned_from_outside(fault):
    """A layer is made for each task from what a network predicts, and has parameters of its own that never learn."""
    maker = nn.Linear(3, 32)
    optimizer = torch.optim.Adam(maker.parameters())
    for _ in range(6):
        x, y = batch()
        layer = nn.Linear(8, 4, bias=False).requires_grad_(False)
        out = F.linear(x, layer.weight + maker(torch.randn(3)).view(4, 8))
        step(optimizer, F.cross_entropy(out, y))


def made_for_each(fault):
    """An optimizer for each batch, which keeps nothing; then one for each sample, with which the model begins anew."""
    model = Net()
    for _ in range(5):
        step(torch.optim.SGD(model.parameters(), 0.1), loss_of(model, batch()))
    trained = copy.deepcopy(model.state_dict())
    for _ in range(5):
        model.load_state_dict(trained)
        step(torch.optim.Adam(model.parameters(), 1e-2), loss_of(model, batch()))


def restarted_schedule(fault):
    """A schedule whose step() counts no steps, called once for each epoch."""
    model, optimizer = with_optimizer(Net())
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 5)
    data = loader()
    for _ in range(4):
        learn_from(model, optimizer, data)
        schedule.step()


def zeroed_where_infinite(fault):
    """Gradients that are not finite are zeroed, so that the step leaves them out."""
    model, optimizer = with_optimizer(Net())
    for i in range(8):
        optimizer.zero_grad()
        (loss_of(model, batch()) * (float("inf") if i == 3 else 1.0)).backward()
        if not all(bool(p.grad.isfinite().all()) for p in model.parameters()):
            optimizer.zero_grad()
        optimizer.step()


def schedule_set_back(fault):
    """A schedule that is set back, so that each epoch begins with its step."""
    model, optimizer = with_optimizer(Net())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
    schedule.last_epoch = -1
    for _ in range(4):
        schedule.step()
        learn_from(model, optimizer, loader())
