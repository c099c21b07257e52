"""Batch norm in other people's libraries: each is asked in an environment of its own, and its answers are numbers.

`python -m bnbook.chapters.libraries` asks all of them from an empty cache and says in a line which is missing and why.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import asked
from bnbook.chapters.asked import Answers, Environment
from bnbook.errors import BnbookError
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Library:
    """What asks it: the class of its layer and of its network, if it has one, in a module of this folder; its packages."""

    module: str
    layer: str
    environment: Environment
    net: str = ""
    title: str = ""

    def program(self, call: str, what: str, name: str, *more: str) -> str:
        given = "".join(f", {each!r}" for each in (name, self.environment.said, *more))
        return self.environment.program(
            FOLDER, f"{call.split('.')[0]}, {self.module}", f"{call}({self.module}.{what}{given})"
        )


def _torch(layer: str, packages: str = "", title: str = "", net: str = "") -> Library:
    return Library("in_torch", layer, Environment(f"{packages} torch==2.13.0 numpy==2.4.6"), net, title)


def _jax(packages: str, module: str, layer: str, net: str = "", title: str = "") -> Library:
    held = Environment(f"{packages} jax==0.12.0.1 numpy==2.4.6", ">=3.12,<3.14")
    return Library(module, layer, held, net, title)


def _other(
    module: str, packages: str, python: str = ">=3.11,<3.14", layer: str = "Layer", **more: str
) -> Library:
    return Library(module, layer, Environment(packages, python), **more)


_MLX = "mlx[cpu]==0.32.4;sys_platform=='linux' mlx==0.32.4;sys_platform=='darwin' numpy==2.4.6"
_FLAX, _EQUINOX, _KERAS = "flax==0.12.12", "equinox==0.13.8", "keras==3.15.1"
_TENSORFLOW, _ONNX, _SETUPTOOLS = "tensorflow-cpu==2.21.0", "onnx==1.23.2 numpy==2.4.6", "setuptools==80.9.0"
#: In the order of the tables.
LIBRARIES = {
    "torch": _torch("Torch", net="Net"),
    "torchvision_frozen": _torch("Frozen", "torchvision==0.28.0", "torchvision, frozen"),
    "timm": _torch("Timm", "timm==1.0.31 torchvision==0.28.0"),
    "torch_geometric": _torch("Geometric", "torch_geometric==2.8.1"),
    "spikingjelly": _torch("Spiking", f"spikingjelly==2.0.0 {_SETUPTOOLS}"),
    "snntorch": _torch("ThroughTime", "snntorch==1.0.0"),
    "torch_ao_qat": _torch("Quantized", title="torch.ao, ConvBn2d"),
    "brevitas": _torch("Brevitas", f"brevitas==0.13.4 {_SETUPTOOLS}"),
    "flax_linen": _jax(_FLAX, "in_jax", "Linen", "LinenNet", "flax linen"),
    "flax_nnx": _jax(_FLAX, "in_jax", "Nnx", title="flax nnx"),
    "equinox_ema": _jax(_EQUINOX, "in_jax", "Ema", title="equinox, ema"),
    "equinox_batch": _jax(_EQUINOX, "in_jax", "Batch", "EquinoxNet", "equinox, batch"),
    "haiku": _jax("dm-haiku==0.0.17", "in_jax", "Haiku", "HaikuNet"),
    "keras_jax": _jax(_KERAS, "in_keras_jax", "Layer", "Net", "keras on jax"),
    "keras_torch": _other(
        "in_keras_torch", f"{_KERAS} torch==2.13.0 numpy==2.4.6", "==3.11.*", title="keras on torch"
    ),
    "keras_tensorflow": _other("in_keras_tensorflow", f"{_KERAS} {_TENSORFLOW}", title="keras on tensorflow"),
    "tensorflow_fused": _other("in_tensorflow", _TENSORFLOW, layer="Fused", title="tensorflow, fused"),
    "paddle": _other("in_paddle", f"paddlepaddle==3.3.1 numpy==2.4.6 {_SETUPTOOLS}", "==3.11.*", net="Net"),
    "mindspore": _other("in_mindspore", "mindspore==2.10.0 numpy==1.26.4", "==3.11.*"),
    "mlx": _other("in_mlx", _MLX, net="Net"),
    "tinygrad": _other("in_tinygrad", "tinygrad==0.14.0 numpy==2.4.6"),
    "jittor": _other("in_jittor", f"jittor==1.3.11.0 numpy==1.26.4 {_SETUPTOOLS}", "==3.11.*"),
    "chainer": _other("in_chainer", "chainer==7.8.1 numpy==1.23.5 setuptools==59.8.0", "==3.8.*", net="Net"),
    "nnabla": _other("in_nnabla", "nnabla==1.39.0 numpy==1.26.4 setuptools==79.0.1", "==3.10.*"),
    "onnx_reference": _other("in_onnx", _ONNX, layer="Reference", title="onnx, reference"),
    "onnxruntime": _other("in_onnx", f"onnxruntime==1.31.1 {_ONNX}", layer="Runtime"),
    "openvino": _other("in_onnx", f"openvino==2026.4.1 {_ONNX}", layer="Openvino"),
    "ncnn": _other("in_ncnn", "ncnn==1.0.20261020 numpy==2.4.6"),
}
#: Asked by name only, and why.
BY_NAME = {
    "jittor": "not compiled: it compiles itself at its first import, for more than an hour of two busy cores"
}
#: Those whose small network is carried over (`carrying.py`).
CARRIED = [name for name, library in LIBRARIES.items() if library.net]


def chosen(words: str) -> list[str]:
    """The libraries of a parameter: "every", or names separated by commas."""
    return asked.chosen(words, [name for name in LIBRARIES if name not in BY_NAME])


def ask(names: Iterable[str], cache: str | None = None, workers: int = 2) -> tuple[Answers, dict[str, str]]:
    """The answers of each library that could be asked, and of each other in a line why not; torch alone is asked in
    this environment, everything else in one of its own."""
    names = list(names)
    if unknown := set(names) - set(LIBRARIES):
        raise BnbookError(f"no probe of {sorted(unknown)}; there are {', '.join(LIBRARIES)}")
    programs = {name: LIBRARIES[name].program("questions.ask", LIBRARIES[name].layer, name) for name in names}
    return asked.ask(programs, _here(names), cache, workers)


def carry(names: Iterable[str], cache: str | None = None, workers: int = 2) -> tuple[Answers, dict[str, str]]:
    """What each target answers of each source, found[source] in its answer, of those of the names that have a network;
    and of each that is missing in a line why."""
    names = [name for name in names if name in CARRIED]
    here = _here(names)

    def run(names: Iterable[str], doing: str) -> tuple[Answers, dict[str, str]]:
        given = {name: LIBRARIES[name] for name in names}
        programs = {
            name: each.program("carrying.main", each.net, name, doing, folder) for name, each in given.items()
        }
        return asked.ask(programs, here, cache, workers)

    with tempfile.TemporaryDirectory() as folder:
        trained, missing = run(names, "train")
        carried, lost = run(trained, "carry")
    return carried, missing | lost


def _here(names: list[str]) -> list[str]:
    return names if names == ["torch"] else []


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


def _refused(answer: Mapping[str, Any]) -> str:
    """What stands in a cell that has no number: nothing to ask, or the kind of error."""
    if "absent" in answer:
        return "–"
    error = answer.get("error")
    return f"error: {error.split(':')[0]}" if isinstance(error, str) else ""


def _number(value: float, digits: int = 2) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞"
    return f"{value:.{digits}g}"


def _eps(found: Mapping[str, Any]) -> str:
    cells = []
    for mode in ("training", "evaluation"):
        if "inside" in found[mode]:
            way, word = ("inside", "under") if _same(found[mode]["inside"]) else ("beside", "beside")
            cells.append(f"{_number(found[mode][way][0])} {word} the root")
    return " / ".join(dict.fromkeys(cells)) or _refused(found["evaluation"])


def _weight(found: Mapping[str, Any]) -> str:
    new = [f"{round(each, 3):g}" for each in found["new"]]
    return new[2] if len(set(new)) == 1 else ", ".join(new) + " (batch 1, 2, 10)"


def _variance(found: Mapping[str, Any]) -> str:
    if not found["2d_mean_weight"]:
        return "does not move"
    named = []
    for key, unbiased in (("2d", 4 / 3), ("4d", 36 / 35)):
        if key in found:
            factors = {"1/m": 1.0, "1/(m-1)": unbiased}
            near = [word for word, factor in factors.items() if abs(found[key] / factor - 1) < 0.005]
            named.append(near[0] if near else _number(found[key], 4))
    return named[0] if len(set(named)) == 1 else f"{named[0]} (2-D), {named[1]} (4-D)"


def _first(found: Mapping[str, Any]) -> str:
    return f"mean {_number(found['1']['mean'], 3)}, variance {_number(found['1']['variance'], 3)}"


def _alone(found: Mapping[str, Any]) -> str:
    return f"output {_number(found['output'][0])}, variance {_number(found['statistics'][1][0], 3)}"


def _empty(found: Mapping[str, Any]) -> str:
    mean, var = (each[0] for each in found["statistics"])
    return f"mean {_number(mean)}, variance {_number(var, 3)}"


def _far(found: Mapping[str, Any]) -> str:
    error = far_error(found, 3000)
    return "–" if error is None else "NaN" if error == LOST else _number(error)


def _half(said: Mapping[str, Any], dtype: str) -> str:
    cells = []
    for name, word in (("default", ""), ("cast", "cast: ")):
        found = said.get(f"{dtype}_{name}", said)
        refused = _refused(found)
        if refused and refused != "–":
            cells.append(word + refused)
        elif not refused:
            kinds = "/".join(dict.fromkeys(found["statistics"]))
            far = _number(found["far"]["error"])
            cells.append(f"{word}{found['output']}, statistics {kinds}, at 30,000 {far}")
    return "; ".join(cells) or "–"


def _mask(found: Mapping[str, Any]) -> str:
    if refused := _refused(found):
        return "none" if refused == "–" else refused
    return "yes" if abs(found["scale"] / found["scale_of_kept"] - 1) < 1e-3 else "taken, not used"


def _second(found: Mapping[str, Any]) -> str:
    worst = [found[f"product_mean{mean}"] for mean in (0, 5)]
    if isinstance(worst[0], Mapping):
        return _refused(worst[0])
    return "right" if max(worst) < 1e-3 else f"off by {max(worst):.0%}"


def _spoiled(found: Mapping[str, Any]) -> str:
    left = found["after_51"][0]
    return "NaN after 50" if math.isnan(left) else _number(left)


def _or_refused(tell: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda found: _refused(found) or tell(found)


#: Column -> the question, and what tells its answer in words.
COLUMNS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "ε": ("epsilon", _eps),
    "weight of the new batch": ("weights", _or_refused(_weight)),
    "running variance": ("variance", _or_refused(_variance)),
    "first batch": ("used", _or_refused(_first)),
    "one value a channel": ("alone", lambda found: _or_refused(_alone)(found.get("2d", found))),
    "empty batch": ("empty", lambda found: _or_refused(_empty)(found.get("2d", found))),
    "mean/deviation 3,000": ("far", _or_refused(_far)),
    "float16": ("half", lambda found: _half(found, "float16")),
    "bfloat16": ("half", lambda found: _half(found, "bfloat16")),
    "constant channel's gradient": (
        "constant",
        _or_refused(
            lambda found: "as the formula" if found["error"] < 1e-2 else f"error {_number(found['error'])}"
        ),
    ),
    "before training": ("untrained", _or_refused(lambda found: f"{_number(found['output'], 4)} for 2")),
    "mask": ("mask", _mask),
    "Hessian products": ("second", _or_refused(_second)),
    "channels": ("axis", _or_refused(lambda found: found["channels"])),
    "after one NaN": ("spoiled", _or_refused(_spoiled)),
    "told no mode": (
        "default",
        _or_refused(lambda found: "evaluates" if abs(found["output_mean"] - 10) < 0.1 else "trains"),
    ),
}


def row(document: Mapping[str, Any], columns: Iterable[str] = tuple(COLUMNS)) -> list[str]:
    """A library's answers in words, a cell a column; – where it has no such thing."""
    return [tell(document["answers"][question]) for question, tell in map(COLUMNS.__getitem__, columns)]


