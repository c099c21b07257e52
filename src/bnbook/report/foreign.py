"""Somebody else's code: a network, a loss or weights by their names, read as their owner's program would."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin
from torch.optim.optimizer import register_optimizer_step_pre_hook

from bnbook.errors import BnbookError
from bnbook.probes.copies import one_line

EXAMPLE = "FILE.py:FACTORY, such as nets.py:make, or package.module:FACTORY"
GUARD = "put what runs under `if __name__ == '__main__':`, or the network into a file of its own"
#: Where checkpoints keep the weights, beside others perhaps (an average of them).
BOXES = ("state_dict", "model_state_dict", "model", "net", "network", "weights")


def network(named: str, seed: int) -> nn.Module:
    """The module of that name, or what a factory (or class) of that name gives without arguments; torch's
    random state is set to the seed before."""
    tried(f"--seed {seed}; expected a number of 64 bits", lambda: torch.manual_seed(seed))
    found = _named(named)
    if not isinstance(found, nn.Module):
        found = tried(f"{named} fails", found, f"{named} ends the program; expected a module")
    if not isinstance(found, nn.Module):
        raise BnbookError(f"{named} gives a {type(found).__name__}; expected a torch.nn.Module")
    return found


def loss(named: str) -> Callable[..., Any]:
    """A function (outputs, targets) -> (), or a class of losses or a loss module, by its name."""
    found = _named(named)
    return tried(f"{named} fails", found) if isinstance(found, type) else found


def loader(named: str) -> Any:
    """Pairs of inputs and targets: a loader or a list of that name, or what a function of that name gives."""
    found = _named(named, needed=False)
    return tried(f"{named} fails", found) if callable(found) else found


def load_weights(model: nn.Module, file: str) -> None:
    """Parameters and buffers of a checkpoint: a state dict, or a dictionary that holds one, under names of the
    network's own or such with one and the same word before them (a wrapper's)."""
    words, own = f"{file} cannot be read as weights", "; expected the weights of this network"
    try:
        content = tried(words, lambda: read_saved(file))
    except BnbookError as error:
        if not isinstance(error.__cause__, pickle.UnpicklingError):
            raise
        raise BnbookError(
            f"{file} holds other objects than tensors (a whole model, or settings), which could run anything when "
            "read; expected a state dict alone: torch.save(model.state_dict(), FILE)"
        ) from None
    wanted, held = model.state_dict(), dict(_states(content))
    needed = [key for key in wanted if not key.endswith("num_batches_tracked")]
    if not held:
        raise BnbookError(f"{file} holds a {type(content).__name__}; expected a state dict")
    fitting = [
        (name, {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)})
        for name, state in held.items()
        for prefix in _prefixes(state, needed)
    ]
    fitting = [each for each in fitting if each[0].rpartition(".")[2] in BOXES][:1] or fitting
    if len(fitting) > 1:
        names = ", ".join(name or "two prefixes" for name, _ in fitting)
        raise BnbookError(f"{file} holds several sets of weights that fit ({names}); expected one")
    if not fitting:
        state = max(held.values(), key=lambda each: len(each.keys() & wanted.keys()))
        raise BnbookError(f"{file} lacks {', '.join([key for key in needed if key not in state][:2])}{own}")
    state = fitting[0][1]
    if more := sorted(state.keys() - wanted.keys()):
        raise BnbookError(f"{file} has {', '.join(more[:2])}{own}")
    for key in [key for key, value in wanted.items() if not isinstance(value, UninitializedTensorMixin)]:
        if key in state and state[key].shape != wanted[key].shape:
            shapes = f"{tuple(state[key].shape)} where the network has {tuple(wanted[key].shape)}"
            raise BnbookError(f"{file} has {key} of shape {shapes}{own}")
    tried(words, lambda: model.load_state_dict(state, strict=False))


def read_saved(file: str) -> Any:
    """Tensors and plain containers that torch.save wrote."""
    with open(file, "rb") as opened:
        starts = opened.read(1)
    if starts != b"\x80" and not zipfile.is_zipfile(file) and not tarfile.is_tarfile(file):
        raise BnbookError(f"{file} is no file that torch.save wrote; expected one")
    return torch.load(file, weights_only=True, map_location="cpu")


def _states(content: Any, name: str = "") -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """Every dictionary of tensors that a checkpoint holds, by its place."""
    if not isinstance(content, Mapping):
        return
    own = {k: v for k, v in content.items() if isinstance(k, str) and isinstance(v, torch.Tensor)}
    if own:
        yield name, own
    for key, value in content.items():
        yield from _states(value, f"{name}.{key}" if name else str(key))


def _prefixes(state: Mapping[str, torch.Tensor], needed: Sequence[str]) -> list[str]:
    """What may stand before all names that are needed."""
    maybe = [key.removesuffix(needed[0]) for key in state if key.endswith(needed[0])] if needed else []
    dotted = [p for p in maybe if not p or p.endswith(".")]
    return [p for p in dotted if all(p + key in state for key in needed)]


def _named(named: str, needed: bool = True) -> Any:
    place, _, name = named.rpartition(":")
    if not place or not name:
        raise BnbookError(f"{named!r} names no function; expected {EXAMPLE}")
    if place.endswith(".py") or "/" in place:
        found = _file(Path(place))
    else:
        _forget_others(Path.cwd())
        _on_path(Path.cwd())
        found = _imported(place, place)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or needed and not callable(found):
        raise BnbookError(
            f"{place} has no function {name!r}; expected one without arguments that gives a module"
        )
    return found


def _file(path: Path) -> ModuleType:
    """The module of a file: of its package where it lies in one, else under its own name; its folder, its
    package's folder and the working directory are on the path, and the module is registered."""
    if not path.is_file():
        raise BnbookError(f"no file {str(path)!r}; expected {EXAMPLE}")
    path, above = path.resolve(), 0
    while (path.parents[above] / "__init__.py").is_file() and path.parents[above].name.isidentifier():
        above += 1
    _forget_others(path.parents[above], path.parent)
    for folder in (Path.cwd(), path.parent):
        _on_path(folder)
    while True:
        _on_path(path.parents[above])
        dotted = ".".join(path.relative_to(path.parents[above]).with_suffix("").parts)
        dotted = dotted.removesuffix(".__init__")
        held = getattr(sys.modules.get(dotted), "__file__", None) or "/"
        taken = dotted in sys.modules and Path(held).resolve() != path
        try:
            return _imported(str(path), f"measured_{path.stem}" if taken else dotted, path)
        except BnbookError as error:
            if "relative import" not in str(error) or above >= min(3, len(path.parents) - 1):
                raise
            above += 1  # it lies in packages that have no __init__.py


