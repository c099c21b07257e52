"""`bnbook measure FILE.py:FACTORY`: the report on a network from the shell."""

from __future__ import annotations

import argparse
import io
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnbook import data
from bnbook.errors import BnbookError, reason
from bnbook.report import foreign
from bnbook.report.foreign import tried
from bnbook.report.measuring import MOST, first_batches, measure
from bnbook.report.report import Report
from bnbook.report.subject import Subject, described
from bookpress import atomic


def _mse(outputs: Tensor, targets: Tensor) -> Tensor:
    if outputs.shape != targets.shape:  # torch would spread (B, 1) against (B,) over (B, B)
        shapes = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
        raise BnbookError(f"{shapes}; expected the same shape for --loss mse")
    return nn.functional.mse_loss(outputs, targets)


LOSSES = {"cross_entropy": nn.functional.cross_entropy, "mse": _mse}
FIGURES = (".svg", ".png", ".pdf")


def report(arguments: argparse.Namespace, show: Callable[[Report], Any] = lambda _: None) -> Report:
    """Measure, write, show and draw what was asked for, in this order, and give the report; BnbookError for
    whatever cannot be read or written, before anything is measured, and for a network or loss that does not
    take the batch."""
    places = _places(arguments)
    named = [each for each in (arguments.factory, arguments.beside) if each]
    weights = arguments.weights or []
    if len(weights) > len(named):
        raise BnbookError(f"{len(weights)} --weights for {len(named)} network; expected one for each at most")
    if not arguments.data and not arguments.input_shape:
        raise BnbookError("neither --data nor --input-shape given; expected one, for a batch")
    own = bool(arguments.data) and ":" in arguments.data and ".py" in arguments.data
    batches = (MOST if own else 1) if arguments.batches is None else arguments.batches
    if not 1 <= batches <= MOST:
        raise BnbookError(f"--batches {batches}; expected 1 to {MOST}")
    count = arguments.batch * batches
    given = read_batch(arguments.data, count) if arguments.data and not own else None
    output = arguments.output
    output = int(output) if output and output.lstrip("-").isdigit() else output
    with foreign.own_command_line(arguments.factory):
        loss = _loss(arguments.loss)
        models = [foreign.network(each, arguments.seed) for each in named]
        for model, file in zip(models, weights, strict=False):
            foreign.load_weights(model, file)
        shape = _shape(arguments.input_shape)
        if own:
            batch = first_batches(foreign.loader(arguments.data), batches)
        else:
            made = lambda: made_up(models[0], loss, output, shape, arguments, count)
            whole = shaped(given, shape) if given else made()
            batch = list(zip(*(each.split(arguments.batch) for each in whole), strict=True))
        how = {"learning_rate": arguments.learning_rate, "eigenvalues": not arguments.no_eigenvalues}
        beside = models[1] if len(models) > 1 else None
        found = measure(models[0], loss, batch, output=output, beside=beside, names=_names(named), **how)
        found = replace(found, data=f"{_source(arguments.data)}: {found.data}")
    try:
        if "json" in places:
            atomic.write_bytes(places["json"], (found.to_json() + "\n").encode())
    finally:  # neither may cost the other
        show(found)
    if "html" in places:
        atomic.write_bytes(places["html"], found.to_html().encode())
    if "figure" in places:
        _draw(found, places["figure"])
    return found


def _places(arguments: argparse.Namespace) -> dict[str, Path]:
    """Where is written; BnbookError where it could not be, before the minutes that a measurement may take."""
    named = {kind: getattr(arguments, kind) for kind in ("json", "figure", "html")}
    places = {kind: Path(each).resolve() for kind, each in named.items() if each}
    if "figure" in places and places["figure"].suffix not in FIGURES:
        raise BnbookError(f"a figure {places['figure'].name!r}; expected {', '.join(FIGURES)}")
    for name, path in places.items():
        try:
            if path.is_dir():
                raise IsADirectoryError(21, os.strerror(21), str(path))
            if path.exists() and not path.is_file():  # it would be replaced
                raise OSError(22, "it is a device or a pipe", str(path))
            if not path.parent.is_dir():
                raise FileNotFoundError(2, f"there is no folder {str(path.parent)!r}")
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise BnbookError(
                f"{path} cannot be written: {reason(error)}; expected a file that can"
            ) from None
        for other in [each for each in places if each != name and places[each] == path]:
            raise BnbookError(f"--{name} and --{other} both name {path.name!r}; expected two files")
    return places