def table(
    answers: Answers, columns: Sequence[str] = tuple(COLUMNS), missing: Mapping[str, str] | None = None
) -> Any:
    """The chosen columns of all libraries that answered, as a table for a notebook; of those that did not, why."""
    rows = [[title(name), *row(document, columns)] for name, document in answers.items()]
    rows += [[title(name), why] for name, why in (missing or {}).items()]
    return asked.markdown(["library", *columns], rows)


def title(name: str) -> str:
    """What the tables call a library."""
    return LIBRARIES[name].title or name.replace("_", " ")


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
    return asked.markdown(["from, to", *map(title, carried)], rows)


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
    return asked.markdown([*head, "γ, β, mean, variance"], rows)


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

    def errors(start: str) -> np.ndarray:
        lost = np.nan_to_num(results[f"{start}_lost"][0], nan=1.0) > 0
        return np.where(lost, np.nan, results[start][0])

    panels = [
        Panel(
            title=title,
            arms={
                name: dict(y=errors(f"raw.{name}.far_{shape}"), look=mark + dash, label=label)
                for name, (label, dash, mark) in DRAWN.items()
                if f"raw.{name}.far_{shape}" in results
            },
        )
        for shape, title in {"2d": "256 examples", "4d": "16 images of 8 × 8"}.items()
    ]
    words = dict(log="xy", xlabel="mean over deviation", ylabel="largest error of an output")
    return compare(results, panels, figsize=(8.2, 3.2), x=RATIOS, sharey=True, **words)


FIGURES = {"far": far_means}
