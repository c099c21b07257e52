"""What is measured: a network, its loss and its batch, of which every pass takes a fresh copy; and what of them has moved."""

from __future__ import annotations

import copy
import gc
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from bnbook.errors import BnbookError
from bnbook.probes.copies import BOXES, ENDS, GENERATORS, Copies, is_compiled, random_states, reach
from bnbook.probes.functional import Batch, Loss

Prepare = Callable[[nn.Module], object]  # puts a copy into the state that is asked about
Changed = (
    Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]
)  # parameters by name; pairs are made one at a time


@dataclass(frozen=True)
class Twin:
    """One copy, for one pass."""

    subject: Subject
    network: nn.Module
    loss: Loss
    inputs: Tensor
    targets: Tensor
    parameters: dict[str, Tensor]  # under their names in the original

    def outputs(self, inputs: Tensor | None = None) -> Any:
        given = self.inputs if inputs is None else inputs.to(self.inputs.dtype)
        with _no_exit("network"):
            return self.subject.pick(self.network(given))

    def value(self) -> Tensor:
        """L, ()."""
        return self.reduced(self.outputs())

    def reduced(self, outputs: Any) -> Tensor:
        with _no_exit("loss"), _Widened() if self.subject.double else nullcontext():
            found = self.loss(outputs, self.targets)
        if isinstance(found, Tensor) and not found.dim():
            return found
        kind = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"type {type(found).__name__}"
        raise BnbookError(f"a loss of {kind}; expected one number; reduce it by mean or sum")


@contextmanager
def _no_exit(what: str) -> Iterator[None]:
    try:
        yield
    except SystemExit as error:
        raise BnbookError(f"the {what} ends the program in a pass (sys.exit({error.code!r}))") from error


class _Widened(TorchFunctionMode):
    """Numbers of 32 bits are taken as such of 64, whatever a loss keeps: weights of classes, a second network."""

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(lambda v: _wide(v) if isinstance(v, Tensor) else v, (args, kwargs or {}))
        return function(*args, **kwargs)


