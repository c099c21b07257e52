"""What other tools measure on a network with batch norm: each is asked in an environment of its own, beside a dense matrix.

`python -m bnbook.chapters.other_tools` asks all of them from an empty cache and says in a line which is missing and why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
#: Tool, which is a function of `tools.py`, in the order of the table -> what the table calls it, and its packages
#: beside those of `COMMON`.
TOOLS = {
    "bnbook": ("bnbook.measure, largest eigenvalue", "bnbook"),
    "torch_autograd": ("torch.autograd, its hvp", ""),
    "torch_func": ("torch.func.hessian, with the recommended patch", ""),
    "pyhessian": ("PyHessian, largest eigenvalue", "pyhessian==0.1"),
    "hessian_eigenthings": ("hessian-eigenthings, Hessian products", "hessian-eigenthings==1.0.0a5"),
    "curvlinops": ("curvlinops, Hessian products", "curvlinops-for-pytorch==3.0.1"),
    "curvlinops_ggn": ("curvlinops, Gauss-Newton products, unchecked", "curvlinops-for-pytorch==3.0.1"),
    "curvlinops_kfac": ("curvlinops, trace of KFAC without γ and β", "curvlinops-for-pytorch==3.0.1"),
    "backpack": ("BackPACK, Gauss-Newton diagonal", "backpack-for-pytorch==1.7.1"),
    "backpack_gradients": ("BackPACK, gradients of examples", "backpack-for-pytorch==1.7.1"),
    "asdfghjkl": ("asdfghjkl, Fisher diagonal", "asdfghjkl==0.1a4"),
    "laplace": ("laplace-torch, Gauss-Newton matrix", "laplace-torch==0.3"),
    "avalanche_ewc": ("avalanche, importances of EWC", "avalanche-lib==0.6.0 torchvision==0.28.0"),
    "nngeometry": ("nngeometry, trace of the Fisher matrix", "nngeometry==0.4"),
    "lr_finder": ("torch-lr-finder, first loss", "torch-lr-finder==0.2.2"),
    "fastai_lr_find": ("fastai lr_find, first loss", "fastai==2.8.12 torchvision==0.28.0"),
    "lightning_lr_find": ("lightning lr_find, first loss", "lightning==2.6.6"),
    "loss_landscapes": ("loss-landscapes, loss at the point", "loss-landscapes==3.0.6"),
    "captum": ("captum, integrated gradients", "captum==0.9.0"),
    "grad_cam": ("grad-cam", "grad-cam==1.5.7 torchvision==0.28.0"),
    "torchattacks": ("torchattacks, FGSM", "torchattacks==3.5.1 torchvision==0.28.0"),
    "thop": ("thop", "thop==0.1.1.post2209072238"),
    "ptflops": ("ptflops, of one example", "ptflops==0.7.5"),
    "torchinfo": ("torchinfo", "torchinfo==1.8.0"),
    "torchsummary": ("torchsummary", "torchsummary==1.5.1"),
    "fvcore": ("fvcore", "fvcore==0.1.5.post20221221"),
    "torch_flops": ("torch's FlopCounterMode", ""),
    "calflops": ("calflops", "calflops==0.3.2 transformers==5.24.0"),
    "fastai_freeze": ("fastai, train_bn=False", "fastai==2.8.12 torchvision==0.28.0"),
    "lightning_freeze": ("lightning, train_bn=False", "lightning==2.6.6"),
    "timm_freeze": ("timm, freeze", "timm==1.0.31 torchvision==0.28.0"),
    "avalanche_freeze": ("avalanche, freeze_everything", "avalanche-lib==0.6.0 torchvision==0.28.0"),
    "torch_update_bn": ("torch's update_bn", ""),
    "torch_averaged": ("torch's AveragedModel", ""),
    "ema_pytorch": ("ema-pytorch", "ema-pytorch==0.8.3"),
    "timm_ema": ("timm, ModelEmaV3", "timm==1.0.31 torchvision==0.28.0"),
    "flwr": ("flwr, FedAvg's average", "flwr==1.42.0"),
    "torch_export": ("torch.export", ""),
    "higher": ("higher, inner loop", "higher==0.2.1"),
    "learn2learn": ("learn2learn, MAML's clone", "learn2learn==0.2.0 gym==0.26.2"),
    "torchopt": ("torchopt, one step and back", "torchopt==0.7.3"),
    "opacus": ("opacus, make_private", "opacus==1.6.0"),
}
COMMON = "torch==2.13.0 numpy==2.4.6 setuptools==80.9.0"
#: Its build ends with Python 3.10, and what it asks for beside does not build; MAML needs none of that.
LEARN2LEARN = Environment(
    f"{TOOLS['learn2learn'][1]} {COMMON}".replace("numpy==2.4.6", "numpy==2.2.6"),
    "==3.10.*",
    """[tool.uv]
