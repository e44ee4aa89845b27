"""What a rank saw of the rules that a training step keeps: RUN/rank_00003/sound.json (questions/sound/sound.proto)."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, Sequence, Tuple

# Name: what must hold and why; what to do where it does not.
RULES: Dict[str, Tuple[str, str]] = {
    "parameter_in_no_optimizer": (
        "Each parameter that gets gradients is in an optimizer, or else it never learns.",
        "Make the optimizer after the model is complete, moved and wrapped, or freeze the parameter by requires_grad_(False).",
    ),
    "missing_gradient": (
        "A parameter of the optimizer whose output a later module uses gets a gradient, or else it never learns.",
        "Look for detach(), .data, .item() or no_grad() behind this module, or freeze it by requires_grad_(False).",
    ),
    "gradients_not_zeroed": (
        "Gradients of one step do not enter the next one.",
        "Call optimizer.zero_grad() once for each step.",
    ),
    "gradients_zeroed_before_step": (
        "Gradients stay from backward() to the step that uses them.",
        "Call zero_grad() before backward() or after step().",
    ),
    "gradients_thrown_away": (
        "A step uses the gradients of all batches since the step before.",
        "Call zero_grad() once for each step, and not for each micro batch.",
    ),
    "optimizer_never_steps": (
        "An optimizer whose parameters get gradients steps.",
        "Call optimizer.step() after backward().",
    ),
    "step_without_gradients": (
        "A step that follows a backward pass has gradients.",
        "Look for a loss that was made anew from its value, for frozen parameters, and for parameters that no model has any more.",
    ),
    "backward_twice": (
        "One backward pass of a loss gives its gradients.",
        "Take one of the two calls of backward() away, or zero the gradients in between.",
    ),
    "update_rounded_away": (
        "A parameter changes in steps with gradients and a rate above zero.",
        "Keep a copy of the parameters in float32 for the optimizer, as autocast does, or raise the rate.",
    ),
    "parameter_in_two_optimizers": (
        "A gradient is applied to a parameter once.",
        "Take the parameter out of one of the optimizers, or compute a gradient for each.",
    ),
    "step_not_counted": (
        "The optimizer's count of steps goes up by one in a step, as it corrects its averages by it.",
        "Look for state of several parameters that is one tensor, as a copy of the state may leave it.",
    ),
    "gradient_used_twice": (
        "Between two steps there is a backward pass.",
        "Take one of the two calls of step() away.",
    ),
    "nonfinite_gradient": (
        "Gradients that a step uses are finite, or else parameters become NaN.",
        "Leave the step out, lower the rate, or look for the operation with `ott origin`.",
    ),
    "optimizer_recreated": (
        "An optimizer keeps its state from step to step.",
        "Make the optimizer once, before the loop.",
    ),
    "frozen_parameter_updated": (
        "What requires no gradient does not change in a step.",
        "Set its grad to None as you freeze it, or make the optimizer without it.",
    ),
    "parameter_not_written": (
        "A step writes each parameter that has a gradient.",
        "Look for what replaces step() of this optimizer.",
    ),
    "eval_in_training": (
        "Dropout and norm layers are in training mode where the model trains.",
        "Call model.train() before the loop and after each evaluation.",
    ),
    "dropout_drops_nothing": (
        "A dropout layer in training mode drops some of its elements.",
        "Look for what replaces its forward() or dropout itself.",
    ),
    "dropout_in_evaluation": (
        "Where a model is evaluated, nothing is dropped.",
        "Hand over training=self.training, or dropout_p=0.0 to attention unless self.training; training=True says that it is meant.",
    ),
    "stages_not_frozen": (
        "A module whose frozen_stages is 1 or more has frozen parameters.",
        "Call model.train() before the loop, where _freeze_stages() is called.",
    ),
    "spectral_norm_not_estimated": (
        "A spectral norm was estimated, in training mode, before it is used in eval mode.",
        "Call the model once in training mode before the first evaluation, or use torch.nn.utils.parametrizations.spectral_norm.",
    ),
    "tied_weights_broken": (
        "Parameters that were one tensor stay one.",
        "Tie them again after what replaced one of them, such as a cast, a load or a wrapper.",
    ),
    "clipped_scaled_gradients": (
        "Gradients are unscaled before they are clipped, or else the limit means another norm.",
        "Call scaler.unscale_(optimizer) before clip_grad_norm_().",
    ),
    "stepped_scaled_gradients": (
        "Gradients of a scaled loss are unscaled before a step uses them.",
        "Call scaler.step(optimizer) instead of optimizer.step().",
    ),
    "loss_not_scaled": (
        "scaler.step() divides by the scale, so the loss must have been multiplied by it.",
        "Call scaler.scale(loss).backward().",
    ),
    "norm_not_clipped": (
        "After gradients are clipped, their norm is at most what was asked for.",
        "Look for what replaces clip_grad_norm_().",
    ),
    "clipped_nothing": (
        "Clipping reaches the parameters that the optimizer has.",
        "Hand model.parameters() over anew: a generator that was used up before is empty.",
    ),
    "clipped_before_backward": (
        "Gradients are clipped after the backward pass that makes them.",
        "Call clip_grad_norm_() between backward() and step().",
    ),
    "clipped_after_step": (
        "Gradients are clipped before the step that uses them.",
        "Call clip_grad_norm_() between backward() and step().",
    ),
    "autocast_dtype": (
        "Within autocast, linear and convolution layers compute in its dtype.",
        "Look for what casts their result back.",
    ),
    "gradients_not_reduced": (
        "A step uses gradients that were averaged over the ranks.",
        "Call the DistributedDataParallel and not the module inside of it, and leave no_sync() for the last micro step.",
    ),
    "gradients_reduced_twice": (
        "Gradients are averaged over the ranks once, or else a step is as many times too large as there are ranks.",
        "Take your own all_reduce away, which DistributedDataParallel did already.",
    ),
    "epoch_not_reshuffled": (
        "Each epoch has an order of its own.",
        "Call sampler.set_epoch(epoch) as each epoch begins.",
    ),
    "workers_repeat": (
        "Each worker of a loader gives samples of its own.",
        "Divide an IterableDataset by get_worker_info(), and seed NumPy in worker_init_fn by torch.initial_seed().",
    ),
    "loader_restarted": (
        "A loader goes on from batch to batch.",
        "Make iter(loader) once for each epoch, and not for each batch.",
    ),
    "scheduler_before_optimizer": (
        "scheduler.step() follows optimizer.step(), or else the first rate is never used.",
        "Call scheduler.step() after optimizer.step().",
    ),
    "scheduler_of_idle_optimizer": (
        "A scheduler changes the rates of the optimizer that steps.",
        "Make the scheduler after the optimizer, and again where the optimizer is made anew.",
    ),
    "scheduler_not_stepped": (
        "A scheduler that was made for an optimizer is stepped, at least once in an epoch.",
        "Call scheduler.step(), or leave the scheduler away.",
    ),
    "resumed_without_optimizer": (
        "A training that goes on from a checkpoint goes on with its optimizer's state.",
        "Call optimizer.load_state_dict() with what the checkpoint has.",
    ),
    "resumed_without_scheduler": (
        "A training that goes on from a checkpoint goes on with its schedule.",
        "Call scheduler.load_state_dict() with what the checkpoint has.",
    ),
    "resumed_without_scaler": (
        "A training that goes on from a checkpoint goes on with its scale.",
        "Call scaler.load_state_dict() with what the checkpoint has.",
    ),
    "resumed_without_random_state": (
        "A training that goes on from a checkpoint goes on with its random numbers.",
        "Call torch.set_rng_state() with what the checkpoint has.",
    ),
    "loaded_nothing": (
        "A state that is loaded has names that the model has.",
        "Compare the names: a wrapper may have added \"module.\" or \"_orig_mod.\"; strict=False hides it.",
    ),
    "gradients_differ": (
        "Replicas step with the same gradients, bit for bit, once these were reduced.",
        "Look for what changes gradients on one rank between backward() and step(), or is left out of the reduction.",
    ),
    "replicas_differ": (
        "Replicas hold the same parameters and optimizer state, bit for bit.",
        "With cross_check { iterations { every: 1 } } in a --config, `ott crosscheck` names tensor, rank and element; look at the first rule "
        "that is broken before this one.",
    ),
    "rates_differ": (
        "Replicas step with the same learning rate and options.",
        "Step schedulers equally often on all ranks, by what all ranks know.",
    ),
    "modes_differ": (
        "The same modules are in training mode, and the same parameters are frozen, on all ranks.",
        "Look for train(), eval() or requires_grad_() that one rank calls alone.",
    ),
    "reductions_differ": (
        "All ranks reduce gradients and step equally often.",
        "Look for no_sync(), or a skipped step, that one rank has alone.",
    ),
    "clip_norms_differ": (
        "All replicas clip by the norm of the averaged gradient.",
        "Clip after the reduction: not within no_sync(), and not before your own all_reduce().",
    ),
    "same_data_on_ranks": (
        "Each replica has samples of its own, or else they compute the same gradient.",
        "Use DistributedSampler, or seed the sampler by rank.",
    ),
    "dropout_differs": (
        "Ranks that divide a layer between them drop the same of what all of them hold.",
        "Seed the generator alike along this axis, or use a generator for what is divided and another one for the rest.",
    ),
    "shards_alike": (
        "Each rank holds a part of its own of a divided parameter.",
        "Draw the whole parameter and divide it, or seed each rank by its place along the axis.",
    ),
    "transfer_changed": (
        "What ranks get of an all_reduce or all_gather is what they gave.",
        "Look at the network and the devices: `ott crosscheck` or a copy that is read back.",
    ),
    "transfer_differs": (
        "All ranks of a group get the same from a broadcast, all_reduce or all_gather, bit for bit.",
        "Look at the network and the device of the rank that has another result, by `ott crosscheck` or a copy that is read back.",
    ),
    "collectives_differ": (
        "Ranks of a group make the same calls in the same order, with the same size and dtype.",
        "Look for a call behind a condition that is true on some ranks alone.",
    ),
}

# Each record says that no rule looks at these.
NEVER_CHECKED = (
    "transfers that do not wait or are on a device, the order of labels beside inputs, the size of gradients, buffers, "
    "and the position in the data"
)

_FIRST_ROWS = 64
_MAX_ROWS = 1024
_SECONDS_BETWEEN_WRITES = 10.0
_MAX_FINDINGS = 64


class Record:
    """Findings and facts of this rank, kept in a file that is there while the training runs."""

    def __init__(self, path: str):
        self._path = path
        self._findings: Dict[Tuple[str, Tuple[str, ...]], Dict[str, Any]] = {}
        self._facts: Dict[Tuple[str, str, Tuple[int, ...]], Dict[str, Any]] = {}
        self._strides: Dict[Tuple[str, str, Tuple[int, ...]], int] = {}
        self._num_checks = dict.fromkeys(RULES, 0)
        self._not_checked: Dict[str, str] = {}
        self._next_write = 0.0
        self.num_iterations = 0

    def check(self, rule: str) -> None:
        """Counts that a rule was looked at."""
        self._num_checks[rule] += 1

    def not_checked(self, rule: str, reason: str) -> None:
        self._not_checked.setdefault(rule, reason)

    def end_all(self, reason: str) -> None:
        for rule in RULES:
            self.not_checked(rule, reason)

    def find(self, rule: str, iteration: int, names: Sequence[str], seen: str, place: str = "") -> bool:
        """Returns whether it is new."""
        key = (rule, tuple(names))
        if key in self._findings or len(self._findings) >= _MAX_FINDINGS:
            return False
        self._findings[key] = {"rule": rule, "iteration": iteration, "names": list(names), "place": place, "seen": seen}
        self._next_write = 0.0
        return True

    def fact(self, rule: str, name: str, group: Sequence[int], iteration: int, value: str, kinds: Sequence[str] = ()) -> None:
        """kinds: fields of SoundFact that are true, such as "is_distinct"."""
        self.check(rule)
        key = (rule, name, tuple(group))
        fact = self._facts.get(key)
        if fact is None:
            fact = {"rule": rule, "name": name, "group": list(group), "iterations": [], "values": [], **dict.fromkeys(kinds, True)}
            self._facts[key] = fact
        stride = self._strides.get(key, 1)
        if iteration >= _FIRST_ROWS and iteration % stride:
            return
        fact["iterations"].append(iteration)
        fact["values"].append(value)
        if len(fact["iterations"]) > _MAX_ROWS:
            # By iteration, so that all ranks keep the same ones.
            stride = self._strides[key] = 2 * stride
            kept = [row for row in zip(fact["iterations"], fact["values"]) if row[0] < _FIRST_ROWS or row[0] % stride == 0]
            fact["iterations"], fact["values"] = map(list, zip(*kept))

    def write_sometimes(self) -> None:
        if time.monotonic() >= self._next_write:
            self.write()

    def write(self) -> None:
        rules: List[Dict[str, Any]] = [
            {
                "name": name,
                "must_hold": must_hold,
                "advice": advice,
                "num_checks": self._num_checks[name],
                "not_checked": self._not_checked.get(name, ""),
            }
            for name, (must_hold, advice) in RULES.items()
        ]
        rules.append({"name": "without a rule", "not_checked": NEVER_CHECKED})
        record = {
            "num_iterations": self.num_iterations,
            "rules": rules,
            "findings": list(self._findings.values()),
            "facts": list(self._facts.values()),
        }
        with open(self._path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(self._path + ".tmp", self._path)
        self._next_write = time.monotonic() + _SECONDS_BETWEEN_WRITES
