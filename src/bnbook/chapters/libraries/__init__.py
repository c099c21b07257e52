"""Batch norm in other people's libraries: each is asked in an environment of its own, and its answers are numbers.

`python -m bnbook.chapters.libraries` asks all of them from an empty cache and says in a line which is missing and why.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.errors import BnbookError
from bnbook.plots.layout import subplots
from bookpress.results import Results

FOLDER = Path(__file__).parent
#: What every probe asks; a name of a file counts as its text, so that another question makes a run stale.
QUESTIONS = "questions.py"
#: Library -> its probe, in the order of the tables.
PROBES = {
    "torch": "with_torch.py",
    "torchvision_frozen": "with_torchvision_frozen.py",
    "timm": "with_timm.py",
    "torch_geometric": "with_torch_geometric.py",
    "spikingjelly": "with_spikingjelly.py",
    "snntorch": "with_snntorch.py",
    "torch_ao_qat": "with_torch_quantized.py",
    "brevitas": "with_brevitas.py",
    "flax_linen": "with_flax_linen.py",
    "flax_nnx": "with_flax_nnx.py",
    "equinox_ema": "with_equinox_ema.py",
    "equinox_batch": "with_equinox_batch.py",
    "haiku": "with_haiku.py",
    "keras_jax": "with_keras_jax.py",
    "keras_torch": "with_keras_torch.py",
    "keras_tensorflow": "with_keras_tensorflow.py",
    "tensorflow_fused": "with_tensorflow_fused.py",
    "paddle": "with_paddle.py",
    "mindspore": "with_mindspore.py",
    "mlx": "with_mlx.py",
    "tinygrad": "with_tinygrad.py",
    "jittor": "with_jittor.py",
    "chainer": "with_chainer.py",
    "nnabla": "with_nnabla.py",
    "onnx_reference": "with_onnx_reference.py",
    "onnxruntime": "with_onnxruntime.py",
    "openvino": "with_openvino.py",
    "ncnn": "with_ncnn.py",
}
#: Asked by name only, and why.
BY_NAME = {
    "jittor": "not compiled: it compiles itself at its first import, for more than an hour of two busy cores"
}
#: The network that is carried over, and library -> the script that builds it there, trains it and takes it over.
NETWORK = "carrying.py"
CARRIED = {
    "torch": "carry_torch.py",
    "flax_linen": "carry_flax_linen.py",
    "equinox_batch": "carry_equinox_batch.py",
    "haiku": "carry_haiku.py",
    "keras_jax": "carry_keras_jax.py",
    "paddle": "carry_paddle.py",
    "mlx": "carry_mlx.py",
    "chainer": "carry_chainer.py",
}
#: What the tables call them, where it is not the key.
TITLES = {
    "torchvision_frozen": "torchvision, frozen",
    "torch_ao_qat": "torch.ao, ConvBn2d",
    "flax_linen": "flax linen",
    "flax_nnx": "flax nnx",
    "equinox_ema": "equinox, ema",
    "equinox_batch": "equinox, batch",
    "keras_jax": "keras on jax",
    "keras_torch": "keras on torch",
    "keras_tensorflow": "keras on tensorflow",
    "tensorflow_fused": "tensorflow, fused",
    "onnx_reference": "onnx, reference",
}
SLOWEST = 3600  # seconds: jittor compiles itself at its first import
Answers = dict[str, dict[str, Any]]


def uv() -> list[str]:
    """The command that makes an environment from the head of a script; BnbookError where it is not installed."""
    if found := shutil.which("uv"):
        return [found]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise BnbookError(
        "the other libraries run in environments that uv makes, and uv is not installed; install it (pip install uv) "
        "and run again, or leave `ask` at torch, which is here already"
    )


def chosen(words: str) -> list[str]:
    """The libraries of a parameter: "every", or names separated by commas."""
    return (
        [name for name in PROBES if name not in BY_NAME]
        if words == "every"
        else words.replace(" ", "").split(",")
    )


def ask(names: Iterable[str], cache: str | None = None, workers: int = 2) -> tuple[Answers, dict[str, str]]:
    """The answers of each library that could be asked, and of each other in a line why not; torch alone is asked in
    this environment, everything else in one of its own."""
    names = list(names)
    if unknown := set(names) - set(PROBES):
        raise BnbookError(f"no probe of {sorted(unknown)}; there are {', '.join(PROBES)}")
    said = _run_all({name: PROBES[name] for name in names}, cache, workers)
    return (
        {name: each for name, each in said.items() if not isinstance(each, str)},
        {name: each for name, each in said.items() if isinstance(each, str)},
    )


def carry(names: Iterable[str], cache: str | None = None, workers: int = 2) -> tuple[Answers, dict[str, str]]:
    """What each target answers of each source, found[source] in its answer, of those of the names that have a network;
    and of each that is missing in a line why."""
    scripts = {name: CARRIED[name] for name in names if name in CARRIED}
    with tempfile.TemporaryDirectory() as folder:
        trained = _run_all(scripts, cache, workers, "train", folder)
        missing = {name: each for name, each in trained.items() if isinstance(each, str)}
        left = {name: script for name, script in scripts.items() if name not in missing}
        said = _run_all(left, cache, workers, "carry", folder)
    missing |= {name: each for name, each in said.items() if isinstance(each, str)}
    return {name: each for name, each in said.items() if not isinstance(each, str)}, missing


def _run_all(
    scripts: Mapping[str, str], cache: str | None, workers: int, *arguments: str
) -> dict[str, dict[str, Any] | str]:
    own = list(scripts) == ["torch"]
    uncached = (
        [*uv(), *(["--cache-dir", cache] if cache else []), "run", "--quiet", "--script"] if not own else []
    )
    command = [sys.executable] if own else uncached
    with ThreadPoolExecutor(workers) as pool:
        said = pool.map(lambda script: run_one(command, FOLDER / script, arguments), scripts.values())
        return dict(zip(scripts, said, strict=True))


def run_one(command: list[str], path: Path, arguments: Iterable[str]) -> dict[str, Any] | str:
    """What a script answers in an environment of its own, or why it does not, in a few words."""
    # one thread a library; answers go through a pipe, for one library hangs where its output is a file
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MPLBACKEND", "VIRTUAL_ENV")
    }
    environment |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [*command, str(path), *arguments],
                capture_output=True,
                encoding="utf-8",
                env=environment,
                cwd=folder,
                timeout=SLOWEST,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return f"took longer than {SLOWEST} seconds"
    return answers_of(done.stdout) or _reason(done.stderr, done.returncode)


def answers_of(printed: str) -> dict[str, Any] | None:
    """The last line that is a JSON object; what a library prints beside it is passed over."""
    for line in reversed(printed.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


def _reason(printed: str, code: int) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    told = (
        [line for line in lines if re.search(r"[Ee]rror|No solution|not found|cause", line)]
        or lines
        or ["no word"]
    )
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{ended}: {told[-1][:200]}"


# ---- Answers as numbers ----------------------------------------------------------------------------------------------


#: What is recorded of each library as measured, by the path that leads to it in its answers.
RAW = {
    "epsilon_training": "epsilon.training.inside",
    "epsilon_evaluation": "epsilon.evaluation.inside",
    "weight_of_new": "weights.new",  # at batch 1, 2 and 10
    "weight_of_old": "weights.old",
    "running_mean": "weights.after",  # after 1, 2, 10 and 100 batches of mean 10
    "variance_factor_2d": "variance.2d",
    "variance_factor_4d": "variance.4d",
    "start": "variance.start",
    "alone_output": "alone.2d.output",
    "far_2d": "far.2d.error",
    "far_2d_lost": "far.2d.lost",  # channels of 16 that are not finite
    "far_4d": "far.4d.error",
    "far_4d_lost": "far.4d.lost",
    "steep_error": "far.steep.error",
    "steep_deviation": "far.steep.deviation",
    "half_far_error": "half.float16_default.far.error",
    "bfloat_far_error": "half.bfloat16_default.far.error",
    "constant_error": "constant.error",
    "untrained": "untrained.output",
    "mask_scale": "mask.scale",
    "product_mean0": "second.product_mean0",
    "product_mean5": "second.product_mean5",
    "after_nan": "spoiled.after_51",
    "untold_mean": "default.output_mean",
    "carried_as_is": "carried.as_is",  # from ε of 1e-5, 2e-5 and 1e-3
}


def numbers(answers: Answers) -> dict[str, np.ndarray]:
    """Measured numbers as results: raw.LIBRARY.NAME, one draw, shape (1, ...); what is no number is left out."""
    found = {}
    for name, document in answers.items():
        for key, path in RAW.items():
            value: Any = document["answers"]
            for word in path.split("."):
                value = value.get(word) if isinstance(value, Mapping) else None
            listed = value if isinstance(value, list) else [value]
            if all(isinstance(each, int | float) or each is None for each in listed) and value is not None:
                array = np.array([math.nan if each is None else each for each in listed], float)
                found[f"raw.{name}.{key}"] = array[None] if isinstance(value, list) else array
    return found


def epsilon(document: Mapping[str, Any]) -> float:
    """The ε that the layer adds, from training or, where there is none, evaluation."""
    found = document["answers"]["epsilon"]
    for mode in ("training", "evaluation"):
        if "inside" in found[mode]:
            inside, beside = found[mode]["inside"], found[mode]["beside"]
            return float(inside[0] if _same(inside) else beside[0])
    return math.nan


def _apart(two: list[float]) -> float:
    """By which share the second of two numbers is off the first; two zeros are not apart."""
    return abs(two[1] / two[0] - 1) if two[0] else (0.0 if two[1] == 0 else math.inf)


def _same(two: list[float]) -> bool:
    return _apart(two) < 0.05


def judged(answers: Answers) -> dict[str, dict[str, float]]:
    """What the tests read: quantity -> library -> number, 0 where a library does as the formula or the source has it.

    carried: error of a network that is carried over, the worst of three sources' ε; epsilon: log10 of ε over 1e-5;
    root: relative change of ε between two deviations if it stands under the root; unbiased: the running variance over
    m/(m - 1) times that with 1/m, less one, the worse of shapes (4, 2) and (4, 2, 3, 3); correction: what evaluation
    subtracts after one batch of mean 10, over 10; forgets: by which share what evaluation divides by misses variance
    one, with either factor, after 100 batches of variance one; accepts: 1 where one value a channel raises nothing;
    far: error of an output of size one at mean over deviation 3,000, the worse of two shapes, LOST if not finite;
    product: relative error of Hessian products; spoiled: 1 where the running mean is NaN after 50 clean batches;
    evaluates: 1 where a layer that is told no mode evaluates.
    """
    found: dict[str, dict[str, float]] = {}

    def note(quantity: str, name: str, value: float | None) -> None:
        if value is not None:
            found.setdefault(quantity, {})[name] = float(value)

    for name, document in answers.items():
        said = document["answers"]
        eps = epsilon(document)
        if "by_formula" in said["carried"]:
            note("carried", name, max(said["carried"]["by_formula"]))
        note("epsilon", name, math.log10(eps / 1e-5) if eps > 0 else None)
        for mode in ("training", "evaluation"):
            if "inside" in said["epsilon"][mode]:
                two = said["epsilon"][mode]["inside"]
                note("root", name, max(_apart(two), found.get("root", {}).get(name, 0.0)))
        variance = said["variance"]
        if "2d" in variance and variance["2d_mean_weight"] > 0:
            factors = {"2d": 4 / 3, "4d": 36 / 35}
            note(
                "unbiased",
                name,
                max((variance[k] / c - 1 for k, c in factors.items() if k in variance), key=abs),
            )
        if "1" in said["used"]:
            note("correction", name, said["used"]["1"]["mean"] / 10)
            v = said["used"]["100"]["variance"]
            note("forgets", name, min(abs(v - 1), abs(v / (4 / 3) - 1)))
        if "2d" in said["alone"]:
            one = said["alone"]["2d"]
            if "absent" not in one:
                note("accepts", name, 0.0 if "error" in one else 1.0)
        if "2d" in said["far"]:
            note("far", name, far_error(said["far"], 3000))
        for mean in (0, 5):
            value = said["second"].get(f"product_mean{mean}") if "gradient_mean0" in said["second"] else None
            if isinstance(value, float):
                note("product", name, max(value, found.get("product", {}).get(name, 0.0)))
        if "after_51" in said["spoiled"]:
            note("spoiled", name, float(math.isnan(said["spoiled"]["after_51"][0])))
        if "output_mean" in said["default"]:
            note("evaluates", name, float(abs(said["default"]["output_mean"] - 10) < 0.1))
    return found


#: The libraries that the claims judge; those without training have no derivative.
JUDGED = tuple(
    "torch spikingjelly snntorch flax_linen flax_nnx equinox_ema equinox_batch haiku keras_jax keras_torch "
    "keras_tensorflow tensorflow_fused paddle mindspore mlx chainer onnx_reference onnxruntime".split()
)
QUANTITIES = tuple("unbiased epsilon root far accepts forgets product spoiled carried".split())


def for_claims(answers: Answers) -> dict[str, dict[str, float]]:
    """What `judged` found, NaN where a library that a claim names gave no number."""
    found = judged(answers)
    return {
        quantity: dict.fromkeys(JUDGED, math.nan) | found.get(quantity, {}) for quantity in QUANTITIES
    } | {quantity: of for quantity, of in found.items() if quantity not in QUANTITIES}


RATIOS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)  # of `questions`
LOST = 1e4  # what stands for an output that is not finite: more than any finite error that was seen


def far_error(far: Mapping[str, Any], ratio: int) -> float | None:
    """Largest error of an output at a mean over deviation, over both shapes; LOST where one is not finite."""
    place, rows = (
        RATIOS.index(ratio),
        [far[key] for key in ("2d", "4d") if isinstance(far[key]["lost"][0], int | float)],
    )
    if not rows:
        return None
    if any(row["lost"][place] for row in rows):
        return LOST
    return max(row["error"][place] for row in rows)


# ---- The table, in words ---------------------------------------------------------------------------------------------

COLUMNS = (
    "ε", "weight of the new batch", "running variance", "first batch", "one value a channel", "empty batch",
    "mean/deviation 3,000", "float16", "bfloat16", "constant channel's gradient", "before training", "mask",
    "Hessian products", "channels", "after one NaN", "told no mode",
)  # fmt: skip


def row(document: Mapping[str, Any]) -> list[str]:
    """A library's answers in words, a cell a column; – where it has no such thing."""
    said = document["answers"]
    tells = (_eps, _weight, _variance, _first, _alone, _empty, _far)
    halves = [_half(said["half"], dtype) for dtype in ("float16", "bfloat16")]
    last = (_constant, _before, _mask, _second, _axis, _spoiled, _default)
    return [*(tell(said) for tell in tells), *halves, *(tell(said) for tell in last)]


