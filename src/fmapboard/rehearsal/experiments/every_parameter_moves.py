"""Whether every parameter gets a gradient, and one step changes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fmapboard.gradients.optimizers import holding
from fmapboard.model.layers import clean_name
from fmapboard.rehearsal.batches import first_samples
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Pass, Setup, optimized, parameter_names, warmed_up
from fmapboard.rehearsal.training_copy import TrainingCopy

_LISTED = 4
_BATCHES = 4
"""For none of which a layer may be called."""
_STEPS = 10
"""After which units that began with the same weights must differ."""
_SAME = 1e-4
"""Difference of weights that is rounding, as a share of the largest one."""


@dataclass(frozen=True, slots=True)
class EveryParameterMoves(Experiment):
    """One forward and backward pass, and one step of the optimizer.

    It costs one step of the whole batch.

    A fault: no parameter gets a gradient; gradients stop at a layer, and those before it that the
    optimizer holds get none, or only those of other outputs; a layer or a direction of a recurrent
    network gets none; gradients are not finite; layers with a gradient that no optimizer holds, if
    most others are held; the optimizer holds none of the parameters; every weight of a layer is
    zero and stays so, or all of its units have the same weights; a group whose rate is 0, unless
    only a head is trained; an output that the network returns and the loss does not use, if it has
    layers of its own that the optimizer holds; a layer of torch that is never called, and a tensor
    with a gradient that is no parameter.

    Not judged: frozen parameters, parts whose output is neither used nor returned, layers that
    follow one that starts at zero.

    Attributes:
        not_held: share of the values with a gradient that no optimizer may hold: where only a head
            is trained, most are not held.
    """

    not_held: float = 0.5
    kind: ClassVar[str] = "every_parameter_moves"
    question: ClassVar[str] = "Does every parameter get a gradient, and does one step change it?"
    bound: ClassVar[str] = "all that are trained"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        copy = setup.make_copy()
        before = {name: p.detach().clone() for name, p in parameter_names(copy.model)}
        seen = setup.forward(copy, setup.step_batch, gradients=True, needs_loss=True)
        loss = seen.loss
        if loss is None or not loss.requires_grad:
            return fault(
                "the loss has no gradient: it does not depend on any trained parameter",
                advice="Look for detach(), no_grad(), item(), argmax() or a numpy array between "
                "the output and the loss, and at requires_grad of the parameters",
            )
        if not bool(torch.isfinite(loss)):
            return self._not_finite(setup, seen, loss)
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]  # torch has no types here
        trained = {n: p for n, p in parameter_names(copy.model) if p.requires_grad}
        wrong = self._gradients(setup, copy, seen, trained)
        if wrong is not None:
            return wrong
        fresh = setup.make_copy()
        for group in fresh.optimizer.param_groups:
            group["lr"] = warmed_up(group)
        fresh.train([setup.step_batch], setup.task, 1)
        return self._moved(setup, copy, fresh, before, trained)

    def _not_finite(self, setup: Setup, seen: Pass, loss: Tensor) -> Answer:
        floating = [t for t in setup.inputs(setup.step_batch) if t.is_floating_point()]
        if not all(map(_finite, floating)):
            return fault(
                "the batch holds values that are not finite",
                advice="Clean the data: look for NaN, infinity, and divisions by a deviation of 0",
            )
        for call in seen.calls:
            is_in_finite = all(bool(torch.isfinite(t).all()) for t in call.inputs)
            if is_in_finite and not all(bool(torch.isfinite(t).all()) for t in call.outputs):
                name = call.name or "the network"
                return fault(
                    f"the output of {name} ({call.kind}) is not finite",
                    layer=call.name,
                    advice="Look at what that layer computes: logarithms and roots of 0, divisions",
                )
        return fault(
            f"the first loss is {float(loss)}, though all outputs are finite",
            advice="Look at the loss: logarithms and roots of 0, divisions by 0, labels",
        )

    def _gradients(
        self,
        setup: Setup,
        copy: TrainingCopy,
        seen: Pass,
        trained: dict[str, nn.Parameter],
    ) -> Answer | None:
        held = optimized(copy)
        if not any(id(p) in held for p in copy.model.parameters()):
            return fault(
                "the optimizer holds no parameter of the network",
                advice="Create the optimizer from the parameters of this network, after it was "
                "moved or replaced",
            )
        wrong = [n for n, p in trained.items() if p.grad is not None and not _finite(p.grad)]
        if wrong:
            return fault(
                f"the gradient of {_named(wrong)} is not finite",
                figure=len(wrong),
                advice="Look for logarithms and roots of 0 behind these layers",
            )
        missing = [n for n, p in trained.items() if p.grad is None and id(p) in held]
        stop = _where_gradients_stop(seen, trained, missing)
        if stop:
            return fault(
                f"gradients stop before {stop}: {_named(missing)} get none",
                figure=len(missing),
                layer=stop,
                advice="Look for detach(), no_grad() or a new tensor between these layers",
            )
        return (
            self._zero_gradients(trained)
            or _unused_in_recurrent(copy.model, trained, held)
            or _unused_outputs(seen, trained, held)
            or _never_called(setup, copy, trained, held)
            or _detached(seen, trained, held)
            or self._held(setup, copy, trained)
        )

    def _zero_gradients(self, trained: dict[str, nn.Parameter]) -> Answer | None:
        gradients = [p.grad for p in trained.values() if p.grad is not None]
        if not gradients or any(bool(gradient.any()) for gradient in gradients):
            return None
        return fault(
            "every gradient is zero",
            figure=0.0,
            advice="The loss does not change with the output: a saturated output, a softmax over "
            "one class, or a loss of a constant",
        )

    def _held(
        self, setup: Setup, copy: TrainingCopy, trained: dict[str, nn.Parameter]
    ) -> Answer | None:
        held = optimized(copy)
        plain = _plain_tensors(copy.model, held)
        if plain:
            return fault(
                f"{plain} gets a gradient and is no parameter: no optimizer holds it",
                figure=1.0,
                layer=plain,
                advice="Make it an nn.Parameter, or put it into an nn.ParameterList",
            )
        outside = _outside(copy.model, held)
        if outside:
            return fault(
                f"{outside} holds layers in a Python list or dict, which are not trained",
                figure=1.0,
                layer=outside,
                advice="Use nn.ModuleList or nn.ModuleDict",
            )
        with_gradient = {n: p for n, p in trained.items() if p.grad is not None and p.grad.any()}
        missing = [n for n, p in with_gradient.items() if id(p) not in held]
        missing = [n for n in missing if n not in setup.held_elsewhere]
        if not missing:
            return None
        values = sum(p.numel() for p in with_gradient.values())
        share = sum(with_gradient[n].numel() for n in missing) / values
        last = list(with_gradient)[-1]
        if share > self.not_held and last not in missing:
            return None  # only a head is trained
        return fault(
            f"{_named(missing)} get a gradient, and no optimizer holds them",
            figure=len(missing),
            layer=missing[0].rpartition(".")[0],
            advice="Pass them to the optimizer, or set requires_grad=False",
        )

    def _moved(
        self,
        setup: Setup,
        copy: TrainingCopy,
        fresh: TrainingCopy,
        before: dict[str, Tensor],
        trained: dict[str, nn.Parameter],
    ) -> Answer:
        held = optimized(fresh)
        own = {n: p for n, p in parameter_names(fresh.model) if id(p) in held}
        stepped = [n for n in own if n in trained and _has_gradient(trained[n])]
        still = [n for n in stepped if torch.equal(own[n].detach(), before[n])]
        if still and len(still) == len(stepped):
            return _nothing_moved(fresh)
        wrong = (
            self._without_rate(fresh, still, trained)
            or _same_units(setup, copy, trained)
            or _zero_weights(copy.model, fresh.model)
        )
        if wrong is not None:
            return wrong
        if not stepped:
            return not_judged("no parameter has a gradient")
        text = f"{len(stepped)} of {len(trained)} trained parameters"
        if still:
            text += f"; {_named(still)} keep their values, as the step is below their precision"
        return fine(text, len(stepped))

    def _without_rate(
        self, fresh: TrainingCopy, still: list[str], trained: dict[str, nn.Parameter]
    ) -> Answer | None:
        """A fault if the rate of the last layer is 0, or of layers that are not most of them."""
        resting = set()
        for group in fresh.optimizer.param_groups:
            if float(group.get("lr", 1.0)) == 0.0:
                resting |= set(map(id, group["params"]))
        named = [name for name, p in parameter_names(fresh.model) if id(p) in resting]
        own = [name for name in named if name in still]
        moving = [n for n, p in trained.items() if _has_gradient(p) and n not in own]
        if not own or not moving:
            return None
        values = sum(trained[name].numel() for name in own)
        share = values / (values + sum(trained[name].numel() for name in moving))
        with_gradient = [n for n, p in trained.items() if _has_gradient(p)]
        if share > self.not_held and with_gradient[-1] not in own:
            return None  # only a head is trained
        return fault(
            f"one step does not change {_named(own)}: the learning rate of their group is 0",
            figure=0.0,
            layer=own[0].rpartition(".")[0],
            advice="Set the rate of that group, or set requires_grad=False",
        )


def _unused_outputs(seen: Pass, trained: dict[str, nn.Parameter], held: set[int]) -> Answer | None:
    """A fault if the network returns an output whose own layers the loss does not train."""
    outputs = [output for output in seen.outputs if output.requires_grad]
    if len(outputs) < 2:
        return None
    without = {n: p for n, p in trained.items() if p.grad is None and id(p) in held}
    if not without:
        return None
    for number, output in enumerate(outputs):
        found = torch.autograd.grad(
            output.sum(), list(without.values()), retain_graph=True, allow_unused=True
        )
        names = [n for n, g in zip(without, found, strict=True) if g is not None and g.any()]
        if names:
            return fault(
                f"output {number} of {len(outputs)} is not part of the loss: no gradient reaches "
                f"{_named(names)}, which only it trains",
                figure=len(names),
                layer=names[0].rpartition(".")[0],
                advice="Is the loss computed from the output that is meant? Add a loss of this "
                "one, or leave its layers out of the optimizer",
            )
    return None


def _never_called(
    setup: Setup, copy: TrainingCopy, trained: dict[str, nn.Parameter], held: set[int]
) -> Answer | None:
    """A fault if a layer that the optimizer holds is called for none of some batches."""
    unused = {n for n, p in trained.items() if p.grad is None and id(p) in held}
    called = set[str]()
    for number, batch in enumerate(setup.batches[:_BATCHES]):
        if not unused:
            return None
        small = first_samples(batch, setup.task, 16)
        for training in (None, False):  # layers may be dropped at random in training
            seen = setup.forward(copy, small, training=training, seed=number)
            called |= {call.name for call in seen.calls}
        inside = {name.rpartition(".")[0] for name in unused}
        # of a layer whose parent uses its weights, the parent is called
        unused = {n for n in unused if n.rpartition(".")[0] in inside - called}
    kinds = {clean_name(name): module for name, module in copy.model.named_modules()}
    layers = {n.rpartition(".")[0] for n in unused}
    plain = {name for name in layers if name in kinds and _is_layer(kinds[name])}
    if not plain:
        return None
    listed = sorted(plain)
    return fault(
        f"the optimizer holds {_named(listed)}, which forward() never calls",
        figure=len(listed),
        layer=listed[0],
        advice="Call it in forward(), or take it out of the network",
    )


def _is_layer(module: nn.Module) -> bool:
    """True for a layer of torch, whose weights only its own call uses."""
    return type(module).__module__.startswith("torch.nn.modules") and not list(module.children())


def _same_units(
    setup: Setup, copy: TrainingCopy, trained: dict[str, nn.Parameter]
) -> Answer | None:
    """A fault if all units of a layer have the same weights, and so after some steps."""
    with_gradient = {name for name, p in trained.items() if p.grad is not None}
    found = _layers_of_one_unit(copy.model) & with_gradient
    if not found:
        return None
    later = setup.trained(1.0, _STEPS, seconds=setup.remaining() / 4)
    alike = sorted(found & _layers_of_one_unit(later.copy.model))
    if not alike:
        return None
    layers = [name.rpartition(".")[0] for name in alike]
    return fault(
        f"all units of {_named(layers)} have the same weights, and so after "
        f"{len(later.losses)} steps",
        figure=len(layers),
        layer=layers[0],
        advice="Initialize them with random numbers: units that start the same stay the same",
    )


def _layers_of_one_unit(model: nn.Module) -> set[str]:
    """Weights, not zero, that are the same for all units of a layer."""
    found = set[str]()
    for name, weight in parameter_names(model):
        if weight.dim() < 2 or len(weight) < 2 or not bool(weight.any()):
            continue
        rows = weight.detach().flatten(1)
        if bool((rows - rows[:1]).abs().max() <= _SAME * rows.abs().max()):
            found.add(name)
    return found


def _unused_in_recurrent(
    model: nn.Module, trained: dict[str, nn.Parameter], held: set[int]
) -> Answer | None:
    """A fault if the output of a layer or a direction of a recurrent network is not used."""
    for name, module in model.named_modules():
        if not isinstance(module, nn.RNNBase):
            continue
        prefix = f"{clean_name(name)}.".lstrip(".")
        inputs = [f"{prefix}{n}" for n, _ in module.named_parameters() if "weight_ih" in n]
        own = [n for n in inputs if n in trained and id(trained[n]) in held]
        unused = [n for n in own if not _has_gradient(trained[n])]
        if unused and len(unused) < len(own):
            return fault(
                f"no gradient reaches {_named(unused)}: what that layer or direction of the "
                f"{type(module).__name__} computes is not used",
                figure=len(unused),
                layer=prefix.rstrip("."),
                advice="h_n holds one state per layer and direction: the last layer's are at its "
                "end, h_n[-1], or h_n[-2] and h_n[-1] with two directions",
            )
    return None


def _detached(seen: Pass, trained: dict[str, nn.Parameter], held: set[int]) -> Answer | None:
    """A fault if a trained layer only gets values that were detached from their graph."""
    with_graph = dict[int, str]()
    attached = set[nn.Module]()
    for call in seen.calls:
        if any(tensor.requires_grad for tensor in call.inputs):
            attached.add(call.module)
        for tensor in call.outputs:
            if tensor.requires_grad:
                with_graph.setdefault(_memory(tensor), call.name)
    for call in seen.calls:
        own = [p for p in call.module.parameters(recurse=False) if _has_gradient(p)]
        if call.module in attached or not any(id(p) in held for p in own):
            continue
        sources = [with_graph.get(_memory(tensor), "") for tensor in call.inputs]
        source = next(filter(None, sources), "")
        if source and "probe" not in call.name.lower():  # which shows what features hold
            return fault(
                f"{call.name} gets the output of {source} detached: its loss does not train "
                "what is before it",
                layer=call.name,
                advice="Leave out detach() or no_grad() between the two, unless it is on purpose",
            )
    return None


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _has_gradient(parameter: nn.Parameter) -> bool:
    return parameter.grad is not None and bool(parameter.grad.any())


def _outside(model: nn.Module, held: set[int]) -> str:
    """The attribute that holds layers which torch does not register, and which get a gradient."""
    registered = set(model.modules())
    for name, owner in model.named_modules():
        for attribute, value in vars(owner).items():
            if attribute.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            items = value.values() if isinstance(value, dict) else value
            for module in items:
                if not isinstance(module, nn.Module) or module in registered:
                    continue
                for parameter in module.parameters():
                    if parameter.grad is not None and id(parameter) not in held:
                        return f"{name}.{attribute}".lstrip(".")
    return ""


def _plain_tensors(model: nn.Module, held: set[int]) -> str:
    """The attribute that holds a tensor with a gradient which torch does not register."""
    registered = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    for name, owner in model.named_modules():
        for attribute, value in vars(owner).items():
            if attribute.startswith("_"):
                continue
            items = value if isinstance(value, (list, tuple)) else [value]
            for tensor in items:
                if not isinstance(tensor, Tensor) or not tensor.is_leaf or tensor.grad is None:
                    continue
                if id(tensor) not in held and id(tensor) not in registered:
                    return f"{name}.{attribute}".lstrip(".")
    return ""


def _nothing_moved(copy: TrainingCopy) -> Answer:
    rates = {float(group.get("lr", 0.0)) for group in copy.optimizer.param_groups}
    if rates == {0.0}:
        return fault(
            "one step changes no parameter: the learning rate is 0",
            figure=0.0,
            advice="Set a learning rate above 0",
        )
    return fault(
        "one step changes no parameter",
        figure=0.0,
        advice="The learning rate is too small for the precision of the weights, or the optimizer "
        "does not step",
    )


def _zero_weights(before: nn.Module, after: nn.Module) -> Answer | None:
    """A fault if the weights of several layers are zero, and were not changed by a step."""
    found = []
    modules = dict(after.named_modules())
    for name, module in before.named_modules():
        weight = getattr(module, "weight", None)
        other = getattr(modules.get(name), "weight", None)
        if not isinstance(weight, nn.Parameter) or not isinstance(other, nn.Parameter):
            continue
        if weight.dim() < 2 or not weight.requires_grad:
            continue
        if not bool(weight.any()) and not bool(other.any()):
            found.append(name)
    if len(found) < 2:
        return None
    return fault(
        f"all weights of {_named(found)} are zero, and stay so after a step",
        figure=len(found),
        layer=found[0],
        advice="Initialize them: with zeros, no gradient passes",
    )


def _finite(tensor: Tensor) -> bool:
    values: Any = tensor.coalesce().values() if tensor.is_sparse else tensor
    return bool(torch.isfinite(values).all())


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:_LISTED])
    more = len(listed) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _where_gradients_stop(seen: Pass, trained: dict[str, nn.Parameter], missing: list[str]) -> str:
    """The first layer with a gradient, if all that were called before it have none; else ""."""
    without = set(missing)
    layers: list[str] = []
    for call in seen.calls:
        own = [f"{call.name}.{n}" for n, _ in call.module.named_parameters(recurse=False)]
        own = [name.lstrip(".") for name in own if name.lstrip(".") in trained]
        if not own:
            continue
        if all(name in without for name in own):
            if layers:  # behind one that has a gradient: its output is not used
                return ""
            continue
        layers.append(call.name)
        if not any(name in without for name in own):
            return call.name if _called_before(seen, call.name, without) else ""
    return ""


def _called_before(seen: Pass, name: str, without: set[str]) -> bool:
    """True if a layer without gradients was called before a layer."""
    for call in seen.calls:
        if call.name == name:
            return False
        own = [f"{call.name}.{n}" for n, _ in call.module.named_parameters(recurse=False)]
        if any(parameter.lstrip(".") in without for parameter in own):
            return True
    return False


def held_by_others(parameters: dict[str, nn.Parameter], optimizer: Any) -> frozenset[str]:
    """Names of the parameters that another optimizer of this process holds."""
    by_identity = {id(parameter): name for name, parameter in parameters.items()}
    found = set[str]()
    for other in holding(by_identity.keys()):
        if other is optimizer:
            continue
        for group in other.param_groups:
            found |= {by_identity[id(p)] for p in group["params"] if id(p) in by_identity}
    return frozenset(found)
