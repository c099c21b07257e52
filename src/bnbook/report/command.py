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

LOSSES = {"cross_entropy": nn.functional.cross_entropy, "mse": nn.functional.mse_loss}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("factory", metavar="FILE.py:FACTORY", help="a function without arguments -> module")
    parser.add_argument(
        "--data", required=True, metavar="NAME|FILE", help="a data set, or FILE.pt / FILE.npz"
    )
    parser.add_argument("--beside", metavar="FILE.py:FACTORY", help="a second network, on the same batch")
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="examples (default 64)")
    parser.add_argument("--loss", default="cross_entropy", choices=LOSSES)
    parser.add_argument("--learning-rate", type=float, default=0.1, metavar="η")
    parser.add_argument("--seed", type=int, default=0, help="of the random state that a factory draws from")
    parser.add_argument("--no-eigenvalues", action="store_true", help="leave out λ_max, which costs most")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument("--figure", metavar="FILE.svg", help="draw (svg, png or pdf)")


def report(arguments: argparse.Namespace) -> Report:
    """Measure, write what was asked for, and give the report; BnbookError for whatever cannot be read."""
    batch = read_batch(arguments.data, arguments.batch)
    named = [each for each in (arguments.factory, arguments.beside) if each]
    models = [build(each, arguments.seed) for each in named]
    found = measure(
        models[0],
        LOSSES[arguments.loss],
        batch,
        learning_rate=arguments.learning_rate,
        eigenvalues=not arguments.no_eigenvalues,
        beside=models[1] if len(models) > 1 else None,
        names=[each.rpartition(":")[2] for each in named],
    )
    if arguments.json:
        atomic.write_bytes(Path(arguments.json), (found.to_json() + "\n").encode())
    if arguments.figure:
        _draw(found, Path(arguments.figure))
    return found


def build(named: str, seed: int) -> nn.Module:
    """The module that FACTORY in FILE.py makes, torch's random state set to the seed before."""
    path, _, name = named.rpartition(":")
    if not path or not Path(path).is_file():
        raise BnbookError(f"no file {path or named!r}; expected FILE.py:FACTORY, such as nets.py:make")
    spec = importlib.util.spec_from_file_location("measured_network", path)
    module = importlib.util.module_from_spec(spec)
    factory = _tried(f"{path} cannot be read", lambda: (spec.loader.exec_module(module), module)[1])
    factory: Callable[[], Any] | None = getattr(factory, name, None)
    if not callable(factory):
        raise BnbookError(
            f"{path} has no function {name!r}; expected one without arguments that gives a module"
        )
    torch.manual_seed(seed)
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
    inputs, targets = (torch.as_tensor(part)[:examples] for part in content)
    return inputs, targets


def _tried(words: str, function: Callable[[], Any]) -> Any:
    """Somebody else's code or file: whatever it raises becomes one line."""
    try:
        return function()
    except Exception as error:
        raise BnbookError(f"{words}: {type(error).__name__}: {error}") from error


def _draw(found: Report, path: Path) -> None:
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise BnbookError(f"a figure {path.name!r}; expected .svg, .png or .pdf")
    import io

    buffer = io.BytesIO()
    found.figure().savefig(buffer, format=path.suffix[1:])
    atomic.write_bytes(path, buffer.getvalue())
