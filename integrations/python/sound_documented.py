"""Bugs that others documented, as small programs from their descriptions, each with its mending, which is healthy."""

import os
import shutil
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset

import optim_test_tools as ott
from sound_common import AT, ConvNet, Language, Net, batch, images, learn, loader, loss_of, start_observation, train, with_optimizer


def frozen_head(fault):
    """PyTorch forum 84911: of the parameters that train none is in the optimizer, which has a frozen head."""
    model = ConvNet()
    for name, p in model.named_parameters():
        p.requires_grad_("norm" in name or (not fault and "head" in name))
    held = model.head.parameters() if fault else [p for p in model.parameters() if p.requires_grad]
    train(model, torch.optim.Adam(held), data=images)


def converted(fault):
    """Accelerate 2665: the model's parameters are replaced after the optimizer was made."""
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    torch.__future__.set_overwrite_module_params_on_conversion(bool(fault))
    model.double().float()
    torch.__future__.set_overwrite_module_params_on_conversion(False)
    train(model, optimizer)


def resized_embedding(fault):
    """Transformers: resize_token_embeddings() after the optimizer was made."""
    model = Language(tied=False)
    optimizer = None if not fault else torch.optim.AdamW(model.parameters())
    grown = nn.Embedding(24, 16)
    with torch.no_grad():
        grown.weight[:20] = model.embedding.weight
    model.embedding = grown
    optimizer = optimizer or torch.optim.AdamW(model.parameters())
    for _ in range(6):
        tokens = torch.randint(20, (4, 7))
        optimizer.zero_grad()
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()


def checkpointed_inputs(fault):
    """PEFT's gradient checkpointing: within a reentrant checkpoint nothing learns if no input wants a gradient."""
    from torch.utils.checkpoint import checkpoint

    class Model(Net):
        def forward(self, x):
            h = checkpoint(lambda x: self.norm(self.body(x)).relu(), x, use_reentrant=bool(fault))
            return self.head(h)

    model = Model()
    train(model, torch.optim.AdamW(model.parameters()))


def functional_dropout(fault):
    """PyTorch forum: F.dropout() without `training` drops in evaluations, too."""

    class Model(Net):
        def forward(self, x):
            h = self.norm(self.body(x)).relu()
            h = F.dropout(h, 0.3) if fault else F.dropout(h, 0.3, self.training)
            return self.head(h)

    model, optimizer = with_optimizer(Model())
    for _ in range(3):
        model.train()
        train(model, optimizer, 2)
        model.eval()
        with torch.no_grad():
            model(batch()[0])


def attention_dropout(fault):
    """Transformers 33844: attention drops in eval mode."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.head = nn.Linear(8, 24), nn.Linear(8, 4)

        def forward(self, x):
            q, k, v = self.qkv(x).view(len(x), 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
            p = 0.2 if fault or self.training else 0.0
            return self.head(F.scaled_dot_product_attention(q, k, v, dropout_p=p).mean(2).flatten(1))

    model, optimizer = with_optimizer(Model())

    def data():
        return torch.randn(6, 4, 8), torch.randint(4, (6,))

    for _ in range(3):
        model.train()
        train(model, optimizer, 2, data)
        model.eval()
        with torch.no_grad():
            model(data()[0])


class RandomPictures(Dataset):
    """Draws from NumPy, as augmentations do."""

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.from_numpy(numpy.random.randn(8).astype("float32")), index % 4


def seed_numpy_alike(worker):
    numpy.random.seed(7)


def seed_numpy_by_worker(worker):
    numpy.random.seed((torch.initial_seed() + worker) % 2**31)


def workers_alike(fault):
    """Stack Overflow 67180955: all workers of a loader draw the same augmentations."""
    init = seed_numpy_alike if fault else seed_numpy_by_worker
    model, optimizer = with_optimizer(Net())
    for x, y in DataLoader(RandomPictures(), 4, num_workers=2, worker_init_fn=init):
        learn(model, optimizer, (x, y))


class Stream(IterableDataset):
    def __init__(self, divides):
        self.data = [(torch.randn(8), torch.randint(4, ()).item()) for _ in range(32)]
        self.divides = divides

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        yield from self.data[worker.id :: worker.num_workers] if self.divides else self.data


def workers_undivided(fault):
    """PyTorch's own warning: each worker of an IterableDataset gives all of it."""
    model, optimizer = with_optimizer(Net())
    for x, y in DataLoader(Stream(not fault), 4, num_workers=2):
        learn(model, optimizer, (x, y))