def _refused(answer: Mapping[str, Any]) -> str:
    """What stands in a cell that has no number: nothing to ask, or the kind of error."""
    if "absent" in answer:
        return "–"
    return (
        f"error: {answer['error'].split(':')[0]}"
        if "error" in answer and isinstance(answer["error"], str)
        else ""
    )


def _number(value: float, digits: int = 2) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞"
    return f"{value:.{digits}g}"


def _eps(said: Mapping[str, Any]) -> str:
    cells = []
    for mode in ("training", "evaluation"):
        found = said["epsilon"][mode]
        if "inside" in found:
            under = _same(found["inside"])
            cells.append(
                f"{_number(found['inside' if under else 'beside'][0])} {'under' if under else 'beside'} the root"
            )
    return " / ".join(dict.fromkeys(cells)) or _refused(said["epsilon"]["evaluation"])


def _weight(said: Mapping[str, Any]) -> str:
    found = said["weights"]
    if refused := _refused(found):
        return refused
    new = [round(each, 3) for each in found["new"]]
    return (
        f"{new[2]:g}" if len(set(new)) == 1 else ", ".join(f"{each:g}" for each in new) + " (batch 1, 2, 10)"
    )


def _variance(said: Mapping[str, Any]) -> str:
    found = said["variance"]
    if refused := _refused(found):
        return refused
    if not found["2d_mean_weight"]:
        return "does not move"
    words = {"1/m": 1.0, "1/(m-1)": 4 / 3}, {"1/m": 1.0, "1/(m-1)": 36 / 35}
    named = [
        next(
            (word for word, factor in each.items() if abs(found[key] / factor - 1) < 0.005),
            _number(found[key], 4),
        )
        for key, each in zip(("2d", "4d"), words, strict=True)
        if key in found
    ]
    return named[0] if len(set(named)) == 1 else f"{named[0]} (2-D), {named[1]} (4-D)"


