"""What is left out of a call, and every number that a measuring module names: as the sources say, or as
chosen once."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import bnbook
from bnbook import figures, models, normalizers
from bnbook.chapters import residual as residual_networks
from bnbook.chapters.exercises import Arm
from bnbook.chapters.gradient_explosion import chain, growth, residual
from bnbook.chapters.stand_ins import StandIn
from bnbook.chapters.weight_decay import Recipe, answers, answers_by_step
from bnbook.deep_linear import LinearArm, draw_problem, spread_probes
from bnbook.deep_linear.network import Network
from bnbook.normalizers import formulas, lp, noisy, per_example
from bnbook.normalizers.batch import BatchNorm
from bnbook.normalizers.standardized import Affine
from bnbook.probes import fisher
from bnbook.small_networks import PhaseArm
from bnbook.training.tuned import TunedArm
from bookpress import results, stamp
from bookpress.pipeline.chapters import discover
from bookpress.runs import kinds

DRAWN = dict(sigma_w2=2.0, gamma=1.0)
IMAGES = dict(classes=10, channels=3, image_size=32, width=1.0)
NOISE = dict(n_mu=0.5, n_sigma=1.25, r_mu=0.1, r_sigma=0.1, spread="deviation", per="unit", dim=0)
RUNNING = dict(eps=1e-5, momentum=0.1, dim=0)

DEFAULTS = [
    (models.mlp, DRAWN | dict(widths=(784, 1000, 1000, 1000, 10), norm="none", init="glorot", sigma_b2=0.5)),
    (models.cnn, DRAWN | dict(image=(3, 32, 32), channels=(30, 60, 90), kernel=3, stride=2, outputs=10)),
    (models.cnn, dict(norm="none", init="meanfield", sigma_b2=0.5)),
    (models.deep_linear, dict(depth=25, width=10, norm="none", init="glorot", normalize_last=False)),
    (models.deep_linear, dict(bias=False, sigma_w2=1.0, sigma_b2=0.0, gamma=1.0)),
    (models.vgg, DRAWN | IMAGES | dict(norm="none", init="glorot", sigma_b2=0.5)),
    (models.vgg16, DRAWN | IMAGES | dict(norm="batch", init="meanfield", sigma_b2=0.0)),
    (models.resnet, DRAWN | IMAGES | dict(norm="batch", init="meanfield", sigma_b2=0.0)),
    (normalizers.make_normalizer, dict(dim=0)),
    (BatchNorm, RUNNING),
    (lp.LpNorm, RUNNING | dict(p=2)),
    (noisy.Noise, NOISE),
    (noisy.NoisyBatchNorm, NOISE | RUNNING),
    (per_example.GroupNorm, dict(dim=0, groups=32, eps=1e-5)),
    (per_example.LayerNorm, dict(dim=0, eps=1e-5)),
    (per_example.InstanceNorm, dict(dim=2, eps=1e-5)),
    (per_example.RmsNorm, dict(dim=0, eps=1e-5)),
    (Affine, dict(dim=0, centred=False, momentum=0.1)),
    (TunedArm, dict(optimizer="sgd", warm_up=0, clip=0.0, lengths_kept=False)),
    *((of, dict(eps=1e-5)) for of in (formulas.batch_norm_forward, formulas.batch_norm_backward)),
    *((of, dict(eps=1e-5)) for of in (formulas.fold_into_linear, formulas.fold_into_convolution)),
    (answers, dict(norm="batch", eps=1e-30, statistics=None, used=None)),
    (answers_by_step, dict(norm="batch", eps=1e-30)),
    (residual_networks.answers, dict(keep=None, given=None, watch=None)),
    (residual_networks.normalized, dict(norm="batch")),
    (residual_networks.draw, dict(classes=10, dtype=torch.float32)),
    (residual_networks.images, dict(dtype=torch.float32)),
    (residual_networks.Arm, dict(norm="none", alpha=1.0, learned=False, gamma=1.0, divisor=1.0, skip=True)),
    (Recipe, dict(momentum=0.0, decayed="hidden", norm="batch", optimizer="sgd")),
    (Arm, dict(norm="batch", places=(0, 1, 2, 3), affine=True, after=False, dropout=False)),
    (Arm, dict(biases=True, sigmoid=False)),
    (StandIn, dict(statistics=None, weights=None, alpha=None, meet=False, after=False, frozen=False)),
    (StandIn, dict(only=None, gain=1.0, shaken=0.0)),
    (chain, DRAWN | dict(phi="relu", normalized=None, sigma_b2=0.0)),
    (residual, DRAWN | dict(phi="relu")),
    (growth, dict(m=None, gamma=1.0, beta=0.0, kinks=())),
    (fisher.largest_eigenvalue, dict(outputs=0, parameters="weights", statistics="batch", tolerance=1e-5)),
    (Network, dict(norm="none", eps=1e-5, normalize_last=False, affine=True, scale=1.0)),
    (draw_problem, dict(depth=25, width=10, examples=1000, init="glorot", data_std=1.0)),
    (LinearArm, dict(norm="none", learning_rate=1e-6, steps=10_000, depth=25, width=10, examples=1000)),
    (LinearArm, dict(reduction="sum", init="glorot", data_std=1.0, normalize_last=False, affine=True)),
    (
        LinearArm,
        dict(momentum=0.0, eps=1e-5, probe_steps=(), random_lengths=(1.0, 30.0), covariate_shift=True),
    ),
    (LinearArm, dict(lengths=(0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 100.0))),
    (spread_probes, dict(regular=20, early=(1, 2, 5, 10, 20, 50, 100, 200, 300))),
    (PhaseArm, dict(network="fc", norm="batch", gamma=1.0, learning_rate=0.01, momentum=0.9, loss="squared")),
    (PhaseArm, dict(batch_size=128, steps=200, data="mnist", sigma_w2=2.0, sigma_b2=0.5, examples=0)),
    (PhaseArm, dict(hidden=(1000, 1000, 1000), test_examples=0)),
]


@pytest.mark.parametrize("of, expected", DEFAULTS, ids=lambda x: getattr(x, "__name__", ""))
def test_defaults(of, expected):
    found = {name: p.default for name, p in inspect.signature(of).parameters.items()}
    assert {name: found[name] for name in expected} == expected


#: Parts of the package whose numbers decide what is measured.
MEASURING = "curves probes chapters training models normalizers meanfield small_networks deep_linear".split()
BETWEEN = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 100.0)
CONSTANTS = {
    "chapters.exercises": dict(
        CLASSES=10, CHANNELS=(6, 16), UNITS=(120, 84), KERNEL=5, EPS=1e-5, RIDGE=1e-3, BINS=16, SEEN=32
    )
    | dict(HALF=0.6744897501960817, DROPPED=0.5, NEWEST={"usual": 0.1, "textbook": 0.9}, LOOKED=2000)
    | dict(MASKS=2_000_003),
    "probes.order_parameters": dict(CHUNK=64),
    "probes.summaries": dict(PAPER_REACH=(0.5, 4.0)),
    "chapters.batch": dict(CHANNELS=(16, 32, 64), HIDDEN=64, PER_GROUP=8, CHUNK=512),
    "chapters.best_rate": dict(MOMENTUM=0.9, DECAY=0.01),
    "chapters.deep_linear": dict(PAPER=1e-6, TINY=(1e-10, 1e-9), ALIGNED=0.9, NEAR=0.05, DRAWN=110),
    "chapters.edge": dict(POOL=4, SIGMA_W2=0.5, BATCHES=2_000_003, TOLERANCE=1e-3, FRESH=3_000_017)
    | dict(LENGTHS=(0.05, 0.5, 1.0, 2.0, 4.0, 16.0), REACH=(0.5, 4.0), STEEPEST=100.0),
    "chapters.gamma_initialisation": dict(WINDOW=25, POINTS=100),
    "chapters.gradient_explosion": dict(KINK=2.7, STEEPNESS=20.0, HEIGHT=0.5, CLASSES=10, GUESS=0.1)
    | dict(PANELS=48, ORDER=8),
    "chapters.halfspaces": dict(BRACKET=(-16.0, 16.5), FLOOR=1e-11, AWAY=1e-5),
    "chapters.ingredients": dict(EPS=1e-5, GIVEN_UP=20, NEAR=0.05, FAR=16.0),
    "chapters.learning_rate": dict(LARGEST=2.0, POINTS=60),
    "chapters.least_squares": dict(FLOOR=1e-20),
    "chapters.length_direction": dict(RIPPLE=math.sqrt(math.e), SLACK=1e-9),
    "chapters.lp_norms": dict(EXAMPLES=1000, PAPER=1e-6),
    "chapters.mean_field": dict(STARTS={"from0": 0.0, "from1": 1.0}, PARTS=4, TOLERANCE=1e-4),
    "chapters.neural_networks": dict(
        LARGEST_BEND=4 / 27**0.5, AWAY=1e-4, SINGULAR=1e-6, BRACKET=(-4.0, 4.25)
    ),
    "chapters.noisy_batch_norm": dict(STRONG=(2.0, 4.0), WEAK=(0.1, 0.3))
    | dict(WIDTHS={name: NOISE[name] for name in ("n_mu", "n_sigma", "r_mu", "r_sigma")}),
    "chapters.predictiveness": dict(SHOWN=(0.02, 0.25, 1.0)),
    "chapters.readout": dict(EXPLOSION=1e6),
    "chapters.residual": dict(EPS=1e-5, PER_DOUBLING=4, SEEN=2000, FAR=16.0),
    "chapters.shared": dict(LARGEST=1e200, CLASSES=10, USABLE=0.9),
    "chapters.smoothness": dict(TRILINEAR=(4 / 3) ** 0.5, SWING=27**0.5 / 8, EPS=1e-5),
    "chapters.spectrum": dict(SIGMA_W2=0.5, MOMENTUM=0.9, WARM=50, TOP=11, LOOKED=4_000_037, DRAWS=5_000_011),
    "chapters.stand_ins": dict(
        RESAMPLED=2000, EPS=1e-5, SHAKE=(0.5, 0.25, 0.1, 0.1), SEEN=32, APART=1_000_003
    )
    | dict(NEAR=0.05, WITHIN=(0.5, 1.0, 2.0, 4.0), FAR=16.0, TOLERANCE=0.02, ITERATIONS=200),
    "chapters.theorems": dict(TOLERANCE=1e-9),
    "chapters.training": dict(FIGURE=(0.1, 0.5)),
    "chapters.vgg": dict(PLACED=(2, 5, 8), STARTS=300)
    | dict(LOSS_LEVELS=9, LAYERS=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), SMOOTHED=50, SPIKE=1e6, DRAWN=60),
    "chapters.weight_decay": dict(NO_EPS=1e-30, FIRST=0.9, SECOND=0.999, SMALL=1e-8, SEEN=5000, LOOKS=3)
    | dict(RATE=0.05, MOMENTUM=0.9, DECAYS=(5e-4, 5e-3), ADAMW=(2e-3, 0.5), DRAWN=36)
    | dict(PAIR=(0.1, 0.1), FACTOR=10.0, DOUBLED=2.0, WAITED=2.5),
    "curves": dict(START_MARGIN=0.02),
    "training.engine": dict(CHUNK=500),
    "training.placed": dict(PARTS=4),
    "normalizers.standardized": dict(EPS=1e-5, RECTIFIED=(2 / (1 - 1 / math.pi)) ** 0.5),
    "models.residual": dict(STAGES=(64, 128, 256, 512), BLOCKS=2),
    "models.vgg": dict(HIDDEN=(512, 512), VGG_A=(64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0))
    | dict(VGG_D=(64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)),
    "small_networks.alone": dict(CLOSENESS=1e-3, LINEAR_STEPS=30),
    "small_networks.boundary": dict(WORKS_BELOW=1.0),
    "small_networks.descent": dict(EXPLOSION=1e6, STATISTICS_EXAMPLES=2000),
    "small_networks.stack": dict(EPS=1e-5),
    "deep_linear.arm": dict(LENGTHS=BETWEEN),
    "deep_linear.instruments": dict(LEVELS=(0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)),  # 96 %, 80 %, a half
    "chapters.libraries": dict(  # of the questions; more than any finite error; an hour for a library
        RATIOS=(100, 300, 1000, 3000, 10_000, 30_000, 100_000), LOST=1e4, SLOWEST=3600
    ),
    "chapters.other_tools": dict(EQUAL=0.01),
    "deep_linear.summaries": dict(PAPER_REACH=30.0),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants(name):
    module = importlib.import_module(f"bnbook.{name}")
    found = {constant: getattr(module, constant) for constant in CONSTANTS[name]}
    assert {key: pytest.approx(value, rel=1e-12) for key, value in CONSTANTS[name].items()} == found


def test_no_number_of_a_measuring_module_is_left_out():
    root, found = Path(bnbook.__file__).parent, {}
    hashed = set().union(*(stamp.definitions(each.code_cells) for each in discover()))
    for part in MEASURING:
        for path in [root / f"{part}.py"] if (root / f"{part}.py").exists() else (root / part).rglob("*.py"):
            script = (
                path.read_text(encoding="utf-8").startswith("# /// script") or path.name == "use_bnbook.py"
            )
            if script:  # it runs in a process of its own
                continue
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            module = importlib.import_module(f"bnbook.{name}")
            for constant in _assigned(ast.parse(path.read_text(encoding="utf-8"))):
                if part == "chapters" and f"bnbook.{name}:{constant}" not in hashed:
                    continue  # it stands in a figure alone
                if constant.isupper() and constant[0] != "_" and _is_number(getattr(module, constant)):
                    found.setdefault(name, set()).add(constant)
    assert found == {name: set(pinned) for name, pinned in CONSTANTS.items()}, "pin it in CONSTANTS"


def _assigned(tree):
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]:
            yield from (each.id for each in getattr(target, "elts", [target]) if isinstance(each, ast.Name))


def _is_number(value):
    if isinstance(value, tuple | dict):
        return bool(value) and all(map(_is_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def test_what_changes_committed_numbers_and_makes_no_chapter_stale():
    """Running, recording and drawing are exempt from a chapter's stamp, so it does not see these: whoever
    changes one runs every chapter again, and only then changes it here."""
    assert kinds.THREADS == 1  # another count of threads is another training
    assert results.DIGITS == 9  # of every recorded number
    assert figures.CURVE_DIGITS == 4  # of every point of a figure's curves
    for record in (results.record, results.record_table):
        assert inspect.signature(record).parameters["digits"].default == 9
