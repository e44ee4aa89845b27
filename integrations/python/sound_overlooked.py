"""Bugs of one process that others documented, written down before any rule was made for them, each with its mending, which is healthy."""

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from sound_common import AT, Net, Parts, batch, learn_from, loader, loss_of, step, steps, with_optimizer


class Augmented(Dataset):
    """Adds noise to its samples, by a generator of its own."""

    def __init__(self, seeds_in_worker):
        self.data = torch.randn(32, 8)
        self.generator = numpy.random.default_rng(5)
        self.seeds_in_worker = seeds_in_worker

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return self.data[index] + torch.from_numpy(self.generator.normal(size=8).astype("float32")), index % 4


def seed_generator(worker):
    torch.utils.data.get_worker_info().dataset.generator = numpy.random.default_rng(worker)


def generator_copied(fault):
    """PyTorch 5059: each worker has a copy of the dataset's generator, so all of them draw the same noise, in each epoch."""
    model, optimizer = with_optimizer(Net())
    learn_from(model, optimizer, DataLoader(Augmented(not fault), 4, num_workers=2, worker_init_fn=None if fault else seed_generator))


def accumulated_in_vain(fault):
    """PyTorch forum: zero_grad() before each micro batch, though only each fourth of them ends with a step."""
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    for i, (x, y) in enumerate(loader(64, shuffle=True)):
        if fault or i % 4 == 0:
            optimizer.zero_grad()
        (F.cross_entropy(model(x), y) / 4).backward()
        if i % 4 == 3:
            optimizer.step()


def cast_without_graph(fault):
    """Autocast's cache of older versions: weights that no_grad() cast first are used again, and get no gradient. By a stand-in."""

    class Cast(nn.Linear):
        def forward(self, x):
            with torch.set_grad_enabled(not fault):
                weight = self.weight.bfloat16()
            return F.linear(x.bfloat16(), weight, self.bias.bfloat16()).float()

    steps(*with_optimizer(nn.Sequential(Cast(8, 16), nn.ReLU(), nn.Linear(16, 4))), 6)


def fake_detached(fault):
    """The generator's loss is computed from samples that were detached for the critic."""
    G, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    for _ in range(6):
        fake = G(torch.randn(8, 4))
        step(od, F.softplus(-D(torch.randn(8, 8))).mean() + F.softplus(D(fake.detach())).mean())
        step(og, F.softplus(-D(fake.detach() if fault else fake)).mean())


def chosen_inside(fault):
    """argmax() within a model lets no gradient through."""

    def forward(self, x):
        scores = self.body(x)
        return self.head(self.codes(scores.argmax(-1)) if fault else scores.softmax(-1) @ self.codes.weight)

    steps(*with_optimizer(Parts(forward, body=nn.Linear(8, 6), codes=nn.Embedding(6, 16), head=nn.Linear(16, 4)), torch.optim.Adam), 6)


def copied_inside(fault):
    """torch.tensor() makes a new tensor, which knows of no graph."""

    def forward(self, x):
        h = self.body(x).relu()
        return self.head(torch.tensor(h.tolist()) if fault else h)

    steps(*with_optimizer(Parts(forward, body=nn.Linear(8, 16), head=nn.Linear(16, 4)), torch.optim.Adam), 6)


def layer_in_forward(fault):
    """Stack Overflow: a layer that is made within forward() is another one in each pass."""

    def forward(self, x):
        middle = nn.Linear(16, 16) if fault else nn.Identity()
        return self.head(middle(self.body(x).relu()))

    steps(*with_optimizer(Parts(forward, body=nn.Linear(8, 16), head=nn.Linear(16, 4)), torch.optim.Adam), 6)


def loaded_nothing(fault):
    """load_state_dict(strict=False) with names that a wrapper prefixed: no parameter is loaded."""
    state = {("module." if fault else "") + name: value for name, value in Net().state_dict().items()}
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    model.load_state_dict(state, strict=False)
    steps(model, optimizer, 5)