def _first(said: Mapping[str, Any]) -> str:
    found = said["used"]
    if refused := _refused(found):
        return refused
    return f"mean {_number(found['1']['mean'], 3)}, variance {_number(found['1']['variance'], 3)}"


def _alone(said: Mapping[str, Any]) -> str:
    found = said["alone"].get("2d", said["alone"])
    if refused := _refused(found):
        return refused
    y, var = found["output"][0], found["statistics"][1][0]
    return f"output {_number(y)}, variance {_number(var, 3)}"


def _empty(said: Mapping[str, Any]) -> str:
    found = said["empty"].get("2d", said["empty"])
    if refused := _refused(found):
        return refused
    mean, var = (each[0] for each in found["statistics"])
    return f"mean {_number(mean)}, variance {_number(var, 3)}"


def _far(said: Mapping[str, Any]) -> str:
    if refused := _refused(said["far"]):
        return refused
    error = far_error(said["far"], 3000)
    return "–" if error is None else "NaN" if error == LOST else _number(error)


def _half(said: Mapping[str, Any], dtype: str) -> str:
    cells = []
    for name, word in (("default", ""), ("cast", "cast: ")):
        found = said.get(f"{dtype}_{name}", said)
        refused = _refused(found)
        if refused and refused != "–":
            cells.append(word + refused)
        elif not refused:
            far = found["far"]["error"]
            kinds = dict.fromkeys(found["statistics"])
            cells.append(f"{word}{found['output']}, statistics {'/'.join(kinds)}, at 30,000 {_number(far)}")
    return "; ".join(cells) or "–"


