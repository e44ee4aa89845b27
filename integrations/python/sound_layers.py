"""Healthy programs by what their models are made of, and which part of them learns. Each takes `fault`, which is empty."""

import torch
from torch import nn
from torch.nn import functional as F

from sound_common import Language, Net, Parts, batch, evaluate, loss_of, step, step_all, steps, texts, with_optimizer


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


def balanced_experts(fault):
    """The two best of four experts, a loss that balances them, and some that idle."""

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

    experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(4))
    parts = {"norm": nn.LayerNorm(8), "gate": nn.Linear(8, 4, bias=False), "experts": experts, "head": nn.Linear(8, 4)}
    model, optimizer = with_optimizer(Parts(forward, **parts), torch.optim.AdamW)
    for _ in range(6):
        x, y = batch(2)
        step(optimizer, F.cross_entropy(model(x), y) + 0.01 * model.balance)


def recomputed_sequence(fault):
    """checkpoint_sequential, with dropout and norm layers."""
    from torch.utils.checkpoint import checkpoint_sequential

    layers = [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2)) for _ in range(4)]
    model, optimizer = with_optimizer(nn.Sequential(*layers, nn.Linear(8, 4)))
    for _ in range(5):
        x, y = batch()
        step(optimizer, F.cross_entropy(checkpoint_sequential(model, 2, x, use_reentrant=False), y))


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

    def forward(self, x):
        h = self.body(x).relu()
        return self.first(h), self.second(h.detach())

    model, optimizer = with_optimizer(Parts(forward, body=nn.Linear(8, 16), first=nn.Linear(16, 4), second=nn.Linear(16, 4)), torch.optim.Adam)
    for i in range(8):
        x, y = batch()
        a, b = model(x)
        step(optimizer, F.cross_entropy(a, y) + (F.cross_entropy(b, y) if i >= 4 else 0))


def unfrozen_gradually(fault):
    """Layers join the optimizer from the top, each with a rate of its own."""
    model = Net().requires_grad_(False)
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
        steps(model, torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), 1e-3), 4)


def phases_of_one_optimizer(fault):
    """The same, with one optimizer that has all parameters, and gradients that are None where they are frozen."""
    model, optimizer = with_optimizer(Net(), momentum=0.9)
    for part in (model.body, model.head, model):
        model.requires_grad_(False)
        part.requires_grad_(True)
        for _ in range(4):
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, batch()).backward()
            optimizer.step()


def weights_as_products(fault):
    """weight_norm, the old and the new one, and orthogonal weights."""
    model = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(8, 16)), nn.ReLU(), nn.utils.weight_norm(nn.Linear(16, 16)), nn.ReLU(),
        nn.utils.parametrizations.orthogonal(nn.Linear(16, 4)),
    )
    steps(*with_optimizer(model, torch.optim.Adam), 5)


def graph(fault):
    """A graph network: all nodes in each iteration, a loss of some of them, and eval mode after each step."""
    adjacency = (torch.rand(12, 12) > 0.7).float() + torch.eye(12)
    adjacency = adjacency / adjacency.sum(1, keepdim=True)
    x, y, rows = torch.randn(12, 8), torch.randint(4, (12,)), torch.arange(6)

    def forward(self, x):
        h = F.dropout(F.relu(adjacency @ self.a(x)), 0.5, self.training)
        return adjacency @ self.b(h)

    model = Parts(forward, a=nn.Linear(8, 16, bias=False), b=nn.Linear(16, 4, bias=False))
    optimizer = torch.optim.Adam(model.parameters(), 0.01, weight_decay=5e-4)
    for _ in range(6):
        step(optimizer, F.cross_entropy(model(x)[rows], y[rows]))
        evaluate(model, x)


def random_depth(fault):
    """Layers are left out at random."""

    def forward(self, x):
        for layer in self.layers:
            if not self.training or torch.rand(()) > 0.5:
                x = x + layer(x).relu()
        return self.head(x)

    steps(*with_optimizer(Parts(forward, layers=nn.ModuleList(nn.Linear(8, 8) for _ in range(4)), head=nn.Linear(8, 4))), 8)


def fixed_point(fault):
    """A deep equilibrium: the layer runs without gradients up to a fixed point, and once more with them."""

    def forward(self, x):
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(5):
                z = (0.3 * self.layer(z) + x).tanh()
        return self.head((0.3 * self.layer(z) + x).tanh())

    steps(*with_optimizer(Parts(forward, layer=nn.Linear(8, 8), head=nn.Linear(8, 4)), torch.optim.Adam), 5)


def pruned(fault):
    """Weights are pruned in the middle of a training, and stay 0."""
    from torch.nn.utils import prune

    model, optimizer = with_optimizer(Net())
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
        step_all(optimizers, F.cross_entropy(head(embedding(torch.randint(5, (8, 3)))), torch.randint(4, (8,))))


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
    steps(model, optimizer, 6, texts)


def monte_carlo(fault):
    """Evaluations with dropout on purpose: by the layers' mode, and by a layer that always drops."""

    class Always(nn.Module):
        def forward(self, x):
            return F.dropout(x, 0.2, training=True)

    model, optimizer = with_optimizer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), Always(), nn.Linear(16, 4)), torch.optim.Adam)
    for _ in range(3):
        model.train()
        steps(model, optimizer, 2)
        model.eval()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.train()
        with torch.no_grad():
            x = batch()[0]
            for _ in range(4):
                model(x)


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
