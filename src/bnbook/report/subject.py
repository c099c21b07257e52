"""What is measured: a network, its loss and its batch, of which every pass takes a fresh copy; all that they hold, and what
of it has moved."""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.copies import BOXES, ENDS, Copies, is_compiled, reach
from bnbook.probes.functional import Batch, Loss

# ---- All that a network, a loss and a batch hold, and what of it has moved -------------------------------------------


def marks(*roots: tuple[str, Any]) -> dict[str, Any]:
    """Name -> a mark of each value: of a tensor its bytes' hash, of a random generator its state."""
    found: dict[str, Any] = {}
    for name, root in roots:
        for path, value in reach(root, name):
            mark = _mark(value)
            found[path] = mark
            if isinstance(value, Tensor) and value.is_leaf and value.grad is not None:
                found[f"{path}.grad"] = _mark(value.grad)
    return found


def _mark(value: Any) -> Any:
    if isinstance(value, Tensor):
        return "tensor", tuple(value.shape), value.dtype, value.requires_grad, _hash(value)
    if isinstance(value, np.ndarray):
        return "array", value.shape, _bytes_hash(value)
    if isinstance(value, ENDS):
        return value if value == value else "nan"
    if isinstance(value, torch.Generator):
        return _hash(value.get_state())
    if isinstance(value, random.Random):
        return hash(value.getstate())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state(legacy=False))
    if isinstance(value, (Mapping, *BOXES)):
        with suppress(Exception):  # somebody's own container
            return type(value).__name__, len(value)
    return type(value).__name__


def _hash(tensor: Tensor) -> Any:
    try:
        values = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        return _bytes_hash(values.numpy())
    except (RuntimeError, NotImplementedError, TypeError):  # no bytes: on the meta device, sparse, quantized
        return tensor._version


def _bytes_hash(array: np.ndarray) -> Any:
    if array.dtype.hasobject:
        return repr(array)
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()


def moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Names that appeared, went or changed; a layer of Keras lists its parameters for torch when it is first asked for them."""
    named = (name for name in {**before, **after} if name in before or "._torch_params" not in name)
    return [name for name in named if before.get(name, "absent") != after.get(name, "absent")]


# ---- A network, its loss and its batch -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Twin:
    """One copy, for one pass."""

    network: nn.Module
    loss: Loss
    inputs: Tensor
    targets: Tensor
    pick: Callable[[Any], Any]
    names: Sequence[str]  # of the parameters, in the original

    @property
    def parameters(self) -> dict[str, Tensor]:
        return dict(zip(self.names, self.network.parameters(), strict=True))

    def outputs(self, inputs: Tensor | None = None) -> Any:
        with _no_exit("network"):
            return self.pick(self.network(self.inputs if inputs is None else inputs))

    def value(self) -> Tensor:
        """L, ()."""
        return self.reduced(self.outputs())

    def reduced(self, outputs: Any) -> Tensor:
        with _no_exit("loss"):
            found = self.loss(outputs, self.targets)
        if not isinstance(found, Tensor) or found.dim():
            kind = (
                f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"type {type(found).__name__}"
            )
            raise BnbookError(f"a loss of {kind}; expected one number; reduce it by mean or sum")
        return found


@contextmanager
def _no_exit(what: str) -> Iterator[None]:
    try:
        yield
    except SystemExit as error:
        raise BnbookError(f"the {what} ends the program in a pass (sys.exit({error.code!r}))") from error


@dataclass
class Subject:
    """A network in the mode that it is in, its loss and a batch.

    Nothing ever runs on the network itself: `twin` gives a copy of network, loss and batch as
    `bnbook.probes.copies.Copies` makes it.
    """

    network: nn.Module
    loss: Loss
    batch: Batch
    output: int | str | None = None
    by_backward: bool = False  # whether gradients come by .backward() alone (reentrant checkpoints)
    double: bool = False

    def __post_init__(self) -> None:
        self.owner, self.network = self.network, _with_layers(self.network)
        self.copies = Copies(self.network, self.loss)
        self.parameters = {n: p.detach() for n, p in self.network.named_parameters() if p.requires_grad}

    def marks(self) -> dict[str, Any]:
        return marks(("", self.owner), ("the loss", self.loss), ("the batch", self.batch))

    @contextmanager
    def twin(self, changed: Mapping[str, Tensor] | None = None) -> Iterator[Twin]:
        """A fresh copy with some parameters changed; in its context the random states are the subject's."""
        with self.copies.fresh() as [network, loss]:
            _registered(network)
            inputs, targets = (copy.deepcopy(each.detach()) for each in self.batch)
            if self.double:
                network, inputs = network.double(), _wide(inputs)
                loss = loss.double() if isinstance(loss, nn.Module) else loss
                targets = _wide(targets)
            names = [name for name, _ in self.network.named_parameters()]  # a copy may name them anew
            for name, parameter in zip(names, network.parameters(), strict=True) if changed else ():
                if name in changed:
                    parameter.data = changed[name].detach().clone().to(parameter.dtype)
            yield Twin(network, loss, inputs, targets, self._pick, names)

    def gradient(
        self, changed: Mapping[str, Tensor] | None = None, wanted: Sequence[str] | None = None
    ) -> tuple[Tensor, dict[str, Tensor | None]]:
        """L(θ), (), float64, and its gradient by the wanted parameters (all); None where it is not reached."""
        with self.twin(changed) as twin:
            named = twin.parameters
            names = list(self.parameters) if wanted is None else list(wanted)
            value = twin.value()
            found = self.differentiate(value, [named[name] for name in names])
        return value.detach().double(), dict(zip(names, found, strict=True))

    def __call__(self, changed: Mapping[str, Tensor], wanted: Sequence[str]) -> tuple[Tensor, list[Tensor]]:
        """As `bnbook.probes.functional.LossAt`, whose place it takes in the probes: zeros where nothing is reached."""
        loss, found = self.gradient(changed, wanted)
        return loss, [torch.zeros_like(self.parameters[n]) if g is None else g for n, g in found.items()]

    def differentiate(self, value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
        if not self.by_backward:
            return [dense(g) for g in torch.autograd.grad(value, leaves, allow_unused=True)]
        value.backward()
        return [dense(leaf.grad) for leaf in leaves]

    def on(self, batch: Batch) -> Subject:
        """The same on another batch."""
        found = copy.copy(self)
        found.batch = batch
        return found

    def in_double(self) -> Subject:
        """The same in 64 bits, where it can be."""
        found = copy.copy(self)
        found.double = True
        return found

    def _pick(self, outputs: Any) -> Any:
        if self.output is None:
            return outputs
        if isinstance(outputs, Tensor):  # whose entries are examples
            raise BnbookError(
                f"output {self.output!r} of {described(outputs)}; expected none, there is but one"
            )
        try:
            if isinstance(self.output, str) and not isinstance(outputs, Mapping):
                return getattr(outputs, self.output)
            return outputs[self.output]
        except (KeyError, IndexError, AttributeError, TypeError):
            raise BnbookError(f"no output {self.output!r} in {described(outputs)}") from None


def _with_layers(network: nn.Module) -> nn.Module:
    """The network; where there are models of Keras in it, a copy, whose parameters have the names that a further copy has."""
    return _registered(copy.deepcopy(network)) if any(map(_of_keras, network.modules())) else network


def _of_keras(module: nn.Module) -> bool:
    return hasattr(module, "_flatten_layers")


def _registered(network: nn.Module) -> nn.Module:
    """The same, in which torch sees the layers of models of Keras, which these keep in lists of their own."""
    for model in [each for each in network.modules() if _of_keras(each)]:
        for layer in model._flatten_layers(include_self=False):
            if layer not in model._modules.values():
                model._modules.setdefault(layer.name, layer)
    return network


def dense(gradient: Tensor | None) -> Tensor | None:
    """Embeddings may give a sparse one."""
    return gradient if gradient is None or gradient.layout == torch.strided else gradient.to_dense()


def part(network: nn.Module, name: str) -> nn.Module:
    """As `get_submodule`, which scripted modules lack."""
    return dict(network.named_modules())[name]


def described(outputs: Any) -> str:
    """What a network gives, in words."""
    if isinstance(outputs, Tensor):
        if not outputs.dim():
            return "a single number"
        return f"a tensor {tuple(outputs.shape)}{' of complex numbers' if outputs.is_complex() else ''}"
    if isinstance(outputs, Mapping):
        parts = [f"{key}: {described(each)}" for key, each in outputs.items()]
    elif isinstance(outputs, (tuple, list)):
        parts = [described(each) for each in outputs]
    else:
        parts = [
            f"{k}: {described(v)}"
            for k, v in getattr(outputs, "__dict__", {}).items()
            if isinstance(v, Tensor)
        ]
    return (
        f"a {type(outputs).__name__} of {len(parts)} ({', '.join(parts[:4])})"
        if parts
        else f"a {type(outputs).__name__}"
    )


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside data parallel, distributed and compiled wrappers."""
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif is_compiled(model):
            model = model._orig_mod
        else:
            return model


@contextmanager
def watched(subject: Subject, before: Mapping[str, Any], touched: list[str]) -> Iterator[None]:
    """Put down what of the network itself moves within, beside its marks before; its gradients are put aside."""
    kept = [(p, p.grad) for p in subject.owner.parameters()]
    try:
        for parameter, _ in kept:
            parameter.grad = None
        yield
        touched += [
            f"the gradient of {name}" for name, p in subject.owner.named_parameters() if p.grad is not None
        ]
    finally:
        for parameter, gradient in kept:
            parameter.grad = gradient
    touched += moved(before, subject.marks())


def _wide(values: Tensor) -> Tensor:
    return values.double() if values.is_floating_point() else values
