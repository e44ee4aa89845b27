"""Programs that stand right beside a rule: healthy ones that one condition of it spares, and faults that it sees by one alone."""

import torch
from torch import nn
from torch.nn import functional as F

import optim_test_tools as ott
from sound_common import AT, Language, Net, backward_passes, batch, images, learn_from, loader, loss_of, step, step_all, steps, with_optimizer


def overflowing(fault):
    """The scaler leaves out all steps of a short training, whose scale is much too large."""
    model, optimizer = with_optimizer(Net())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale(1e6 * loss_of(model, batch())).backward()
        scaler.step(optimizer)
        scaler.update()


def outliers(fault):
    """The gradient of every third batch is not used, as its norm is an outlier."""
    model, optimizer = with_optimizer(Net())
    for i, data in enumerate(loader(48)):
        optimizer.zero_grad()
        loss_of(model, data).backward()
        if i % 3:
            optimizer.step()


def stepped_by_hand(fault):
    """An optimizer holds and zeroes what the program itself steps."""
    model = Net()
    by_hand, optimizer = torch.optim.SGD(model.body.parameters(), 0.1), torch.optim.SGD(model.head.parameters(), 0.1)
    for parameter in model.norm.parameters():
        parameter.requires_grad_(False)
    for _ in range(6):
        by_hand.zero_grad()
        step(optimizer, loss_of(model, batch()))
        with torch.no_grad():
            for parameter in model.body.parameters() if fault == "" else ():
                parameter -= 0.1 * parameter.grad


def looked_at_seldom(fault):
    """Values are looked at every hundredth iteration, and where a loss is not finite."""
    model, optimizer = with_optimizer(Net())
    observer = ott.torch.observe()
    for i in range(5):
        observer.sound.read_values_every(100)
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        (loss * float("nan") if fault and i == AT else loss).backward()
        optimizer.step()


def cleared_by_hand(fault):
    """The same loss goes backward again after its gradients were measured and taken away."""
    model, optimizer = with_optimizer(Net())
    for _ in range(5):
        loss = loss_of(model, batch())
        loss.backward(retain_graph=True)
        for parameter in model.parameters():
            parameter.grad = None
        loss.backward()
        optimizer.step()


def joined_late(fault):
    """A part of the model begins to learn later; its optimizer steps from the beginning."""
    model = Net()
    optimizers = [torch.optim.SGD(part.parameters(), 0.1) for part in (model.body, nn.ModuleList([model.norm, model.head]))]
    for i in range(9):
        for parameter in model.body.parameters():
            parameter.requires_grad_(i >= 4)
        step_all(optimizers, loss_of(model, batch()))


def rounded_on_purpose(fault):
    """Parameters in bfloat16, a part of which has a rate of 0."""
    model = Net().bfloat16()
    groups = [{"params": model.body.parameters(), "lr": 0.0}, {"params": model.head.parameters()}]
    optimizer = torch.optim.SGD([*groups, {"params": model.norm.parameters()}], 0.5)
    for _ in range(12):
        x, y = batch()
        step(optimizer, F.cross_entropy(model(x.bfloat16()).float(), y))


def evolved(fault):
    """Gradients are estimated from losses alone, of parameters that require none."""
    model = Net(dropout=0).requires_grad_(False)
    other = nn.Linear(8, 4)
    optimizer, observed = torch.optim.SGD(model.parameters(), 0.1), torch.optim.SGD(other.parameters(), 0.1)
    for _ in range(5):
        x, y = batch()
        step(observed, F.cross_entropy(other(x), y))
        before = F.cross_entropy(model(x), y)
        for parameter in model.parameters():
            noise = 0.01 * torch.randn_like(parameter)
            parameter += noise
            parameter.grad = noise * (F.cross_entropy(model(x), y) - before)
            parameter -= noise
        optimizer.step()


def stepped_twice_with_noise(fault):
    """Two steps by one backward pass, the second with noise in the gradient of the head."""
    model, optimizer = with_optimizer(Net())
    for _ in range(5):
        step(optimizer, loss_of(model, batch()))
        model.head.weight.grad += 0.01 * torch.randn_like(model.head.weight)
        optimizer.step()


def shared_and_masked(fault):
    """Two optimizers have the head, all of whose gradient is masked."""
    model = Net()
    for parameter in model.head.parameters():
        parameter.register_hook(torch.zeros_like)
    optimizers = [torch.optim.SGD([*part.parameters(), *model.head.parameters()], 0.1) for part in (model.body, model.norm)]
    for _ in range(5):
        step_all(optimizers, loss_of(model, batch()))


def made_anew_with_state(fault):
    """An optimizer for each step, which takes over the state of the one before."""
    model = Net()
    state = None
    for _ in range(6):
        optimizer = torch.optim.Adam(model.parameters())
        if state is not None:
            optimizer.load_state_dict(state)
        step(optimizer, loss_of(model, batch()))
        state = optimizer.state_dict()


def two_counts_in_one(fault):
    """The count of steps of one parameter is that of another one, too."""
    model, optimizer = with_optimizer(Net(), torch.optim.Adam, foreach=False)
    for i in range(6):
        step(optimizer, loss_of(model, batch()))
        if fault and i == AT - 1:
            states = [optimizer.state[p] for p in (model.body.weight, model.body.bias)]
            states[1]["step"] = states[0]["step"]


