"""Everything that a network, a loss and a batch hold, and what of it has moved."""

from __future__ import annotations

import hashlib
import random
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

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