def loader_made_alike(fault):
    """A loader is made anew for each epoch, with a generator of the same seed."""
    model, optimizer = with_optimizer(Net())
    data = torch.utils.data.TensorDataset(*batch(32))
    for epoch in range(3):
        generator = torch.Generator().manual_seed(7 if fault else epoch)
        learn_from(model, optimizer, DataLoader(data, 4, shuffle=True, generator=generator))


def unfrozen_late(fault):
    """A part is unfrozen in the middle, and was left out as the optimizer was made."""
    model = Net()
    model.body.requires_grad_(False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    for i in range(8):
        if i == AT:
            model.body.requires_grad_(True)
            if not fault:
                optimizer.add_param_group({"params": list(model.body.parameters())})
        step(optimizer, loss_of(model, batch()))


def changed_late(is_late, change):
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    model.body = change(model.body)
    steps(model, optimizer if is_late else torch.optim.AdamW(model.parameters()), 6)


def adapted_late(fault):
    """Adapters are put into the model after the optimizer was made."""

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))

    changed_late(fault, lambda base: Parts(forward, base=base, a=nn.Linear(8, 2, bias=False), b=nn.Linear(2, 16, bias=False)))


def normed_late(fault):
    """weight_norm() replaces the weight that the optimizer has."""
    changed_late(fault, nn.utils.weight_norm)


def clipped_badly(fault):
    """A kernel that computes the norm and leaves gradients as they are. By a stand-in."""
    from torch.nn.utils import clip_grad

    multiply = clip_grad._clip_grads_with_norm_
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    if fault:
        clip_grad._clip_grads_with_norm_ = lambda *args, **kwargs: None
    try:
        for _ in range(6):
            optimizer.zero_grad()
            (10 * loss_of(model, batch())).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
    finally:
        clip_grad._clip_grads_with_norm_ = multiply


def never_dropped(fault):
    """A flag of forward(), by default False, that nobody hands over: functional dropout never drops."""

    class Model(Net):
        def forward(self, x, training=False):
            h = self.norm(self.body(x)).relu()
            return self.head(F.dropout(h, 0.3, training=training if fault else self.training))

    steps(*with_optimizer(Model()), 6)


def zero_grad_not_called(fault):
    """The brackets are missing."""
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        optimizer.zero_grad if fault else optimizer.zero_grad()
        loss_of(model, batch()).backward()
        optimizer.step()


def train_not_called(fault):
    """The brackets are missing after an evaluation."""
    model, optimizer = with_optimizer(Net())
    for i in range(8):
        step(optimizer, loss_of(model, batch()))
        if i == AT:
            model.eval()
            with torch.no_grad():
                model(batch()[0])
            model.train if fault else model.train()


# As in sound_planted.
FAULTS = [
    (generator_copied, "copied", "workers_repeat", "Augmented", 0),
    (accumulated_in_vain, "zeroed_each_time", "gradients_thrown_away", "", 0),
    (cast_without_graph, "cast_first", "missing_gradient", "0.weight", 0),
    (fake_detached, "detached", "step_without_gradients", "Adam", 0),
    (layer_in_forward, "made_anew", "parameter_in_no_optimizer", "Linear", 0),
    (loaded_nothing, "prefixed", "loaded_nothing", "Net", 0),
    (loader_made_alike, "one_seed", "epoch_not_reshuffled", "RandomSampler", 10),
    (unfrozen_late, "not_added", "parameter_in_no_optimizer", "body.weight", AT),
    (adapted_late, "optimizer_first", "parameter_in_no_optimizer", "body.b.weight", 0),
    (normed_late, "optimizer_first", "parameter_in_no_optimizer", "body.weight_v", 0),
    (clipped_badly, "clips_nothing", "norm_not_clipped", "", 0),
    (never_dropped, "flag_not_handed_over", "dropout_drops_nothing", "Model", 0),
    (zero_grad_not_called, "no_brackets", "gradients_not_zeroed", "body.weight", 1),
    (train_not_called, "no_brackets", "eval_in_training", "Net", AT + 1),
]

# Faults that no rule finds: that a result went on as another tensor is not seen.
WITHOUT_A_RULE = [(chosen_inside, "argmax"), (copied_inside, "tensor")]
