"""Copies of a network, with its loss, on which a probe runs: whatever a pass moves, moves in the copy."""

from __future__ import annotations

import copy
import copyreg
import functools
import random
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError

GENERATORS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
_ATOMS = (type(None), bool, int, float, str)
ENDS = (*_ATOMS, bytes, complex, torch.dtype, torch.device, torch.Size)
BOXES = (list, tuple, deque, set, frozenset)


class Copies:
    """Fresh copies of a network and of functions that are called beside it, such as its loss.

    Nothing ever runs on the network itself. A copy is deep: what the network, its hooks and the functions hold, by an
    attribute, a closure, a kept argument, or a module by a global name, is in it once, as it is in the original. The
    random states of torch, CUDA, NumPy and Python, and of generators that are reached, are set back for each copy, so
    that every pass draws the same. Errors: BnbookError, in one line, for a network that cannot be copied.
    """

    def __init__(self, network: nn.Module, *functions: Callable) -> None:
        self.network, self.functions = network, functions
        self.generators = [v for _, v in reach((network, functions)) if isinstance(v, GENERATORS)]
        self.states = random_states(self.generators)
        self._places = _globals((network, *functions))
        self._shared: dict[int, Any] | None = None  # what a deep copy takes as it is; None: not asked for yet

    @contextmanager
    def fresh(self) -> Iterator[list[Any]]:
        """[network, *functions], each a copy; afterwards the random states are as they were before."""
        outside = random_states(self.generators)
        with ExitStack() as stack:
            stack.callback(set_random_states, outside, self.generators)
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(_uncompiled())
            memo, network = self._network()
            functions = [_rebound(each, memo) for each in self.functions]
            stack.enter_context(_replaced(self._places, memo))
            set_random_states(self.states, self.generators)
            yield [network, *functions]

    def _network(self) -> tuple[dict[int, Any], nn.Module]:
        memo = dict(self._shared or {})
        try:
            return memo, _copied(self.network, memo)
        except Exception as error:  # somebody else's code
            if self._shared is not None:
                raise BnbookError(f"a network that cannot be copied: {one_line(error)}") from error
        self._shared = _uncopied(self.network, self.functions)
        return self._network()


def one_line(error: BaseException) -> str:
    """What somebody else's code complains of: its kind, and the first line of its words."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


# ---- What a network and its loss hold --------------------------------------------------------------------------------


def reach(root: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name and value of all that can be reached from `root`: through modules, attributes, containers, closures of
    functions, the arguments that a function keeps, own classes of modules, and modules by a global name."""
    seen: set[int] = set()
    todo = deque([(name, root)])
    while todo:
        name, value = todo.popleft()
        if not isinstance(value, ENDS):
            if id(value) in seen:
                continue
            seen.add(id(value))
        yield name, value
        todo.extend((f"{name}.{key}" if name else key, each) for key, each in _inside(value))


def _inside(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (Tensor, np.ndarray, *ENDS, types.ModuleType, type, *GENERATORS)):
        return []
    if isinstance(value, torch.jit.ScriptModule):
        tensors = [*value.named_parameters(), *value.named_buffers()]
        return [*tensors, ("training", value.training), *_script_attributes(value)]
    if isinstance(value, nn.Module):
        boxes = ("_parameters", "_buffers", "_modules")
        own = [(k, v) for k, v in vars(value).items() if k not in boxes]
        named = [pair for box in boxes for pair in vars(value)[box].items()]
        return named + own + _of_class(type(value))
    if isinstance(value, Mapping):
        return [(str(key), each) for key, each in _listed(value.items())]
    if isinstance(value, BOXES):
        return [(str(k), each) for k, each in enumerate(_listed(value))]
    if isinstance(value, types.MethodType):
        return [("self", value.__self__), *_named_by(value.__func__)]
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        kept = [(name, cell.cell_contents) for name, cell in cells if cell != types.CellType()]
        kept += [(f"argument {k}", v) for k, v in enumerate(value.__defaults__ or ())]
        return kept + _named_by(value)
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    found = [*getattr(value, "__dict__", {}).items()]
    for slot in slots:
        with suppress(Exception):  # a slot that is not filled, or a property that raises
            found.append((slot, getattr(value, slot)))
    return found