def of_three_kinds(fault):
    """A part is in an optimizer, another one is stepped by hand, and a third one in double precision is left out of autocast."""
    model, by_hand, double = Net(), nn.Linear(8, 4), nn.Linear(8, 4).double()
    optimizer = torch.optim.SGD([*model.parameters(), *double.parameters()], 0.1)
    whole = nn.ModuleList([model, by_hand, double])
    whole.forward = lambda x: model(x) + by_hand(x) + double(x.double()).float()
    for _ in range(5):
        x, y = batch()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(whole(x).float(), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in by_hand.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None


def without_statistics(fault):
    """In eval mode all the time, with norms that have no statistics."""
    layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.Flatten(), nn.Linear(144, 4)
    steps(*with_optimizer(nn.Sequential(*layers).eval()), 5, images)


def quantised(fault):
    """A code book in the optimizer that learns by a moving average, and whose result is detached."""
    model, optimizer = with_optimizer(nn.ModuleDict({"encoder": nn.Linear(8, 3), "codes": nn.Embedding(3, 8), "head": nn.Linear(8, 4)}))

    def forward(x):
        code = model["encoder"](x)
        return model["head"](model["codes"](code.argmax(-1)).detach()) + code.mean()

    model.forward = forward
    for _ in range(6):
        x, y = batch()
        step(optimizer, loss_of(model, (x, y)))
        with torch.no_grad():
            model["codes"].weight.lerp_(x.mean(0), 0.1)


def folds_of_one_order(fault):
    """Each fold begins with the same order of the same data, a new model and a new optimizer."""
    data = torch.utils.data.TensorDataset(*batch(32))
    for _ in range(3):
        model, optimizer = with_optimizer(Net())
        learn_from(model, optimizer, torch.utils.data.DataLoader(data, 4, shuffle=True, generator=torch.Generator().manual_seed(3)))


class Constant(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from ((torch.ones(8), 1) for _ in range(16))


def constant(fault):
    """Two workers give the same batch for ever, for a measurement of speed."""
    model, optimizer = with_optimizer(Net())
    learn_from(model, optimizer, torch.utils.data.DataLoader(Constant(), 4, num_workers=2))


def clipped_early_too(fault):
    """Clipped before there are gradients, and behind the backward pass by a larger limit."""
    model, optimizer = with_optimizer(Net())
    for _ in range(5):
        optimizer.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        loss_of(model, batch()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()


def unscaled_by_hand(fault):
    """Gradients are unscaled, and the program itself decides whether to step."""
    model, optimizer = with_optimizer(Net())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch())).backward()
        scaler.unscale_(optimizer)
        optimizer.step()
        scaler.update()


def clipped_by_largest(fault):
    """By the largest element, to which the sum of squares is no limit."""
    model, optimizer = with_optimizer(Net())
    for _ in backward_passes(model, optimizer, 5):
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3, norm_type=float("inf"))


def rates_by_hand(fault):
    """The schedule of an optimizer that does not step gives the rates of the one that does."""
    model = Net()
    follows, leads = torch.optim.SGD(model.parameters(), 0.1), torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(leads, 1, 0.9)
    for _ in range(8):
        follows.param_groups[0]["lr"] = leads.param_groups[0]["lr"]
        step(follows, loss_of(model, batch()))
        schedule.step()


def head_dropped(fault):
    """A head is taken away whose weight was that of the embedding."""
    model, optimizer = with_optimizer(Language())
    for i in range(6):
        if i == AT:
            weight = model.head.weight
            del model.head
            model.head = lambda x: x @ weight.t()
        tokens = torch.randint(20, (2, 6))
        step(optimizer, F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()))


def sampling_part(fault):
    """A part stays in training mode while the rest is evaluated, as it draws samples by dropout."""

    class Sampling(nn.Linear):
        def forward(self, x):
            return super().forward(F.dropout(x, 0.2))

    model, optimizer = with_optimizer(nn.Sequential(nn.Linear(8, 8), Sampling(8, 4)))
    for _ in range(5):
        step(optimizer, loss_of(model, batch()))
        model.eval()[1].train()
        with torch.no_grad():
            model(batch()[0])
        model.train()


def replaced_part(fault):
    """A part is replaced by another one, which the optimizer gets, too."""
    model, optimizer = with_optimizer(Net())
    model.forward = lambda x: model.head(model.norm(model.body(x).detach() if fault and model.body is new else model.body(x)))
    new = nn.Linear(8, 16)
    for i in range(9):
        if i == AT:
            model.body = new
            optimizer.add_param_group({"params": new.parameters()})
        step(optimizer, loss_of(model, batch()))


FAULTS = [
    (stepped_by_hand, "forgotten", "optimizer_never_steps", "SGD", 0),
    (looked_at_seldom, "loss_is_nan", "nonfinite_gradient", "body.weight", AT),
    (two_counts_in_one, "count_is_shared", "step_not_counted", "body", AT),
    (replaced_part, "detached", "missing_gradient", "body.weight", AT + 1),
]