def _constant(said: Mapping[str, Any]) -> str:
    found = said["constant"]
    return _refused(found) or (
        "as the formula" if found["error"] < 1e-2 else f"error {_number(found['error'])}"
    )


def _before(said: Mapping[str, Any]) -> str:
    found = said["untrained"]
    return _refused(found) or f"{_number(found['output'], 4)} for 2"


def _mask(said: Mapping[str, Any]) -> str:
    found = said["mask"]
    if refused := _refused(found):
        return "none" if refused == "–" else refused
    return "yes" if abs(found["scale"] / found["scale_of_kept"] - 1) < 1e-3 else "taken, not used"


def _second(said: Mapping[str, Any]) -> str:
    found = said["second"]
    if refused := _refused(found):
        return refused
    worst = [found[f"product_mean{mean}"] for mean in (0, 5)]
    if isinstance(worst[0], Mapping):
        return _refused(worst[0])
    return "right" if max(worst) < 1e-3 else f"off by {max(worst):.0%}"


def _axis(said: Mapping[str, Any]) -> str:
    return _refused(said["axis"]) or said["axis"]["channels"]


def _spoiled(said: Mapping[str, Any]) -> str:
    found = said["spoiled"]
    return _refused(found) or (
        "NaN after 50" if math.isnan(found["after_51"][0]) else _number(found["after_51"][0])
    )


