"""`bnbook measure FILE.py:FACTORY`: the report on a network from the shell."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bnbook import atomic, data
from bnbook.errors import BnbookError
from bnbook.report.measuring import measure
from bnbook.report.report import Report


def _mse(outputs: Tensor, targets: Tensor) -> Tensor:
    if outputs.shape != targets.shape:  # torch would spread (B, 1) against (B,) over (B, B)
        shapes = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
        raise BnbookError(f"{shapes}; expected the same shape for --loss mse")
    return nn.functional.mse_loss(outputs, targets)


LOSSES = {"cross_entropy": nn.functional.cross_entropy, "mse": _mse}
FIGURES = (".svg", ".png", ".pdf")


def report(arguments: argparse.Namespace) -> Report:
    """Measure, write what was asked for, and give the report; BnbookError for whatever cannot be read, and
    for a network or loss that does not take the batch."""
    kind = Path(arguments.figure or "report.svg").suffix
    if kind not in FIGURES:  # before the minutes that a measurement may take
        raise BnbookError(f"a figure {Path(arguments.figure).name!r}; expected {', '.join(FIGURES)}")
    batch = read_batch(arguments.data, arguments.batch)
    named = [each for each in (arguments.factory, arguments.beside) if each]
    models = [build(each, arguments.seed) for each in named]
    inputs, targets = (f"{tuple(each.shape)} of {str(each.dtype).removeprefix('torch.')}" for each in batch)
    found = _tried(
        f"inputs {inputs} with targets {targets}; expected a network and a --loss that take these",
        lambda: measure(
            models[0],
            LOSSES[arguments.loss],
            batch,
            learning_rate=arguments.learning_rate,
            eigenvalues=not arguments.no_eigenvalues,
            beside=models[1] if len(models) > 1 else None,
            names=[each.rpartition(":")[2] for each in named],
        ),
    )
    if arguments.json:
        atomic.write_bytes(Path(arguments.json), (found.to_json() + "\n").encode())
    if arguments.figure:
        _draw(found, Path(arguments.figure))
    return found


def build(named: str, seed: int) -> nn.Module:
    """The module that FACTORY in FILE.py makes, torch's random state set to the seed before."""
    path, _, name = named.rpartition(":")
    if not path:
        raise BnbookError(f"{named!r} names no function; expected FILE.py:FACTORY, such as nets.py:make")
    if not Path(path).is_file():
        raise BnbookError(f"no file {path!r}; expected FILE.py:FACTORY, such as nets.py:make")
    spec = importlib.util.spec_from_file_location("measured_network", path)
    module = importlib.util.module_from_spec(spec)
    factory = _tried(f"{path} cannot be read", lambda: (spec.loader.exec_module(module), module)[1])
    factory: Callable[[], Any] | None = getattr(factory, name, None)
    if not callable(factory):
        raise BnbookError(
            f"{path} has no function {name!r}; expected one without arguments that gives a module"
        )
    _tried(f"--seed {seed}; expected a number of 64 bits", lambda: torch.manual_seed(seed))
    return _tried(f"{named} fails", factory)


def read_batch(named: str, examples: int) -> tuple[Tensor, Tensor]:
    """The first `examples` of a data set's training images, or of a file's `inputs` and `targets`."""
    if examples < 2:
        raise BnbookError(f"a batch of {examples}; expected at least 2")
    path = Path(named)
    if path.suffix == ".pt":
        content = _tried(f"{named} cannot be read", lambda: torch.load(path, weights_only=True))
    elif path.suffix == ".npz":
        import numpy as np

        content = _tried(f"{named} cannot be read", lambda: dict(np.load(path, allow_pickle=False)))
    else:
        dataset = data.load(named)
        images, labels = data.fixed_sample(dataset, examples, "train")
        return data.normalise(images, dataset), labels
    if isinstance(content, dict):
        content = [content.get("inputs"), content.get("targets")]
    if not isinstance(content, (list, tuple)) or len(content) != 2 or any(part is None for part in content):
        raise BnbookError(f"{named} holds no pair; expected inputs and targets")
    words = f"{named} holds no pair of arrays of numbers"
    return _tried(words, lambda: tuple(torch.as_tensor(part)[:examples] for part in content))


def _tried(words: str, function: Callable[[], Any]) -> Any:
    """Somebody else's code or file: whatever it raises becomes one line."""
    try:
        return function()
    except BnbookError:
        raise
    except Exception as error:
        raise BnbookError(f"{words}: {type(error).__name__}: {error}") from error


def _draw(found: Report, path: Path) -> None:
    import io

    buffer = io.BytesIO()
    found.figure().savefig(buffer, format=path.suffix[1:])
    atomic.write_bytes(path, buffer.getvalue())