override-dependencies = ["qpth ; sys_platform == 'never'", "scikit-learn ; sys_platform == 'never'"]""",
)
#: Those that need no other environment.
HERE = ("bnbook", "torch_autograd")
STATISTICS = ("batch", "detached", "population")
WORDS = {"batch": "the batch's", "detached": "the batch's, as constants", "population": "running averages"}
#: Those that give a curvature; of a network in training mode; and those that are to leave a network as it was.
CURVATURE = tuple(
    "bnbook torch_autograd torch_func pyhessian hessian_eigenthings curvlinops curvlinops_ggn backpack "
    "backpack_gradients asdfghjkl laplace avalanche_ewc nngeometry".split()
)
CURVATURE_TRAINING = tuple(
    name for name in CURVATURE if name not in ("curvlinops", "curvlinops_ggn", "backpack", "nngeometry")
)
ASKED = tuple(
    name for name in TOOLS if not name.endswith("freeze") and name not in ("torch_update_bn", "flwr")
)
EQUAL = 0.01  # relative error below which a number counts as that of a dense matrix


def program(name: str) -> str:
    """What asks a tool, with its packages in its head."""
    held = LEARN2LEARN if name == "learn2learn" else Environment(f"{TOOLS[name][1]} {COMMON}")
    return held.program(FOLDER, "network, tools", f"network.ask(tools.{name}, {name!r}, {held.said})")


def chosen(words: str) -> list[str]:
    """The tools of a parameter: "every", "here" (no other environment), or names separated by commas."""
    return asked.chosen(words, TOOLS, HERE)


def ask(names: Iterable[str], cache: str | None = None, workers: int = 2) -> tuple[Answers, dict[str, str]]:
    """What each tool told and changed, and of each that could not be asked in a line why."""
    names = list(names)
    if unknown := set(names) - set(TOOLS):
        raise BnbookError(f"no tool {sorted(unknown)}; there are {', '.join(TOOLS)}")
    return asked.ask({name: program(name) for name in names}, HERE, cache, workers)


def errors(answers: Answers, mode: str = "training") -> dict[str, np.ndarray]:
    """error.TOOL, shape (1, 3): the relative error against the dense number by batch, detached and running statistics."""
    told = {name: document["modes"][mode] for name, document in answers.items()}
    return {
        f"error.{name}": np.array([[each["error_by"][s] for s in STATISTICS]])
        for name, each in told.items()
        if "error_by" in each
    }


#: The tools that the claims judge, by quantity.
JUDGED = {
    "batch": CURVATURE_TRAINING,
    "any": CURVATURE_TRAINING,
    "evaluation": CURVATURE,
    "loss": ("lr_finder", "fastai_lr_find", "lightning_lr_find", "loss_landscapes"),
    "moved": ASKED,
    "left": ASKED,
    "frozen": tuple(
        f"{name}_freeze_{kind}"
        for name in ("fastai", "lightning", "timm", "avalanche")
        for kind in ("2d", "1d")
    ),
}


def judged(answers: Answers) -> dict[str, dict[str, float]]:
    """What the tests read: quantity -> tool -> number, NaN where a tool that a claim names gave none.

    batch: relative error of a curvature in training mode against the dense one with the batch's statistics; any: the
    smallest error over the three; evaluation: its error in evaluation mode against the dense one with running averages;
    loss: the error of the loss of a network in evaluation mode by running averages; moved: 1 where running statistics or
    counter are not as before, in training mode; left: how many of parameters, mode, requires_grad, gradients, hooks and
    other buffers are not as before, in the worst of three modes; frozen: how far an example's answer moves with its batch.
    """
    found: dict[str, dict[str, float]] = {key: dict.fromkeys(of, math.nan) for key, of in JUDGED.items()}

    def note(quantity: str, name: str, value: float) -> None:
        if name in found[quantity]:
            found[quantity][name] = float(value)

    for name, document in answers.items():
        modes = document["modes"]
        training, evaluation = modes["training"], modes["evaluation"]
        if "error_by" in training:
            note("batch", name, training["error_by"]["batch"])
            note("any", name, min(training["error_by"].values()))
        if "error_by" in evaluation:
            note("evaluation", name, evaluation["error_by"]["population"])
            note("loss", name, evaluation["error_by"]["population"])
        note("moved", name, bool({"running", "counter"} & set(training["changed"])))
        note("left", name, max(len(set(each["changed"]) - {"running", "counter"}) for each in modes.values()))
        for kind, layer in training.get("frozen", {}).items():
            note("frozen", f"{name}_{kind}", layer["depends_on_batch"])
    return found


def answer(told: Mapping[str, Any]) -> str:
    """What a tool gave, in words: to which statistics its number belongs, with its relative error, or what it told."""
    if "error" in told:
        return f"refuses: {told['error'].split(':')[0]}"
    words = []
    if "error_by" in told:
        best = min(told["error_by"], key=told["error_by"].get)
        if told["error_by"][best] < EQUAL:
            words.append(f"{WORDS[best].removeprefix('running ')}, {told['error_by'][best]:.0e}")
        elif told.get("error_by_shares", math.inf) < EQUAL:
            words.append(f"the batch's, examples' shares, {told['error_by_shares']:.0e}")
        else:
            words.append(f"none of the three; off the batch's by {told['error_by']['batch']:.0%}")
    frozen: dict[str, list[str]] = {}
    for kind, layer in told.get("frozen", {}).items():
        uses = "the batch" if layer["depends_on_batch"] > 1e-6 else "averages"
        moves = ", and averages move" if layer["moves"] else ""
        frozen.setdefault(uses + moves, []).append(f"BatchNorm{kind}")
    words += [f"then normalizes by {way} ({', '.join(kinds)})" for way, kinds in frozen.items()]
    if "depends_on_batch" in told:
        words.append(f"moves by {told['depends_on_batch']:.0%} with the rest of the batch")
    if "count" in told:
        words.append(f"{told['count']:,.0f} operations")
    if "statistics_moved_by" in told:
        words.append(
            f"weights {told['weights_moved_by']:.2g} of the way, statistics {told['statistics_moved_by']:.2g}"
        )
    if "copy" in told:
        words.append(
            "its copy moves your statistics" if told["copy"]["moves_original"] else "its copy is its own"
        )
    if "said" in told:
        words.append(told["said"])
    return "; ".join(words) or "–"


def changes(told: Mapping[str, Any]) -> str:
    """What a tool changed, in words."""
    return ", ".join("averages" if each == "running" else each for each in told["changed"]) or "nothing"


def table(answers: Answers, missing: Mapping[str, str]) -> Any:
    """A tool a row: what it gives of a network in training and in evaluation, and what it changes in three modes."""
    head = [
        "tool",
        "in training mode",
        "in evaluation",
        "changes in training",
        "in evaluation",
        "with frozen norms",
    ]
    rows = []
    for name, document in answers.items():
        modes = document["modes"]
        first, second = answer(modes["training"]), answer(modes["evaluation"])
        cells = [TOOLS[name][0], first, "the same" if second == first else second]
        cells += [changes(modes[mode]) for mode in ("training", "evaluation", "partly")]
        rows.append(cells)
    rows += [[TOOLS[name][0], f"not asked: {why}"] for name, why in missing.items()]
    return asked.markdown(head, rows)


def against_dense(results: Results) -> plt.Figure:
    """Relative error of each tool's number against the dense one, a mark a kind of statistics."""
    names = [key.removeprefix("error.") for key in results if key.startswith("error.")]
    errors = np.maximum([results[f"error.{name}"][0] for name in names], 1e-9)
    arms = {
        f"by {statistics}": dict(
            x=errors[:, place],
            y=range(len(names)),
            look=mark,
            fillstyle="full" if mark == "o" else "none",
            label=WORDS[statistics],
            markersize=6,
        )
        for place, (statistics, mark) in enumerate(zip(STATISTICS, "osx", strict=True))
    }
    arms["equal"] = dict(x=[EQUAL, EQUAL], y=[-0.6, len(names) - 0.4], look=":", linewidth=0.6)
    panel = Panel(rows=[TOOLS[name][0].split(",")[0] for name in names], log="x", xlabel="relative error")
    return compare(results, [panel], arms, figsize=(7.2, 0.8 + 0.32 * len(names)), legend="below")