def _default(said: Mapping[str, Any]) -> str:
    found = said["default"]
    return _refused(found) or ("evaluates" if abs(found["output_mean"] - 10) < 0.1 else "trains")


def table(
    answers: Answers, columns: Iterable[str] = COLUMNS, missing: Mapping[str, str] | None = None
) -> Any:
    """The chosen columns of all libraries that answered, as a table for a notebook; of those that did not, why."""
    places = [COLUMNS.index(column) for column in columns]
    rows = []
    for name, document in answers.items():
        cells = row(document)
        rows.append([title(name), *(cells[place] for place in places)])
    rows += [[title(name), why] for name, why in (missing or {}).items()]
    return as_table(["library", *(COLUMNS[place] for place in places)], rows)


def as_table(head: list[str], rows: Iterable[list[str]]) -> Any:
    """Rows of words as a table for a notebook; what a row lacks of the head's cells is empty."""
    from IPython.display import Markdown

    cells = [[*(each.replace("|", "/") for each in row), *[""] * (len(head) - len(row))] for row in rows]
    return Markdown("\n".join(f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *cells)))


def title(name: str) -> str:
    """What the tables call a library."""
    return TITLES.get(name, name.replace("_", " "))


# ---- Carrying a network over ------------------------------------------------------------------------------------------

