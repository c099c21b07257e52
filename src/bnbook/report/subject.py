"""What is measured: a network, its loss and its batch, of which every pass takes a fresh copy; all that they hold, and what
of it has moved."""

from __future__ import annotations

import copy
import copyreg
import functools
import hashlib
import random
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.functional import Batch, Loss

# ---- All that a network, a loss and a batch hold, and what of it has moved -------------------------------------------


_BOXES = (list, tuple, deque, set, frozenset)
GENERATORS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
_ENDS = (str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.Size)


def reach(root: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name and value of all that can be reached from `root`: through modules, attributes, containers,
    closures of functions, the arguments that a function keeps, and own classes of modules."""
    seen: set[int] = set()
    todo = deque([(name, root)])
    while todo:
        name, value = todo.popleft()
        if not isinstance(value, _ENDS):
            if id(value) in seen:
                continue
            seen.add(id(value))
        yield name, value
        todo.extend((f"{name}.{key}" if name else key, each) for key, each in _inside(value))


def _inside(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (Tensor, np.ndarray, *_ENDS, types.ModuleType, torch.Generator)):
        return []
    if isinstance(value, torch.jit.ScriptModule):
        tensors = [*value.named_parameters(), *value.named_buffers()]
        return [*tensors, ("training", value.training), *_script_attributes(value)]
    if isinstance(value, nn.Module):
        own = [(k, v) for k, v in vars(value).items() if k not in ("_parameters", "_buffers", "_modules")]
        named = [
            (k, v) for box in ("_parameters", "_buffers", "_modules") for k, v in vars(value)[box].items()
        ]
        return named + own + _own_class(type(value)) + _globals(type(value))
    if isinstance(value, Mapping):
        return [(str(key), each) for key, each in value.items()]
    if isinstance(value, _BOXES):
        return [(str(k), each) for k, each in enumerate(value)]
    if isinstance(value, types.MethodType):
        return [("self", value.__self__)]
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        kept = [(name, cell.cell_contents) for name, cell in cells if _full(cell)]
        return kept + [(f"argument {k}", each) for k, each in enumerate(value.__defaults__ or ())]
    if isinstance(value, (type, *GENERATORS)):
        return []
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    return [
        *getattr(value, "__dict__", {}).items(),
        *((s, getattr(value, s)) for s in slots if hasattr(value, s)),
    ]


def _full(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _own_class(kind: type) -> list[tuple[str, Any]]:
    """Numbers, tensors and containers that hang on a network's own class, not on its instance."""
    own = [each for each in kind.__mro__ if each.__module__.partition(".")[0] not in ("torch", "builtins")]
    return [
        (f"{each.__name__}.{name}", value)
        for each in own
        for name, value in vars(each).items()
        if not name.startswith("__") and isinstance(value, (int, float, list, dict, set, Tensor, np.ndarray))
    ]


def _globals(kind: type) -> list[tuple[str, Any]]:
    """Numbers, tensors, containers and random generators that the methods of an own class name from outside of it."""
    own = [
        each
        for each in kind.__mro__
        if each.__module__.partition(".")[0] not in ("torch", "builtins", "bnbook")
    ]
    functions = [f for each in own for f in vars(each).values() if isinstance(f, types.FunctionType)]
    kinds = (int, float, list, dict, set, Tensor, np.ndarray, *GENERATORS)
    return [
        (f"{function.__module__}.{name}", function.__globals__[name])
        for function in functions
        for name in function.__code__.co_names
        if isinstance(function.__globals__.get(name), kinds)
    ]


def _script_attributes(module: torch.jit.ScriptModule) -> list[tuple[str, Any]]:
    names = [
        name for name in dir(module) if not name.startswith("_") and name not in dir(torch.jit.ScriptModule)
    ]
    kinds = (int, float, str, list, dict)
    return [(n, getattr(module, n)) for n in names if isinstance(getattr(module, n, None), kinds)]


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
    if isinstance(value, _ENDS):
        return value if value == value else "nan"
    if isinstance(value, torch.Generator):
        return _hash(value.get_state())
    if isinstance(value, random.Random):
        return hash(value.getstate())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state(legacy=False))
    if isinstance(value, (Mapping, *_BOXES)):
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
    """Names that appeared, went or changed."""
    return [name for name in {**before, **after} if before.get(name, "absent") != after.get(name, "absent")]