def seeded_each_epoch(fault):
    """A seed that is set in the loop gives each epoch the same order."""
    model, optimizer = with_optimizer(Net())
    data = loader(shuffle=True)
    for _ in range(3):
        if fault:
            torch.manual_seed(11)
        for x, y in data:
            learn(model, optimizer, (x, y))


def autocast_left_out(fault):
    """Lightning Thunder 725: within autocast an operation goes on in float32."""
    linear = F.linear

    def linear_in_float(x, weight, bias=None):
        with torch.autocast("cpu", enabled=False):
            return linear(x.float(), weight, bias)

    model, optimizer = with_optimizer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.optim.AdamW)
    F.linear = linear_in_float if fault else linear
    try:
        for _ in range(5):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, batch())
            loss.backward()
            optimizer.step()
    finally:
        F.linear = linear


def stale_update(fault):
    """PyTorch 115607: after a step without gradients the compiled step does nothing any more. Here by a stand-in."""
    from torch.optim import adam

    update = adam.adam
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    try:
        for i in range(6):
            optimizer.zero_grad()
            if i != 1:
                loss_of(model, batch()).backward()
            elif fault:
                adam.adam = lambda *args, **kwargs: None
            optimizer.step()
    finally:
        adam.adam = update


def stages_not_frozen(fault):
    """MMPretrain 702: stages are frozen in train() alone, which the loop does not call."""

    class Model(Net):
        def __init__(self):
            super().__init__()
            self.frozen_stages = 1
            if not fault:
                self._freeze_stages()

        def _freeze_stages(self):
            if self.frozen_stages > 0:
                self.body.requires_grad_(False)

        def train(self, mode=True):
            super().train(mode)
            self._freeze_stages()
            return self

    model = Model()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
    train(model, optimizer)