class _Trains(BaseException):
    """Passes by `except Exception` of the file that is read."""


def _imported(said: str, dotted: str, path: Path | None = None, tries: int = 3) -> ModuleType:
    def read() -> ModuleType:
        if path is None or dotted not in (path.stem, f"measured_{path.stem}"):
            return importlib.import_module(dotted)
        spec = importlib.util.spec_from_file_location(dotted, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[dotted] = module  # dataclasses and pickles look their module up
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(dotted, None)
            raise
        return module

    try:
        with _no_training():
            return tried(f"{said} cannot be read", read, f"{said} ends the program while it is read; {GUARD}")
    except _Trains:
        raise BnbookError(f"{said} trains while it is read; {GUARD}") from None
    except BnbookError as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        first = (missing or "").split(".")[0]
        has = lambda folder: (folder / first).is_dir() or (folder / f"{first}.py").is_file()
        parents = path.parents if path and first else ()
        above = [each for each in parents if str(each) not in sys.path and has(each)]
        if not above or not tries:  # the nearest folder above that has what it misses
            raise
        _on_path(above[0])
        return _imported(said, dotted, path, tries - 1)


def _on_path(folder: Path) -> None:
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    _READ.append(folder)
    importlib.invalidate_caches()


_READ: list[Path] = []  # folders of what was read, within one command
_BEFORE: set[str] = set()  # modules that were there before it


def _forget_others(*folders: Path) -> None:
    """Neighbours of an earlier file go, for those of the next may have the same names; what is nobody's installed package."""
    roots = [root for root in _READ if root not in folders]
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        installed = {"site-packages", "dist-packages", "bnbook"} & set(file.parts)
        if name not in _BEFORE and not installed and any(map(file.is_relative_to, roots)):
            sys.modules.pop(name)


@contextlib.contextmanager
def _no_training() -> Iterator[None]:
    """A file that is read takes no gradient of a loss and no step."""

    def stop(*_: Any, **__: Any) -> None:
        raise _Trains

    backward = torch.autograd.backward
    hook = register_optimizer_step_pre_hook(stop)
    torch.autograd.backward = stop
    try:
        yield
    finally:
        torch.autograd.backward = backward
        hook.remove()


@contextlib.contextmanager
def own_command_line(named: str) -> Iterator[None]:
    """The file sees a command line of its own, without words; on leaving all is as before, output and folder too."""
    words, path, streams, here = sys.argv, list(sys.path), (sys.stdout, sys.stderr), Path.cwd()
    _BEFORE.update(sys.modules)
    sys.argv = [named.rpartition(":")[0]]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = words, path
        sys.stdout, sys.stderr = streams
        os.chdir(here)
        _forget_others()
        _READ.clear(), _BEFORE.clear()


def tried(words: str, function: Callable[[], Any], on_exit: str = "") -> Any:
    """Somebody else's code or file: whatever it raises becomes one line, and what it says on the way to a
    sys.exit is not shown."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = function()
    except SystemExit as error:
        raise BnbookError(f"{on_exit or words} (sys.exit({error.code!r}))") from error
    except (BnbookError, KeyboardInterrupt, _Trains):
        raise
    except BaseException as error:  # somebody may have a class of their own
        raise BnbookError(f"{words}: {one_line(error)}") from error
    sys.stderr.write(said.getvalue())
    return found