def _wide(values: Tensor) -> Tensor:
    return values.double() if values.is_floating_point() else values


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
    double: bool = False  # whether a copy runs in 64 bits

    def __post_init__(self) -> None:
        self.owner, self.network = self.network, _with_layers(self.network)
        self.copies = Copies(self.network, self.loss)
        self.parameters = {n: p.detach() for n, p in self.network.named_parameters() if p.requires_grad}

    def but(self, **changed: Any) -> Subject:
        """The same on another `batch`, or in 64 bits (`double`), where it can be."""
        found = copy.copy(self)
        vars(found).update(changed)
        return found

    @contextmanager
    def twin(
        self, prepare: Prepare | None = None, *, changed: Changed = (), before: Callable | None = None,
        behind: Callable | None = None, names: Iterable[str] | None = None,
    ) -> Iterator[Twin]:  # fmt: skip
        """A fresh copy in a state, with some parameters changed; in its context the random states are the subject's. Of the
        modules of these names (all) is looked at what they get, before(name, module, got, more), and what they give,
        behind(name, module, got, gave)."""
        with self.copies.fresh() as [network, loss], ExitStack() as looks:
            _registered(network)
            inputs, targets = (copy.deepcopy(each.detach()) for each in self.batch)
            if self.double:
                network, inputs, targets = network.double(), _wide(inputs), _wide(targets)
            known = [name for name, _ in self.network.named_parameters()]  # a copy may name them anew
            own = dict(zip(known, network.parameters(), strict=True))
            for name, value in changed.items() if isinstance(changed, Mapping) else changed:
                if name in own:
                    own[name].data.copy_(value)
            if prepare:
                prepare(network)
            modules = dict(network.named_modules())
            for name in (modules if names is None else names) if before or behind else ():
                bound = (look and partial(look, name) for look in (before, behind))
                for hook in watch(
                    modules[name], *bound
                ):  # what they hold keeps the copy until its circle is found
                    looks.callback(hook.remove)
            yield Twin(self, network, loss, inputs, targets, own)

    def run(
        self, prepare: Prepare | None = None, *, inputs: Tensor | None = None, grad: bool = True, **look: Any
    ) -> Any:
        """What a copy gives in a state, for inputs (the batch's); look: as in `twin`."""
        with self.twin(prepare, **look) as twin, nullcontext() if grad else torch.no_grad():
            return twin.outputs(inputs)

    def gradient(
        self, changed: Changed = (), wanted: Sequence[str] | None = None
    ) -> tuple[Tensor, dict[str, Tensor | None]]:
        """L(θ), (), and its gradient by the wanted parameters (all); None where it is not reached."""
        with self.twin(changed=changed) as twin:
            names = list(self.parameters) if wanted is None else list(wanted)
            value = twin.value()
            found = self.differentiate(value, [twin.parameters[name] for name in names])
        return value.detach(), dict(zip(names, found, strict=True))

    def __call__(self, changed: Changed, wanted: Sequence[str]) -> tuple[Tensor, list[Tensor]]:
        """As `bnbook.probes.functional.LossAt`, whose place it takes in the probes: zeros where nothing is reached."""
        loss, found = self.gradient(changed, wanted)
        return loss.double(), [self.filled(name, g) for name, g in found.items()]

    def filled(self, name: str, gradient: Tensor | None) -> Tensor:
        return torch.zeros_like(self.parameters[name]) if gradient is None else gradient

    def differentiate(self, value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
        if not self.by_backward:
            return [dense(g) for g in torch.autograd.grad(value, leaves, allow_unused=True)]
        value.backward()
        return [dense(leaf.grad) for leaf in leaves]

    def value(self, changed: Changed = ()) -> Tensor:
        """L(θ), ()."""
        with self.twin(changed=changed) as twin:
            return twin.value().detach()

    def pick(self, outputs: Any) -> Any:
        """The output that is asked for."""
        if self.output is None:
            return outputs
        if isinstance(outputs, Tensor):  # whose entries are examples
            raise BnbookError(
                f"output {self.output!r} of {described(outputs)}; expected none, there is but one"
            )
        try:
            named = isinstance(self.output, str) and not isinstance(outputs, Mapping)
            return getattr(outputs, self.output) if named else outputs[self.output]
        except (KeyError, IndexError, AttributeError, TypeError):
            raise BnbookError(f"no output {self.output!r} in {described(outputs)}") from None

    def marks(self) -> dict[str, Any]:
        """Name -> a mark of each value that network, loss and batch reach."""
        found: dict[str, Any] = {}
        for name, root in (("", self.owner), ("the loss", self.loss), ("the batch", self.batch)):
            for path, value in reach(root, name):
                found[path] = _mark(value)
                if isinstance(value, Tensor) and value.is_leaf and value.grad is not None:
                    found[f"{path}.grad"] = _mark(value.grad)
        return found


# ---- Of modules, names and outputs -----------------------------------------------------------------------------------


def watch(module: nn.Module, before: Callable | None, behind: Callable | None) -> Iterator[Any]:
    """Hooks that only look; a module inside a scripted one runs unseen, and so does one on tensors inside torch.func.vmap or
    grad, which hold no values that can be kept."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor

    def seen(look: Callable) -> Callable:
        inside = lambda given: any(isinstance(v, Tensor) and wrapped(v) for v in tree_leaves(given))
        return lambda m, *given: None if inside(given) else look(m, *given) and None

    with suppress(RuntimeError, AttributeError):
        if before:
            yield module.register_forward_pre_hook(seen(before), with_kwargs=True)
        if behind:
            yield module.register_forward_hook(seen(behind))


def _with_layers(network: nn.Module) -> nn.Module:
    """The network; where there are models of Keras in it, a copy, whose parameters have the names that a further copy has."""
    keras = any(hasattr(each, "_flatten_layers") for each in network.modules())
    return _registered(copy.deepcopy(network)) if keras else network


def _registered(network: nn.Module) -> nn.Module:
    """The same, in which torch sees the layers of models of Keras, which these keep in lists of their own."""
    for model in [each for each in network.modules() if hasattr(each, "_flatten_layers")]:
        for layer in model._flatten_layers(include_self=False):
            if layer not in model._modules.values():
                model._modules.setdefault(layer.name, layer)
    return network


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside data parallel, distributed and compiled wrappers."""
    while isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)) or is_compiled(model):
        model = model._orig_mod if is_compiled(model) else model.module
    return model


def in_half(network: nn.Module) -> bool:
    return any(p.dtype in (torch.float16, torch.bfloat16) for p in network.parameters())


def part(network: nn.Module, name: str) -> nn.Module:
    """As `get_submodule`, which scripted modules lack."""
    for key in name.split(".") if name else ():
        network = network._modules[key]
    return network


def dense(gradient: Tensor | None) -> Tensor | None:
    """Embeddings may give a sparse one."""
    return gradient if gradient is None or gradient.layout == torch.strided else gradient.to_dense()