def evaluated_first(fault):
    """PyTorch 51800: a spectral norm is used in eval mode before it was ever estimated."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.utils.spectral_norm(nn.Linear(8, 64)), nn.utils.spectral_norm(nn.Linear(64, 4))

        def forward(self, x):
            return self.head(self.body(x).relu())

    model, optimizer = with_optimizer(Model(), torch.optim.Adam)
    if not fault:
        model(batch()[0])
    for _ in range(2):
        model.eval()
        with torch.no_grad():
            model(batch()[0])
        model.train()
        train(model, optimizer, 3)


def rounded_away(fault):
    """Parameters in bfloat16: each update is less than half of what their last bit is worth."""
    model, optimizer = with_optimizer(Net(dropout=0).bfloat16() if fault else Net(dropout=0), torch.optim.AdamW, 1e-6, weight_decay=0.0)
    for _ in range(12):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(model.body.weight.dtype)).float(), y).backward()
        optimizer.step()


def never_stepped(fault):
    """optimizer.step() was forgotten. A second optimizer makes iterations."""
    model, head = Net(), nn.Linear(4, 4)
    optimizer, other = torch.optim.SGD(model.parameters(), 0.1), torch.optim.SGD(head.parameters(), 0.1)
    for _ in range(6):
        x, y = batch()
        optimizer.zero_grad()
        other.zero_grad()
        F.cross_entropy(head(model(x)), y).backward()
        if not fault:
            optimizer.step()
        other.step()


def never_stepped_alone(fault):
    """The same where it is the only optimizer."""
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        optimizer.zero_grad()
        loss_of(model, batch()).backward()
        if not fault:
            optimizer.step()


def schedule_of_another(fault):
    """The schedule has an optimizer that was replaced by another one."""
    model, optimizer = with_optimizer(Net())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    if fault:
        optimizer = torch.optim.Adam(model.parameters())
    for _ in range(8):
        train(model, optimizer, 1)
        schedule.step()


def loss_without_graph(fault):
    """PyTorch forum: a loss that was made anew from its value knows of no parameter."""
    model, optimizer = with_optimizer(Net())
    for _ in range(6):
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        if fault:
            loss = torch.tensor(loss.item(), requires_grad=True)
        loss.backward()
        optimizer.step()


def backward_twice(fault):
    """PyTorch forum: backward() of one loss twice, with retain_graph."""
    model, optimizer = with_optimizer(Net())
    for i in range(6):
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        if fault and i >= AT:
            loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()


def resumed_without_random(fault):
    """A checkpoint has the state of the random generator, which is not restored."""
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    ott.torch.finish()
    train(model, optimizer, 2)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng_state": torch.get_rng_state()}, path)
    start_observation()
    shutil.move(path, path + ".moved")
    checkpoint = torch.load(path + ".moved", weights_only=False)
    shutil.rmtree(os.path.dirname(path))
    model.load_state_dict(checkpoint["model"])
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])
    if not fault:
        torch.set_rng_state(checkpoint["rng_state"])
    train(model, optimizer)


def zeroed_the_other(fault):
    """One of two optimizers is zeroed twice, and the other never."""
    actor, critic = Net(dropout=0), Net(dropout=0)
    oa, oc = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(6):
        x, _ = batch()
        oc.zero_grad()
        critic(x).square().mean().backward()
        oc.step()
        (oc if fault else oa).zero_grad()
        (actor(x).softmax(-1) * critic(x).detach()).sum(1).mean().backward()
        oa.step()


def one_of_two_scaled(fault):
    """Of two optimizers with a scaler one steps by itself."""
    body, head = nn.Linear(8, 16), nn.Linear(16, 4)
    optimizers = [torch.optim.SGD(body.parameters(), 0.1), torch.optim.Adam(head.parameters())]
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(6):
        for optimizer in optimizers:
            optimizer.zero_grad()
        x, y = batch()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(head(body(x).relu()), y)
        scaler.scale(loss).backward()
        scaler.step(optimizers[0])
        if fault:
            optimizers[1].step()
        else:
            scaler.step(optimizers[1])
        scaler.update()


def clipped_the_other(fault):
    """The teacher's gradients are clipped instead of the student's."""
    student, teacher = Net(), Net().eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in range(6):
        x, _ = batch()
        optimizer.zero_grad()
        F.mse_loss(student(x), teacher(x)).backward()
        nn.utils.clip_grad_norm_((teacher if fault else student).parameters(), 0.01)
        optimizer.step()


def clipped_after_scaler(fault):
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for _ in range(6):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch())).backward()
        scaler.unscale_(optimizer)
        if not fault:
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        scaler.step(optimizer)
        if fault:
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        scaler.update()


# As in sound_planted.
FAULTS = [
    (frozen_head, "head_is_frozen", "parameter_in_no_optimizer", "norm.weight", 0),
    (converted, "parameters_replaced", "parameter_in_no_optimizer", "body.weight", 0),
    (resized_embedding, "optimizer_first", "parameter_in_no_optimizer", "embedding.weight", 0),
    (checkpointed_inputs, "reentrant", "missing_gradient", "body.weight", 0),
    (functional_dropout, "no_flag", "dropout_in_evaluation", "F.dropout", 2),
    (attention_dropout, "no_flag", "dropout_in_evaluation", "F.scaled_dot_product_attention", 2),
    (workers_alike, "numpy_seeded_alike", "workers_repeat", "RandomPictures", 0),
    (workers_undivided, "not_divided", "workers_repeat", "Stream", 0),
    (seeded_each_epoch, "manual_seed", "epoch_not_reshuffled", "RandomSampler", 10),
    (autocast_left_out, "linear_in_float", "autocast_dtype", "0", 0),
    (stale_update, "does_nothing", "parameter_not_written", "body.weight", 1),
    (stages_not_frozen, "train_not_called", "stages_not_frozen", "Model", 0),
    (evaluated_first, "no_training_before", "spectral_norm_not_estimated", "body", 0),
    (rounded_away, "bfloat16", "update_rounded_away", "norm.weight", 1),
    (never_stepped, "one_of_two", "optimizer_never_steps", "SGD", 0),
    (never_stepped_alone, "the_only_one", "optimizer_never_steps", "SGD", 0),
    (schedule_of_another, "optimizer_replaced", "scheduler_of_idle_optimizer", "StepLR", 0),
    (loss_without_graph, "made_anew", "step_without_gradients", "SGD", 0),
    (backward_twice, "retain_graph", "backward_twice", "", AT),
    (resumed_without_random, "not_restored", "resumed_without_random_state", "rng_state", 0),
    (zeroed_the_other, "one_zeroed_twice", "gradients_not_zeroed", "body.weight", 2),
    (one_of_two_scaled, "steps_by_itself", "stepped_scaled_gradients", "", 0),
    (clipped_the_other, "teacher_clipped", "clipped_nothing", "", 0),
    (clipped_after_scaler, "clipped_last", "clipped_after_step", "", 0),
]
