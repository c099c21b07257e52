"""Whatever of the package ran in a smoke run of a chapter was hashed: the runs of the site are traced
(tracing/). And whatever ran in a training is in its key."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bnbook.deep_linear import LinearArm
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.practice import Practice
from bnbook.training.probes import Probes
from bookpress import stamp
from bookpress.book import book
from bookpress.pipeline.chapters import Chapter, discover
from bookpress.runs import kinds
from bookpress.runs.runner import train_all

SRC = Path(stamp.__file__).resolve().parents[1]
#: Bands and verdicts call these on behalf of parts that do not measure; `stamp.BANDS` is followed by
#: itself.
#: The runner asks which set a name stands for, and of what colours; the SHA-256 vouches for it.
ON_BEHALF = ("bookpress.intervals:", "bnbook.data:prepare", "bnbook.data:colours")
#: What figures alone of a chapter ask for, where the cells of another one measure with it and its stamp has it.
DRAWN_BESIDE = {
    "santurkar/training": {"bnbook.chapters.vgg:batch_steps"},
    "santurkar/noisy-batch-norm": {
        "bnbook.chapters.vgg:batch_steps",
        "bnbook.chapters.shared:geometric",
    },  # points
    "santurkar/lp-norms": {"bnbook.chapters.deep_linear:tag"},  # which curves the figures there show
    "practice/libraries": {"bnbook.chapters.libraries:far_means"},  # the figure, of a folder of modules
    "practice/other-tools": {"bnbook.chapters.other_tools:against_dense"},  # likewise
    "practice/your-network": {"bnbook.chapters.your_network:points"},  # what the figure draws
}


@pytest.mark.parametrize("chapter", discover(), ids=lambda chapter: chapter.name)
def test_what_ran_was_hashed(chapter: Chapter, built_site: Path) -> None:
    files = (built_site / "runs" / "traces").glob(f"{chapter.name.replace('/', '--')}.*.json")
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    ran = _measuring({(f"{SRC}/bnbook/{file}", line) for file, line in rows})
    hashed, drawn = _hashed_of(chapter), _only_drawn() | DRAWN_BESIDE.get(chapter.name, set())
    leads = [name for name in hashed - drawn if name.startswith("bnbook.")]
    assert ran or not leads, "a chapter whose cells lead into the package runs something of it"
    assert sorted(ran - hashed - drawn) == []


def _hashed_of(chapter: Chapter) -> set[str]:
    return set(stamp.definitions(chapter.code_cells))


@cache
def _only_drawn() -> set[str]:
    """Figures of the chapters and what they alone lead to."""
    code, figures = stamp.here(), list[stamp.Place]()
    for path in (SRC / "bnbook" / "chapters").glob("*.py"):
        module = f"bnbook.chapters.{path.stem}"
        defined = code.module(module).defined if path.stem != "__init__" else {}
        figures += [stamp.Place(module, name) for name, nodes in defined.items() if stamp.draws(nodes[0])]
    met, waiting = set(figures), [*figures]
    while waiting:  # a stamp leaves out what a drawing mentions, so its statements are read here
        place = waiting.pop()
        module = code.module(place.module)
        nodes = module.defined.get(place.name, []) if module and place.name else []
        inside = [part for node in nodes for part in getattr(node, "body", [node])]
        found = {each for _, each in code.mentioned(stamp.Reading(inside), module)} if inside else set()
        waiting += found - met
        met |= found
    return {":".join(place) for place in met}.difference(*map(_hashed_of, discover()))


TINY = dict(data="textures-standin", steps=3, batch_size=16, test_examples=20)
VGG = TINY | dict(width=1 / 32, evaluate_every=2, train_examples=20)
PHASE = TINY | dict(hidden=(4, 4))
LENGTHS = dict(landscape=(1.0,), random_directions=(1.0,))
PROBES = dict(probe_steps=(0,), covariate_shift=True, removed_gradient=True, placed_layers=(2, 9), **LENGTHS)
ARMS = {
    "vgg": Arm(norm="noisy", augment=True, activation_layers=(2,), activation_examples=16, **VGG),
    "probed": Arm(norm="l1", instruments=Probes(**PROBES), **VGG),
    "tuned": Arm(norm="standardized_centred", optimizer=Practice(clip=1.0, lengths_kept=True), **VGG),
    "residual": Arm("batch", architecture="resnet", **VGG),
    "small, fc": PhaseArm(**PHASE),
    "small, conv": PhaseArm(network="conv", **PHASE | dict(loss="cross_entropy", examples=32)),
    "linear": LinearArm(norm="batch", steps=9, depth=2, width=4, examples=20, probe_steps=(0, 3)),
}


@pytest.mark.parametrize("name", ARMS)
def test_what_ran_in_a_training_is_in_its_key(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path))
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "said"))
    kinds._dataset.cache_clear()
    ran: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(f"{SRC}/bnbook/"):
            ran.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(note)
    try:
        train_all([ARMS[name]], [0], workers=1)
    finally:
        sys.setprofile(None)
    assert len(_measuring(ran)) > 10
    assert sorted(_measuring(ran) - _hashed(ARMS[name])) == []


def test_another_way_to_make_the_data_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SRC / "bnbook", tmp_path / "bnbook", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stamp, "here", lambda: stamp.Code(tmp_path))

    def codes() -> dict[str, str]:
        found = {
            name: kinds.edition(kinds.kind_of(arm), getattr(arm, "data", None)) for name, arm in ARMS.items()
        }
        return {name: edition["code"] for name, edition in found.items()}

    before = codes()
    for file, old, new in (
        ("dataset.py", "np.sqrt(", "float("),
        ("dataset.py", "1 / (255 * std)", "1 / (256 * std)"),
        ("identity.py", "key=digests.__getitem__", "key=digests.index"),
    ):
        path = tmp_path / "bnbook" / "data" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert {name for name, code in codes().items() if code == before[name]} == {"linear"}, (
            "which needs none"
        )
        path.write_text(text, encoding="utf-8")
    monkeypatch.undo()
    assert codes() == before


def _hashed(arm: Any) -> set[str]:
    """What the key of an arm's trainings rests on."""
    kind, table = kinds.kind_of(arm), book().trainings
    names = [kind, table.TRAINS[kind], *([table.LOADS] if hasattr(arm, "data") else [])]
    return {
        ":".join(place) for place in stamp.here().closure(stamp.Place(*name.split(":")) for name in names)
    }


def _measuring(rows: set[tuple[str, int]]) -> set[str]:
    """Of the functions that ran, those of parts that measure."""
    ran = {_definition(Path(file), line) for file, line in rows}
    ran = {name for name in ran if stamp.measures(name.split(":")[0]) and not name.startswith(ON_BEHALF)}
    return {name for name in ran if not name.endswith(":__getattr__")}  # asked for names that no module has


def _definition(file: Path, line: int) -> str:
    """The top-level definition of the package that a line belongs to, as "module:name"."""
    module = ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if first <= line <= node.end_lineno:
            named = node.targets[0] if isinstance(node, ast.Assign) else node
            named = node.target if isinstance(node, ast.AnnAssign) else named
            return f"{module}:{getattr(named, 'name', None) or getattr(named, 'id', '?')}"
    return f"{module}:?"