def random_states(generators: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Of torch, of every CUDA device in use, of NumPy and of Python, and of further generators."""
    cuda = (
        torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    )
    return (
        torch.get_rng_state(),
        cuda,
        np.random.get_state(),
        random.getstate(),
        [_get(g) for g in generators],
    )


def _get(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return (generator.getstate if isinstance(generator, random.Random) else generator.get_state)()


def _set(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        (generator.setstate if isinstance(generator, random.Random) else generator.set_state)(state)


def set_random_states(states: tuple[Any, ...], generators: Sequence[Any] = ()) -> None:
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state_all(states[1])
    np.random.set_state(states[2])
    random.setstate(states[3])
    for generator, state in zip(generators, states[4], strict=bool(generators)):
        _set(generator, state)


# ---- A network, its loss and its batch -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Twin:
    """One copy, for one pass."""

    network: nn.Module
    loss: Loss
    inputs: Tensor
    targets: Tensor
    pick: Callable[[Any], Any]

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

    Nothing ever runs on the network itself: `twin` gives a deep copy of network, loss and batch, with the
    random states of torch, CUDA, NumPy, Python and all generators that it reaches set back, so that every pass
    starts from the same state and is the network's own pass, forwards and backwards. A loss or a hook
    that reaches the network through its closure or by a global name reaches the copy in its place.
    """

    network: nn.Module
    loss: Loss
    batch: Batch
    output: int | str | None = None
    shared: dict[int, Any] = field(default_factory=dict)  # what cannot be copied, by its id
    by_backward: bool = False  # whether gradients come by .backward() alone (reentrant checkpoints)
    double: bool = False

    def __post_init__(self) -> None:
        self.outside = [v for _, v in reach((self.network, self.loss)) if isinstance(v, GENERATORS)]
        self.states = random_states(self.outside)
        self.parameters = {n: p.detach() for n, p in self.network.named_parameters() if p.requires_grad}
        self.shared = _uncopied(self.network, self.loss)

    def marks(self) -> dict[str, Any]:
        return marks(("", self.network), ("the loss", self.loss), ("the batch", self.batch))

    @contextmanager
    def twin(self, changed: Mapping[str, Tensor] | None = None) -> Iterator[Twin]:
        """A fresh copy with some parameters changed; in its context the random states are the subject's."""
        outside = random_states(self.outside)
        with ExitStack() as stack:
            stack.callback(set_random_states, outside, self.outside)
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(_uncompiled())
            memo = dict(self.shared)
            network = _copied(self.network, memo)
            _rebind_inside(network, memo)
            loss = _rebound(self.loss, memo)
            inputs, targets = (copy.deepcopy(each.detach()) for each in self.batch)
            if self.double:
                network, inputs = network.double(), _wide(inputs)
                loss = loss.double() if isinstance(loss, nn.Module) else loss
                targets = _wide(targets)
            for name, parameter in network.named_parameters() if changed else ():
                if name in changed:
                    parameter.data = changed[name].detach().clone().to(parameter.dtype)
            set_random_states(self.states, self.outside)
            yield Twin(network, loss, inputs, targets, self._pick)

    def gradient(
        self, changed: Mapping[str, Tensor] | None = None, wanted: Sequence[str] | None = None
    ) -> tuple[Tensor, dict[str, Tensor | None]]:
        """L(θ), (), float64, and its gradient by the wanted parameters (all); None where it is not reached."""
        with self.twin(changed) as twin:
            named = dict(twin.network.named_parameters())
            names = list(self.parameters) if wanted is None else list(wanted)
            value = twin.value()
            found = self.differentiate(value, [named[name] for name in names])
        return value.detach().double(), dict(zip(names, found, strict=True))

    def differentiate(self, value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
        if not self.by_backward:
            return [dense(g) for g in torch.autograd.grad(value, leaves, allow_unused=True)]
        value.backward()
        return [dense(leaf.grad) for leaf in leaves]

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


def one_line(error: BaseException) -> str:
    """What somebody else's code complains of: its kind, and the first line of its words."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside data parallel, distributed and compiled wrappers."""
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif _is_compiled(model):
            model = model._orig_mod
        else:
            return model


def _is_compiled(module: nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule"


@contextmanager
def watched(subject: Subject, before: Mapping[str, Any], touched: list[str]) -> Iterator[None]:
    """Put down what of the network itself moves within, beside its marks before; its gradients are put aside."""
    kept = [(p, p.grad) for p in subject.network.parameters()]
    try:
        for parameter, _ in kept:
            parameter.grad = None
        yield
        touched += [
            f"the gradient of {name}" for name, p in subject.network.named_parameters() if p.grad is not None
        ]
    finally:
        for parameter, gradient in kept:
            parameter.grad = gradient
    touched += moved(before, subject.marks())


def _copied(network: nn.Module, memo: dict[int, Any]) -> nn.Module:
    with torch.no_grad():  # torch copies a scripted module's tensors by an operation that has a gradient
        _copy_modules(network, memo)
        found = copy.deepcopy(network, memo)
    for one, other in zip(network.parameters(), found.parameters(), strict=True):
        other.requires_grad_(one.requires_grad)
        for name, value in vars(one).items():  # what its owner wrote on it, which torch's copy leaves out
            setattr(other, name, copy.deepcopy(value, memo))
    return found


class _Eager(nn.Module):
    """A copy of a compiled part, as it was written: torch's own would run what it was compiled from."""

    def __init__(self, compiled: nn.Module, memo: dict[int, Any]) -> None:
        super().__init__()
        self.training, self._orig_mod = compiled.training, copy.deepcopy(compiled._orig_mod, memo)
        hooks = {k: copy.deepcopy(v, memo) for k, v in vars(compiled).items() if k.endswith("_hooks")}
        vars(self).update(hooks)

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name) if name == "_orig_mod" else getattr(self._orig_mod, name)

    def forward(self, *given: Any, **more: Any) -> Any:
        return self._orig_mod(*given, **more)


def _copy_modules(network: nn.Module, memo: dict[int, Any]) -> None:
    """What a deep copy does with plain modules, whose dozens of attributes it takes slowly, in a third of the time."""
    plain = [module for module in network.modules() if _is_plain(type(module)) and id(module) not in memo]
    for module in plain:
        memo[id(module)] = type(module).__new__(type(module))
    for module in network.modules():
        if _is_compiled(module) and id(module) not in memo:
            memo[id(module)] = _Eager(module, memo)
    for module in reversed(plain):  # children first: what wraps one may ask it for its mode
        state = {}
        for key, value in vars(module).items():
            if type(value) in (dict, OrderedDict):
                memo[id(value)] = state[key] = type(value)()
                for k, each in value.items():
                    state[key][k] = copy.deepcopy(each, memo)
            elif key != "_compiled_call_impl":  # which torch leaves out, too
                state[key] = value if type(value) in _ATOMS else copy.deepcopy(value, memo)
        vars(memo[id(module)]).update(state)


_ATOMS = (type(None), bool, int, float, str)


@functools.cache
def _is_plain(kind: type[nn.Module]) -> bool:
    """Whether a copy of such a module is one of its attributes, no more: nobody but torch says how it is copied."""
    said = [
        getattr(kind, name, None) for name in ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__")
    ]
    of_torch = all(
        getattr(each, "__module__", "torch.nn.modules").startswith("torch.nn.modules") for each in said
    )
    return of_torch and not hasattr(kind, "__deepcopy__") and not copyreg._slotnames(kind)


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Compiled functions run as they were written: copies would be compiled anew at each pass."""
    import sys

    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _wide(values: Tensor) -> Tensor:
    return values.double() if values.is_floating_point() else values


def _uncopied(network: nn.Module, loss: Loss) -> dict[int, Any]:
    """What a deep copy takes as it is: tensors inside a graph without their graph, locks and the like themselves."""
    memo: dict[int, Any] = {}
    for _, value in reach((network, loss)):
        if isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
    try:
        copy.deepcopy(network, dict(memo))
    except KeyboardInterrupt:
        raise
    except Exception:
        for _, value in reach(network):
            if not isinstance(value, (nn.Module, dict, list, tuple, set)) and not _copies(value, memo):
                memo[id(value)] = value
    return memo


def _copies(value: Any, memo: dict[int, Any]) -> bool:
    if isinstance(value, Tensor):
        return True
    try:
        copy.deepcopy(value, dict(memo))
    except Exception:
        return False
    return True


def _rebind_inside(network: nn.Module, memo: dict[int, Any]) -> None:
    """Functions that hang on a copied network (hooks, a replaced forward) reach the copy, too."""
    for module in network.modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for key, value in vars(module).items():
            if isinstance(value, types.FunctionType):
                vars(module)[key] = _rebound(value, memo)
            elif isinstance(value, dict) and value and key.endswith("_hooks"):
                for k, each in value.items():
                    value[k] = _rebound(each, memo)


def _rebound(function: Any, memo: dict[int, Any]) -> Any:
    """A copy of a function whose closure, kept arguments and global names lead to copies; other callables as
    deep copies."""
    if not isinstance(function, types.FunctionType):
        try:
            return copy.deepcopy(function, memo)
        except Exception:
            return function
    kept = memo.get(id(function))
    if isinstance(kept, types.FunctionType) and kept is not function:
        return kept

    def copied(value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            return _rebound(value, memo)
        try:
            return copy.deepcopy(value, memo)
        except Exception:
            return value

    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    reached = {
        n: memo[id(v)] for n, v in function.__globals__.items() if id(v) in memo and n in _names(function)
    }
    around = {**function.__globals__, **reached} if reached else function.__globals__
    made = types.FunctionType(function.__code__, around, function.__name__, None, cells or None)
    memo[id(function)] = made
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not filled yet
            cell.cell_contents = copied(old.cell_contents)
    made.__defaults__ = copied(function.__defaults__)
    made.__kwdefaults__ = copied(function.__kwdefaults__)
    made.__dict__.update(function.__dict__)
    return made


def _names(function: types.FunctionType) -> set[str]:
    """Global names that a function or one written inside it speaks of."""
    todo, names = [function.__code__], set()
    while todo:
        code = todo.pop()
        names |= set(code.co_names)
        todo += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return names