def _listed(values: Any) -> list[Any]:
    try:
        return list(values)
    except Exception:  # a container of somebody's own that cannot be gone through
        return []


@functools.cache
def _foreign(kind: type) -> list[type]:
    """A class and its bases, without those of torch, Python and the book, which keep nothing outside of a module."""
    home = lambda each: each.__module__.partition(".")[0]
    return [each for each in kind.__mro__ if home(each) not in ("torch", "builtins", "bnbook")]


def _methods(kind: type) -> list[types.FunctionType]:
    return [f for each in _foreign(kind) for f in vars(each).values() if isinstance(f, types.FunctionType)]


def _of_class(kind: type) -> list[tuple[str, Any]]:
    """What hangs on a network's own class, and what its methods name from outside of it."""
    kinds = (int, float, list, dict, set, Tensor, np.ndarray)
    hanging = [
        (f"{each.__name__}.{name}", value)
        for each in _foreign(kind)
        for name, value in vars(each).items()
        if not name.startswith("__") and isinstance(value, kinds)
    ]
    return hanging + [
        (f"{function.__module__}.{name}", function.__globals__[name])
        for function in _methods(kind)
        for name in _names(function)
        if isinstance(function.__globals__.get(name), (*kinds, *GENERATORS, nn.Module))
    ]


def _named_by(function: Callable) -> list[tuple[str, Any]]:
    """Modules that a function names from outside of it."""
    found = getattr(function, "__globals__", {})
    names = _names(function) if found else ()
    return [(name, found[name]) for name in names if isinstance(found.get(name), nn.Module)]


def _names(function: types.FunctionType) -> frozenset[str]:
    """Global names that a function or one written inside it speaks of."""
    return _of_code(function.__code__)


@functools.cache
def _of_code(code: types.CodeType) -> frozenset[str]:
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return frozenset(code.co_names).union(*map(_of_code, inner))


def _script_attributes(module: torch.jit.ScriptModule) -> list[tuple[str, Any]]:
    own = {name for name in dir(module) if not name.startswith("_")} - {*dir(torch.jit.ScriptModule)}
    found = [(name, getattr(module, name, None)) for name in sorted(own)]
    return [(name, value) for name, value in found if isinstance(value, (int, float, str, list, dict))]


def _globals(roots: Sequence[Any]) -> list[tuple[dict, str]]:
    """Where modules stand that are named from outside: of own classes' methods, of functions, and of what these call."""
    kinds = (nn.Module, types.FunctionType, types.MethodType)
    todo = [value for _, value in reach(roots) if isinstance(value, kinds)]
    seen: set[int] = set()
    found: dict[tuple[int, str], tuple[dict, str]] = {}
    while todo:
        value = todo.pop()
        if isinstance(value, nn.Module):
            todo += _methods(type(value))
            continue
        function = getattr(value, "__func__", value)
        if id(function) in seen or not isinstance(function, types.FunctionType) or _of_library(function):
            continue
        seen.add(id(function))
        for name in _names(function):
            each = function.__globals__.get(name)
            if isinstance(each, (types.FunctionType, types.MethodType)):
                todo.append(each)
            elif isinstance(each, nn.Module) or _holds_module(each):
                found[id(function.__globals__), name] = (function.__globals__, name)
    return list(found.values())


def _of_library(function: types.FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] in ("torch", "torchvision", "numpy", "bnbook")


def _holds_module(value: Any) -> bool:
    """Whether a plain container, or an object of somebody's own class, holds a module directly."""
    if isinstance(value, (Tensor, np.ndarray, *ENDS, types.ModuleType, type, *GENERATORS)) or callable(value):
        return False
    return any(isinstance(each, nn.Module) for _, each in _inside(value))


# ---- Random states ---------------------------------------------------------------------------------------------------