def _source(named: str | None) -> str:
    """Where the inputs come from, and how they were scaled."""
    if named not in data.NAMES:
        return named or "normal random numbers"
    actual = named if named in data.STANDINS else data.whereabouts(named).partition(":")[0]
    return f"training images of {actual} as (x / 255 - mean) / std of each of its channels"


def _loss(named: str) -> Callable[..., Any]:
    if named not in LOSSES and ":" not in named:
        raise BnbookError(f"--loss {named!r}; expected {', '.join(LOSSES)}, or FILE.py:FUNCTION")
    return LOSSES[named] if named in LOSSES else foreign.loss(named)


def _names(named: Sequence[str]) -> list[str]:
    """What the columns are called: the factories, with their files where these are called alike."""
    short = [each.rpartition(":")[2] for each in named]
    if len(set(short)) < len(named):
        short = list(named)
    return [f"{each} (2)" if k and each == short[0] else each for k, each in enumerate(short)]


def _shape(named: str | None) -> tuple[int, ...] | None:
    parts = named.replace("x", ",").split(",") if named else []
    if not all(part.strip().isdigit() and int(part) for part in parts):
        raise BnbookError(f"--input-shape {named!r}; expected the shape of one example, such as 3,32,32")
    return tuple(int(part) for part in parts) or None


def shaped(batch: tuple[Tensor, Tensor], shape: tuple[int, ...] | None) -> tuple[Tensor, Tensor]:
    """The batch with its examples in that shape, contiguous."""
    inputs, targets = batch
    own = tuple(inputs.shape[1:])
    try:
        inputs = inputs.reshape(len(inputs), *(own if shape is None else shape))
    except RuntimeError:
        raise BnbookError(f"--input-shape {shape} of examples {own}; expected as many numbers") from None
    return inputs.contiguous(), targets.contiguous()


def made_up(
    model: nn.Module, loss: Callable, output: int | str | None, shape: tuple[int, ...], arguments, count: int
) -> tuple[Tensor, Tensor]:
    """Inputs from a standard normal distribution, and targets that fit what the network gives: classes in
    turn for cross entropy, else numbers from a standard normal distribution."""
    draw = torch.Generator().manual_seed(arguments.seed)
    inputs = torch.randn(count, *shape, generator=draw)
    said = f"the network does not take inputs {tuple(inputs.shape)} of float32"
    outputs = tried(said, Subject(model, loss, (inputs, torch.zeros(count)), output).run)
    if not isinstance(outputs, Tensor) or outputs.dim() < 2:
        raise BnbookError(
            f"the network gives {described(outputs)}; expected --output, or targets from --data"
        )
    if arguments.loss == "cross_entropy":
        classes = outputs.shape[1]
        targets = torch.arange(outputs.numel() // classes) % classes
        return inputs, targets.view(len(outputs), *outputs.shape[2:])
    return inputs, torch.randn(outputs.shape, generator=draw)


def read_batch(named: str, examples: int) -> tuple[Tensor, Tensor]:
    """The first `examples` of a data set's training images, or of a file's `inputs` and `targets`."""
    if examples < 2:
        raise BnbookError(f"a batch of {examples}; expected at least 2")
    readers = {
        ".pt": lambda: foreign.read_saved(named),
        ".npz": lambda: dict(np.load(named, allow_pickle=False)),
    }
    if Path(named).suffix not in readers:
        if named not in data.NAMES:
            kinds = f"FILE.pt, FILE.npz, FILE.py:LOADER or one of {', '.join(data.NAMES)}"
            raise BnbookError(f"--data {named!r}; expected {kinds}")
        dataset = data.load(named)
        images, labels = data.fixed_sample(dataset, examples, "train")
        return data.normalise(images, dataset), labels
    content = tried(f"{named} cannot be read", readers[Path(named).suffix])
    if isinstance(content, dict):
        content = [content.get("inputs"), content.get("targets")]
    if not isinstance(content, (list, tuple)) or len(content) != 2 or any(part is None for part in content):
        raise BnbookError(f"{named} holds no pair; expected inputs and targets")
    words = f"{named} holds no pair of arrays of numbers"
    return tried(words, lambda: tuple(torch.as_tensor(part)[:examples] for part in content))


def _draw(found: Report, path: Path) -> None:
    from matplotlib import style

    buffer = io.BytesIO()
    with style.context("default"):  # whatever the user's own says
        found.figure().savefig(buffer, format=path.suffix[1:])
    atomic.write_bytes(path, buffer.getvalue())
