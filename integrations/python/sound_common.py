"""What small training programs share: models, data, and the observation."""

import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import optim_test_tools as ott

AT = 3  # the iteration that faults of the middle of a training begin with

_directory = ""


def new_directory():
    """Has the next observations write to a new folder, which is returned."""
    return set_directory(tempfile.mkdtemp(prefix="ott_sound_"))


def set_directory(directory):
    global _directory
    _directory = directory
    return directory


def start_observation():
    return ott.torch.observe(config={"run_dir": _directory, "stopwatch": {}})


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


class Parts(nn.Module):
    """A model of these parts, whose forward pass is forward(model, ...)."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.run = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args):
        return self.run(self, *args)


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


def batch(n=8, generator=None):
    return torch.randn(n, 8, generator=generator), torch.randint(4, (n,), generator=generator)


def images(n=6):
    return torch.randn(n, 1, 8, 8), torch.randint(4, (n,))


def loader(n=32, **options):
    data = torch.utils.data.TensorDataset(torch.randn(n, 8), torch.randint(4, (n,)))
    return torch.utils.data.DataLoader(data, batch_size=4, **options)


def texts():
    """Returns tokens, and the one that follows each of them."""
    tokens = torch.randint(20, (4, 7))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(model, data):
    return F.cross_entropy(model(data[0]).flatten(0, -2), data[1].flatten())


def with_optimizer(model, kind=torch.optim.SGD, rate=None, **options):
    """Returns the model and an optimizer of all of its parameters, at a rate of 0.1 for SGD and of 1e-3 for Adam and AdamW by default."""
    return model, kind(model.parameters(), rate or (0.1 if kind is torch.optim.SGD else 1e-3), **options)


def begun_alike(rank, kind=Net):
    """Returns a model that begins alike on all ranks; numbers that are drawn from then on are those of the rank."""
    torch.manual_seed(5)
    model = kind()
    torch.manual_seed(50 + rank)
    return model


def wrapped(model=None, rank=None, **options):
    """The same within DistributedDataParallel; without a rank all draw the same numbers from then on."""
    torch.manual_seed(5)
    model = nn.parallel.DistributedDataParallel(model or Net(), **options)
    if rank is not None:
        torch.manual_seed(50 + rank)
    return model


def average(parameters):
    """Averages their gradients over the ranks, by hand."""
    for p in parameters:
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def mesh_of_all():
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (dist.get_world_size(),))


def step(optimizer, loss):
    """Zeroes gradients between the forward and the backward pass."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def steps(model, optimizer, iterations, data=batch):
    for _ in range(iterations):
        step(optimizer, loss_of(model, data()))


def learn(model, optimizer, data):
    """Zeroes gradients before the forward pass."""
    optimizer.zero_grad()
    loss_of(model, data).backward()
    optimizer.step()


def train(model, optimizer, iterations=6, data=batch):
    for _ in range(iterations):
        learn(model, optimizer, data())


def backward_passes(model, optimizer, iterations=6, data=batch):
    """Iterations of train(), of which each is given to the caller between its backward pass and its step."""
    for i in range(iterations):
        optimizer.zero_grad()
        loss_of(model, data()).backward()
        yield i
        optimizer.step()


def gradients_of(model, optimizer, data):
    optimizer.zero_grad()
    loss_of(model, data).backward()
    return [p.grad.clone() for p in model.parameters()]


def learn_from(model, optimizer, batches):
    for data in batches:
        step(optimizer, loss_of(model, data))


def evaluate(model, x):
    model.eval()
    with torch.no_grad():
        model(x)
    model.train()


def step_all(optimizers, loss):
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