def some(names: Sequence[str]) -> str:
    """Three of them, such as `1`, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"`{name}`" if name else "the network's own code" for name in names[:3]) + more


def worst(sizes: Mapping[str, float]) -> str:
    """The layer with the largest number, and of how many it is the worst."""
    most = max(sizes, key=sizes.__getitem__)
    others = f" (the worst of {len(sizes)}: {some([*sizes])})" if len(sizes) > 1 else ""
    return f"{'layer ' if most else ''}{some([most])}{others}"


def by_channel(x: Tensor) -> Tensor:
    """Of images their up to four channels, (C, values), float64; of other inputs all values, (1, values)."""
    x = x.detach().double()
    return x.transpose(0, 1).flatten(1) if x.dim() > 2 and x.shape[1] <= 4 else x.reshape(1, -1)


def scaling(channels: Tensor) -> str:
    """Mean and standard deviation of each channel, in words."""
    both = channels.mean(1), channels.std(1, correction=0)
    mean, spread = (", ".join(f"{v:.3g}" for v in each.tolist()) for each in both)
    return f"mean {mean} and standard deviation {spread}{' by channel' * (len(channels) > 1)}"


def described(outputs: Any) -> str:
    """What a network gives, in words."""
    if isinstance(outputs, Tensor):
        numbers = f"a tensor {tuple(outputs.shape)}" + " of complex numbers" * outputs.is_complex()
        return numbers if outputs.dim() else "a single number"
    kind, listed = f"a {type(outputs).__name__}", isinstance(outputs, (tuple, list))
    if not listed and not isinstance(outputs, Mapping):
        outputs = {k: v for k, v in getattr(outputs, "__dict__", {}).items() if isinstance(v, Tensor)}
    named = [("", each) for each in outputs] if listed else [(f"{k}: ", v) for k, v in outputs.items()]
    parts = [name + described(each) for name, each in named]
    return f"{kind} of {len(parts)} ({', '.join(parts[:4])})" if parts else kind


# ---- What has moved --------------------------------------------------------------------------------------------------


def _mark(value: Any) -> Any:
    """Of a tensor its bytes' hash, of a random generator its state, of a container its length."""
    if isinstance(value, Tensor):
        try:
            held = _hash(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        except (RuntimeError, TypeError):  # no bytes: on the meta device, sparse, quantized
            held = value._version
        return tuple(value.shape), value.dtype, value.requires_grad, held
    if isinstance(value, np.ndarray):
        return value.shape, repr(value) if value.dtype.hasobject else _hash(np.ascontiguousarray(value))
    if isinstance(value, ENDS):
        return value if value == value else "nan"
    if isinstance(value, GENERATORS):
        state = random_states([value])[-1][0]
        return _hash(pickle.dumps(state.tolist() if isinstance(state, Tensor) else state))
    if isinstance(value, (Mapping, *BOXES)):
        with suppress(Exception):  # somebody's own container
            return type(value).__name__, len(value)
    return type(value).__name__


def _hash(values: np.ndarray | bytes) -> str:
    held = values if isinstance(values, bytes) else values.tobytes()
    return hashlib.blake2b(held, digest_size=16).hexdigest()


def moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Names that appeared, went or changed; a layer of Keras lists its parameters for torch when it is first asked for them."""
    named = (name for name in {**before, **after} if name in before or "._torch_params" not in name)
    return [name for name in named if before.get(name, "absent") != after.get(name, "absent")]


@contextmanager
def watched(subject: Subject, before: Mapping[str, Any], touched: list[str]) -> Iterator[None]:
    """Put down what moves within beside the copies: what modules hold that run and were there before, which is as before
    afterwards, and all else that the subject reaches, beside its marks before."""
    there = [each for each in gc.get_objects() if issubclass(type(each), nn.Module)]
    known, ran = {*map(id, there)}, {}

    def aside(parameters: Iterable[Tensor]) -> list[tuple[Tensor, Tensor | None]]:
        kept = [(p, p.grad) for p in parameters]
        for parameter, _ in kept:
            parameter.grad = None
        return kept

    def enter(module: nn.Module, _got: tuple) -> None:
        if id(module) in known and id(module) not in ran:
            whole = isinstance(module, torch.jit.ScriptModule)  # whose parts run unseen
            buffers = [(n, b, _mark(b), b.clone()) for n, b in module.named_buffers(recurse=whole)]
            ran[id(module)] = module, buffers, aside(module.parameters(recurse=whole))

    own, hook = aside(subject.owner.parameters()), register_module_forward_pre_hook(enter)
    try:
        yield
    finally:
        hook.remove()
        for module, buffers, gradients in [*ran.values(), (subject.owner, [], own)]:
            of = type(module).__name__
            touched += [f"a gradient in a {of}"] * any(p.grad is not None for p, _ in gradients)
            for parameter, gradient in gradients:
                parameter.grad = gradient
            for name, buffer, mark, held in buffers:
                if _mark(dict(module.named_buffers())[name]) != mark:
                    touched.append(f"{name} of a {of}")
                    buffer.data.copy_(held)
                    if not isinstance(module, torch.jit.ScriptModule):
                        module._buffers[name] = buffer
    touched += moved(before, subject.marks())