#: What a cell records, in this order.
CELL = ("as_is", "epsilon_set", "scaled", "mean_after", "variance_after", "by_formula_after")
#: What the tests read of a source: the worst of the other libraries, over these of its cells.
WORST = {
    "carry_as_is": ("as_is",),
    "carry_set": ("epsilon_set", "scaled"),
    "carry_later": ("mean_after", "by_formula_after"),
}


def cells(carried: Answers) -> dict[str, np.ndarray]:
    """carry.SOURCE.TARGET, shape (1, 6): the numbers of a cell."""
    return {
        f"carry.{source}.{target}": np.array([[found[key] for key in CELL]], float)
        for target, document in carried.items()
        for source, found in document["found"].items()
    }


def carried_for_claims(carried: Answers) -> dict[str, dict[str, float]]:
    """Quantity -> source -> the worst of its cells; NaN where one of the eight did not answer."""
    found = {}
    for quantity, keys in WORST.items():
        found[quantity] = dict.fromkeys(CARRIED, math.nan)
        for source in CARRIED:
            rows = [carried[t]["found"].get(source) for t in CARRIED if t != source and t in carried]
            if len(rows) == len(CARRIED) - 1 and all(rows):
                found[quantity][source] = max(row[key] for row in rows for key in keys)
    return found


def carried_table(carried: Answers) -> Any:
    """Sources down, targets across: the error of the answers carried as it is, and with ε set or γ changed."""
    rows = []
    for source in carried:
        found = [document["found"][source] for document in carried.values()]
        words = [f"{each['as_is']:.0e}, {max(each['epsilon_set'], each['scaled']):.0e}" for each in found]
        rows.append([title(source), *words])
    return as_table(["from, to", *map(title, carried)], rows)


def settings_table(carried: Answers) -> Any:
    """What each library calls ε, momentum and the four arrays, and in which order its axes stand."""
    head = "library, ε, momentum, running variance, channels, kernel, dense".split(", ")
    rows = []
    for name, document in carried.items():
        said = document["said"]
        eps, momentum = said["defaults"]
        weight = f"`{said['momentum']}`={momentum:g}, of the {'old' if said['turned'] else 'new'}"
        words = [
            title(name), f"`{said['epsilon']}`={eps:g}", weight, "1/(m-1)" if said["unbiased"] else "1/m",
            "last" if said["last"] else "second", said["kernel"], "(in, out)" if said["dense"] == "io" else "(out, in)",
            ", ".join(f"`{each}`" for each in said["names"]),
        ]  # fmt: skip
        rows.append(words)
    return as_table([*head, "γ, β, mean, variance"], rows)


# ---- The figure ------------------------------------------------------------------------------------------------------

#: One for each way to a variance that its errors tell apart; (label, dash, mark). The others lie on the first.
DRAWN = {
    "torch": ("torch", "-", "o"),
    "flax_linen": ("flax", "--", "s"),
    "haiku": ("haiku", ":", "^"),
    "keras_torch": ("keras on torch", "-.", "D"),
}


def far_means(results: Results) -> plt.Figure:
    """Largest error of an output by mean over deviation, a line a library; it ends where an output is not finite."""
    fig, axes = subplots(1, 2, figsize=(8.2, 3.2), sharey=True)
    ink = plt.rcParams["text.color"]
    for ax, shape, title in zip(axes, ("2d", "4d"), ("256 examples", "16 images of 8 × 8"), strict=True):
        for name, (label, dash, mark) in DRAWN.items():
            if f"raw.{name}.far_{shape}" in results:
                lost = results[f"raw.{name}.far_{shape}_lost"][0]
                error = np.where(
                    np.nan_to_num(lost, nan=1.0) > 0, np.nan, results[f"raw.{name}.far_{shape}"][0]
                )
                ax.plot(RATIOS, error, linestyle=dash, marker=mark, markersize=4, color=ink, label=label)
        ax.set(xscale="log", yscale="log", xlabel="mean over deviation", title=title)
    axes[0].set_ylabel("largest error of an output")
    axes[0].legend()
    return fig


FIGURES = {"far": far_means}