def random_states(generators: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Of torch, of every CUDA device in use, of NumPy and of Python, and of further generators."""
    in_use = torch.cuda.is_available() and torch.cuda.is_initialized()
    cuda = torch.cuda.get_rng_state_all() if in_use else None
    own = [_get(each) for each in generators]
    return torch.get_rng_state(), cuda, np.random.get_state(), random.getstate(), own


def set_random_states(states: tuple[Any, ...], generators: Sequence[Any] = ()) -> None:
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state_all(states[1])
    np.random.set_state(states[2])
    random.setstate(states[3])
    for generator, state in zip(generators, states[4], strict=bool(generators)):
        _set(generator, state)


def _get(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return (generator.getstate if isinstance(generator, random.Random) else generator.get_state)()


def _set(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        (generator.setstate if isinstance(generator, random.Random) else generator.set_state)(state)


# ---- A deep copy, with what torch's own leaves out -------------------------------------------------------------------


def _copied(network: nn.Module, memo: dict[int, Any]) -> nn.Module:
    with torch.no_grad():  # torch copies a scripted module's tensors by an operation that has a gradient
        _copy_modules(network, memo)
        found = copy.deepcopy(network, memo)
    for one, other in zip(network.parameters(), found.parameters(), strict=True):
        other.requires_grad_(one.requires_grad)
        for name, value in vars(one).items():  # what its owner wrote on it, which torch's copy leaves out
            setattr(other, name, copy.deepcopy(value, memo))
    for module in found.modules():  # hooks, a replaced forward
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for key, value in vars(module).items():
            if isinstance(value, types.FunctionType):
                vars(module)[key] = _rebound(value, memo)
            elif isinstance(value, dict) and value and key.endswith("_hooks"):
                value.update({k: _rebound(each, memo) for k, each in value.items()})
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


def is_compiled(module: nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule"


def _copy_modules(network: nn.Module, memo: dict[int, Any]) -> None:
    """What a deep copy does with plain modules, whose dozens of attributes it takes slowly, in a third of the time."""
    plain = [module for module in network.modules() if _is_plain(type(module)) and id(module) not in memo]
    for module in plain:
        memo[id(module)] = type(module).__new__(type(module))
    for module in network.modules():
        if is_compiled(module) and id(module) not in memo:
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


@functools.cache
def _is_plain(kind: type[nn.Module]) -> bool:
    """Whether a copy of such a module is one of its attributes, no more: nobody but torch says how it is copied."""
    said = [getattr(kind, n, None) for n in ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__")]
    own = [getattr(each, "__module__", "torch.nn.modules") for each in said]
    of_torch = all(each.startswith("torch.nn.modules") for each in own)
    return of_torch and not hasattr(kind, "__deepcopy__") and not copyreg._slotnames(kind)


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Compiled functions run as they were written: copies would be compiled anew at each pass."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _uncopied(network: nn.Module, functions: Sequence[Callable]) -> dict[int, Any]:
    """What a deep copy takes as it is: tensors inside a graph without their graph, locks and the like themselves."""
    memo: dict[int, Any] = {}
    for _, value in reach((network, functions)):
        if isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
    for _, value in reach(network):
        if not isinstance(value, (nn.Module, Tensor, dict, list, tuple, set)):
            try:
                copy.deepcopy(value, dict(memo))
            except Exception:
                memo[id(value)] = value
    return memo


def _rebound(function: Any, memo: dict[int, Any]) -> Any:
    """A copy of a function whose closure and kept arguments lead to copies; other callables as deep copies."""
    if not isinstance(function, types.FunctionType):
        return _tried(function, memo)
    kept = memo.get(id(function))
    if isinstance(kept, types.FunctionType) and kept is not function:
        return kept
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, cells or None)
    memo[id(function)] = made
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not filled yet
            contents = old.cell_contents
            cell.cell_contents = (_rebound if isinstance(contents, types.FunctionType) else _tried)(
                contents, memo
            )
    made.__defaults__ = _tried(function.__defaults__, memo)
    made.__kwdefaults__ = _tried(function.__kwdefaults__, memo)
    made.__dict__.update(function.__dict__)
    return made


def _tried(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:
        return value


@contextmanager
def _replaced(places: Sequence[tuple[dict, str]], memo: dict[int, Any]) -> Iterator[None]:
    """Global names lead to copies in the context: functions of a class cannot be given names of their own."""
    before = [(around, name, around[name]) for around, name in places]
    try:
        for around, name, value in before:
            copied = memo.get(id(value))
            if copied is None:
                copied = _copied(value, memo) if isinstance(value, nn.Module) else _tried(value, memo)
            around[name] = copied
        yield
    finally:
        for around, name, value in before:
            around[name] = value
