"""Programs of one process, and the lines that break them. `fault` is empty in healthy runs."""

import copy
import os
import shutil
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

import optim_test_tools as ott
from sound_common import AT, ConvNet, Language, Net, Parts, batch, images, learn, loader, loss_of, start_observation, step, texts, train
from sound_common import with_optimizer


def classifier(fault, iterations=8):
    """SGD with momentum, clipping, a schedule and an evaluation, the usual loop."""
    model = Net(128, 0.5) if fault == "dropout_is_lost" else Net()
    if fault == "half_of_the_parameters":
        optimizer = torch.optim.SGD(model.body.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if fault == "replaced_head":
        model.head = nn.Linear(16, 4)
    if fault == "copied_model":
        model = copy.deepcopy(model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
    parameters = model.parameters()
    list(parameters)
    if fault == "dropout_is_lost":
        model.dropout.forward = lambda x: x
    if fault == "eval_from_the_start":
        model.eval()
    for i in range(iterations):
        if fault == "schedule_first":
            schedule.step()
        data = batch()
        if not (fault == "no_zero_grad" or (fault == "no_zero_grad_later" and i >= AT)):
            optimizer.zero_grad()
        if fault == "clipped_before_backward":
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        if fault == "replaced_later" and i == AT:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())
        if fault == "other_optimizer" and i == AT:
            model = Net()
        x = data[0]
        if fault == "input_is_nan" and i == AT:
            x = x / 0 * 0
        loss = F.cross_entropy(model(x), data[1])
        loss.backward()
        if fault == "zero_grad_after_backward":
            optimizer.zero_grad()
        if fault == "module_zero_grad_after_backward":
            model.zero_grad(set_to_none=False)
        if fault == "gradient_is_nan" and i == AT:
            model.body.weight.grad[0, 0] = float("nan")
        if fault == "gradient_is_infinite" and i == AT:
            model.head.bias.grad[1] = float("inf")
        if fault == "clipped_nothing":
            nn.utils.clip_grad_norm_(parameters, 1e-3)
        elif fault not in ("clipped_after_step", "clipped_before_backward"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if fault == "stepped_twice" or (fault == "stepped_twice_later" and i == AT):
            optimizer.step()
        if fault == "clipped_after_step":
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        if fault != "schedule_first":
            schedule.step()
        if i % 3 == 2:
            model.eval()
            with torch.no_grad():
                model(x)
            if fault != "eval_after_evaluation":
                model.train()


class Broken(Net):
    """Loses the gradient of its body."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "no_grad":
            with torch.no_grad():
                x = self.norm(self.body(x))
        else:
            x = self.norm(self.body(x))
            x = {"detach": x.detach, "data": lambda: x.data, "": lambda: x}[self.how]()
        return self.head(x)


def detached(fault):
    train(*with_optimizer(Broken(fault), torch.optim.AdamW), 5)


def unregistered(fault):
    """Layers in a list, of which PyTorch knows nothing."""

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)

    layers = [nn.Linear(8, 8) for _ in range(3)]
    model = Parts(forward, layers=layers if fault else nn.ModuleList(layers), head=nn.Linear(8, 4))
    model, optimizer = with_optimizer(model, torch.optim.Adam)
    for _ in range(5):
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, batch()).backward()
        optimizer.step()


def convolution(fault):
    model, optimizer = with_optimizer(ConvNet(), torch.optim.Adam)
    for i in range(6):
        model.train()
        if fault and i >= AT:
            model.eval()
        loss_of(model, images()).backward()
        optimizer.step()
        optimizer.zero_grad()


def gan(fault, critics=1):
    G, D = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    if fault == "generator_in_no_optimizer":
        og = torch.optim.Adam(G[:1].parameters(), 1e-3)
    for _ in range(6):
        for _ in range(critics):
            if fault != "critic_not_zeroed":
                od.zero_grad()
            fake = G(torch.randn(8, 4)).detach()
            (F.softplus(-D(torch.randn(8, 8))).mean() + F.softplus(D(fake)).mean()).backward()
            od.step()
        step(og, F.softplus(-D(G(torch.randn(8, 4)))).mean())


def language(fault):
    model, optimizer = with_optimizer(Language(), torch.optim.AdamW)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(i / 4, 1))  # from 0
    for i in range(8):
        if fault == "untied" and i == AT:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())
            optimizer.param_groups[0]["params"].append(model.head.weight)
        loss_of(model, texts()).backward()
        if fault == "one_count_for_all" and i == AT:
            for state in optimizer.state.values():
                state["step"] = optimizer.state[model.head.weight]["step"]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def frozen(fault):
    """A part is frozen in the middle of a training."""
    model, optimizer = with_optimizer(Net(), momentum=0.9)
    for i in range(7):
        optimizer.zero_grad(set_to_none=not fault)
        if i == AT:
            model.body.requires_grad_(False)
        loss_of(model, batch()).backward()
        optimizer.step()


def lbfgs(fault):
    model = Net(dropout=0)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    data = batch(32)

    def closure():
        if not fault:
            optimizer.zero_grad()
        loss = loss_of(model, data)
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)


def accumulation(fault):
    model, optimizer = with_optimizer(Net(), torch.optim.AdamW)
    for i in range(18):
        (loss_of(model, batch()) / 3).backward()
        if i % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if not fault:
                optimizer.zero_grad()


def scaled(fault):
    model, optimizer = with_optimizer(Net())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        (loss if fault == "not_scaled" and i == AT else scaler.scale(loss)).backward()
        if fault != "clipped_scaled":
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def scaled_simply(fault):
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for i in range(6):
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        scaler.scale(loss).backward()
        if fault and i == AT:
            optimizer.step()
            optimizer.zero_grad()
            continue
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def autocast(fault):
    body = nn.Linear(8, 16)
    if fault:
        body.forward = lambda x: F.linear(x.double(), body.weight.double(), body.bias.double()).float()
    model, optimizer = with_optimizer(Parts(lambda self, x: self.head(self.body(x)), body=body, head=nn.Linear(16, 4)))
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch())
        loss.backward()
        optimizer.step()


def recreated(fault):
    """A new optimizer for each epoch is meant, one for each step is not."""
    model = Net()
    for _ in range(6 if fault else 2):
        train(*with_optimizer(model, torch.optim.Adam), 1 if fault else 4)


def epochs(fault):
    model, optimizer = with_optimizer(Net())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    data = loader(shuffle=fault != "restarted")
    for _ in range(24 if fault == "restarted" else 4):
        for xy in [next(iter(data))] if fault == "restarted" else data:
            learn(model, optimizer, xy)
        if not fault:
            schedule.step()
        if fault == "restarted":
            continue
        model.eval()
        with torch.no_grad():
            for x, y in loader():
                model(x)
        model.train()


def resumed(fault):
    model, optimizer = with_optimizer(Net(), torch.optim.Adam)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    ott.torch.finish()
    for _ in range(3):
        optimizer.step()
        schedule.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}, path)
    start_observation()
    model, optimizer = with_optimizer(Net(), torch.optim.Adam, 3e-3 if fault == "fine_tuned" else 1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    checkpoint = torch.load(path, weights_only=False)
    shutil.rmtree(os.path.dirname(path))
    model.load_state_dict(checkpoint["model"])
    if fault not in ("no_optimizer", "fine_tuned"):
        optimizer.load_state_dict(checkpoint["optimizer"])
    if fault not in ("no_schedule", "schedule_ahead", "fine_tuned"):
        schedule.load_state_dict(checkpoint["schedule"])
    for _ in range(5 if fault == "schedule_ahead" else 0):
        schedule.step()
    for _ in range(4):
        learn(model, optimizer, batch())
        schedule.step()


def resumed_scaled(fault):
    """A training with a scaler that goes on from a checkpoint."""
    model = Net()
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
    ott.torch.finish()
    for begins in (True, False):
        optimizer = torch.optim.Adam(model.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        if not begins:
            start_observation()
            checkpoint = torch.load(path, weights_only=False)
            optimizer.load_state_dict(checkpoint["optimizer"])
            if not fault:
                scaler.load_state_dict(checkpoint["scaler"])
        for _ in range(4):
            scaler.scale(loss_of(model, batch())).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        if begins:
            torch.save({"optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}, path)
    shutil.rmtree(os.path.dirname(path))


def two_optimizers(fault):
    """Disjoint parameters, one backward pass."""
    model = Net()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    if fault == "one_in_both":
        others.append(model.head.weight)
    optimizers = [torch.optim.SGD(matrices, 0.1), torch.optim.AdamW(others)]
    for _ in range(6):
        loss_of(model, batch()).backward()
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers[:1] if fault == "one_not_zeroed" else optimizers:
            optimizer.zero_grad()


# Program, fault, the rule that finds it, a name that it must have, and the last iteration that it may name.
FAULTS = [
    (classifier, "half_of_the_parameters", "parameter_in_no_optimizer", "head.weight", 0),
    (classifier, "replaced_head", "parameter_in_no_optimizer", "head.weight", 0),
    (classifier, "copied_model", "parameter_in_no_optimizer", "body.weight", 0),
    (classifier, "replaced_later", "parameter_in_no_optimizer", "head.weight", AT),
    (unregistered, "list", "parameter_in_no_optimizer", "a parameter of Linear", 0),
    (gan, "generator_in_no_optimizer", "parameter_in_no_optimizer", "", 1),
    (classifier, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (classifier, "no_zero_grad_later", "gradients_not_zeroed", "body.weight", AT),
    (gan, "critic_not_zeroed", "gradients_not_zeroed", "", 1),
    (accumulation, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (two_optimizers, "one_not_zeroed", "gradients_not_zeroed", "bias", 1),
    (lbfgs, "no_zero_grad", "gradients_not_zeroed", "body.weight", 1),
    (classifier, "zero_grad_after_backward", "gradients_zeroed_before_step", "", 0),
    (classifier, "module_zero_grad_after_backward", "gradients_zeroed_before_step", "", 0),
    (classifier, "clipped_before_backward", "clipped_before_backward", "", 2),
    (classifier, "dropout_is_lost", "dropout_drops_nothing", "dropout", 0),
    (two_optimizers, "one_in_both", "parameter_in_two_optimizers", "head.weight", 1),
    (language, "one_count_for_all", "step_not_counted", "weight", AT),
    (resumed_scaled, "no_scaler", "resumed_without_scaler", "GradScaler", 0),
    (classifier, "stepped_twice", "gradient_used_twice", "", 0),
    (classifier, "stepped_twice_later", "gradient_used_twice", "", AT + 1),
    (classifier, "gradient_is_nan", "nonfinite_gradient", "body.weight", AT),
    (classifier, "gradient_is_infinite", "nonfinite_gradient", "head.bias", AT),
    (classifier, "input_is_nan", "nonfinite_gradient", "body.weight", AT),
    (classifier, "eval_from_the_start", "eval_in_training", "Net", 0),
    (classifier, "eval_after_evaluation", "eval_in_training", "Net", 3),
    (convolution, "eval_later", "eval_in_training", "ConvNet", AT),
    (classifier, "clipped_nothing", "clipped_nothing", "", 0),
    (classifier, "clipped_after_step", "clipped_after_step", "", 0),
    (classifier, "schedule_first", "scheduler_before_optimizer", "StepLR", 0),
    (detached, "detach", "missing_gradient", "body.weight", 0),
    (detached, "data", "missing_gradient", "norm.weight", 0),
    (detached, "no_grad", "missing_gradient", "norm.weight", 0),
    (language, "untied", "tied_weights_broken", "head.weight", AT),
    (frozen, "gradient_stays", "frozen_parameter_updated", "body.weight", AT),
    (scaled, "clipped_scaled", "clipped_scaled_gradients", "", 0),
    (scaled, "not_scaled", "loss_not_scaled", "", AT),
    (scaled_simply, "stepped_scaled", "stepped_scaled_gradients", "", AT),
    (autocast, "cast_back", "autocast_dtype", "body", 0),
    (recreated, "each_step", "optimizer_recreated", "", 2),
    (epochs, "no_schedule", "scheduler_not_stepped", "CosineAnnealingLR", 32),
    (epochs, "restarted", "loader_restarted", "", 0),
    (resumed, "no_optimizer", "resumed_without_optimizer", "optimizer", 0),
    (resumed, "no_schedule", "resumed_without_scheduler", "StepLR", 0),
    (resumed, "schedule_ahead", "resumed_without_scheduler", "StepLR", 0),
]
