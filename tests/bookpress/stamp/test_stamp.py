"""Moving, splitting and rewording make nothing stale; whatever can change a number does, and renaming."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bookpress import stamp
from bookpress.pipeline.chapters import select

#: A package of four modules and a chapter of one cell, on which every change is tried.
FILES = {
    "__init__.py": "",
    "errors.py": "class BnbookError(ValueError):\n    pass\n",
    "rates.py": '''"""Rates."""
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from bnbook.errors import BnbookError
BASE = 0.5
@dataclass
class Rate:
    """A rate."""
    value: float = 1.0
    scale = 2
    def double(self) -> float:
        if self.value < 0:
            raise BnbookError(f"rate {self.value}; expected more")
        return self.scale * self.value * BASE
def largest(values: list, power: int = 2) -> float:
    """The largest."""
    rate = Rate(np.max(values))
    return rate.double() ** power
UNUSED = 3
''',
    "models/__init__.py": "from bnbook.models.net import build\n",
    "models/net.py": """import torch.nn.functional as F
from bnbook.rates import largest
def build(width):
    import numpy.linalg as la
    rows = [helper(w) for w in range(width)]
    return F.relu(la.norm(rows)), largest(rows)
def helper(w):
    return TABLE[w % 2]
TABLE = {0: "settings.yml", 1: 2.0}
""",
    "models/settings.yml": "a: 1\n",
    "results.py": "def record(name, value):\n    print(name, value)\n",
}
CELL = """from bnbook.models import build
from bnbook.results import record
for w in (1, 2):
    record('a', build(w))
"""


def hashes(folder: Path, files: dict[str, str], cell: str = CELL) -> tuple[str, str]:
    shutil.rmtree(folder / "bnbook", ignore_errors=True)
    for name, text in files.items():
        path = folder / "bnbook" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = stamp.of_chapter([cell], {}, [], stamp.Code(folder))
    return found["code"], found["package"]


def changed(name: str, old: str, new: str, **more: str) -> dict[str, str]:
    assert old in FILES[name]
    return FILES | {name: FILES[name].replace(old, new)} | more


RATES, NET = FILES["rates.py"], FILES["models/net.py"]
CLASS = RATES[RATES.index("@dataclass\n") : RATES.index("def largest")]
IMPORT = "from bnbook.rates import largest\n"
FREE = {
    "a docstring": changed("rates.py", "The largest.", "The greatest."),
    "a comment and the layout": changed("rates.py", "BASE = 0.5", "# half\nBASE = (\n    0.5\n)"),
    "a type hint": changed("rates.py", "values: list,", "values: tuple[float, ...],"),
    "the words of an error": changed("rates.py", "expected more", "expected at least 0"),
    "something unused": changed("rates.py", "UNUSED = 3", "UNUSED = 4\ndef other(): return UNUSED"),
    "a figure": changed("models/net.py", "TABLE =", "def curves(results) -> plt.Figure:\n    return 1\nTABLE ="),
    "the order of definitions": FILES | {"rates.py": RATES.replace("BASE = 0.5\n", "") + "BASE = 0.5\n"},
    "a part that does not measure": changed("results.py", "print(name, value)", "print(value)"),
    "a module's name": {k.replace("rates", "speeds"): v.replace("bnbook.rates", "bnbook.speeds") for k, v in FILES.items()},
    "a module split": FILES | {
        "rates.py": "import numpy as np\n" + RATES.partition("BASE = 0.5\n")[2].replace(CLASS, "from bnbook.rate import Rate\n"),
        "rate.py": RATES[: RATES.index("def largest")].replace("import numpy as np\n", ""),
    },
    "a relative import": changed("models/net.py", "from bnbook.rates", "from ..rates",
                                 **{"models/__init__.py": "from .net import build\n"}),
    "an import moved into the function": FILES | {
        "models/net.py": NET.replace(IMPORT, "").replace("(width):\n", f"(width):\n    {IMPORT}"),
    },
    "a patch where nothing is measured": changed("results.py", "def rec", "import numpy as np\nnp.max = min\ndef rec"),
}  # fmt: skip
STALE = {  # in which module what becomes what
    "a definition's name": ("rates", "", "", {k: v.replace("largest", "greatest") for k, v in FILES.items()}),
    "a constant": ("rates", "BASE = 0.5", "BASE = 0.6"),
    "a default": ("rates", "power: int = 2", "power: int = 3"),
    "the default of a keyword": ("rates", "power: int = 2", "*, power: int = 2"),
    "a formula": ("rates", "rate.double() ** power", "rate.double() * power"),
    "a class attribute": ("rates", "scale = 2", "scale = 3"),
    "a field's default": ("rates", "value: float = 1.0", "value: float = 1.5"),
    "a method": ("rates", "self.scale * self.value", "self.scale + self.value"),
    "a condition of an error": ("rates", "self.value < 0", "self.value < 1"),
    "a decorator": ("rates", "@dataclass\n", "@dataclass(eq=False)\n"),
    "a base class": ("rates", "class Rate:", "class Rate(dict):"),
    "the order of arguments": ("rates", "values: list, power: int = 2", "power: list, values: int = 2"),
    "a table": ("models/net", "1: 2.0", "1: 2.5"),
    "a data file": ("models/net", "", "", {"models/settings.yml": "a: 2\n"}),
    "what a name is bound to, in the package": ("models/net", "import largest", "import Rate as largest"),
    "what a name is bound to, outside": ("models/net", "torch.nn.functional as F", "torch.nn.utils as F"),
    "what a name is bound to, in a function": ("models/net", "numpy.linalg as la", "scipy.linalg as la"),
    "a statement that defines nothing": ("rates", "UNUSED = 3", "print(BASE)"),
    "a patch in a module that measures": ("models/net", "TABLE =", "F.relu = abs\nTABLE ="),
    "a definition under a condition": ("rates", "UNUSED = 3", "if np.max:\n    BASE = 3"),
    "the first hint of a name": ("rates", "BASE = 0.5", "BASE: float = 0.5"),  # and it hides nothing
}  # fmt: skip


@pytest.mark.parametrize("change", FREE)
def test_free(change: str, tmp_path: Path) -> None:
    assert hashes(tmp_path, FREE[change]) == hashes(tmp_path, FILES)


@pytest.mark.parametrize("change", STALE)
def test_stale(change: str, tmp_path: Path) -> None:
    name, old, new, *more = STALE[change]
    assert hashes(tmp_path, changed(f"{name}.py", old, new, **dict(*more)))[1] != hashes(tmp_path, FILES)[1]


@pytest.mark.parametrize(
    "cell, same",
    [
        (CELL.replace("bnbook.models import", "bnbook.models.net import"), True),
        (CELL + "# a remark\n", True),
        (CELL + "from bnbook.figures import figure\nfigure('a', lambda results: 1)\n", True),
        (CELL.replace("import build", "import build as make").replace("build(w)", "make(w)"), False),
        (CELL.replace("(1, 2)", "(1, 3)"), False),
        (CELL.replace("record('a'", "record('b'"), False),
        (CELL.replace("import record", "import record as print"), False),
        (CELL.replace("from bnbook.models import build", "from bnbook.rates import largest as build"), False),
        (CELL.replace("bnbook.models import build", "torch import build"), False),
    ],
)
def test_cells(cell: str, same: bool, tmp_path: Path) -> None:
    assert (hashes(tmp_path, FILES, cell) == hashes(tmp_path, FILES)) is same


def test_two_definitions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Where two are met that have one name, a caller that takes the other one is another caller."""
    both = FILES | {"one.py": "def f(): return 1\n", "two.py": "def f(): return 2\n"}
    first, second = (
        hashes(
            tmp_path,
            both | {"use.py": f"{way}\ndef use(): return f() - two.f()\n"},
            "from bnbook.use import use\nuse()",
        )
        for way in (
            "from bnbook.one import f\nfrom bnbook import two",
            "from bnbook.two import f\nfrom bnbook import one as two",
        )
    )
    assert first[1] != second[1]


def test_an_arm_rests_on_what_trains_it(tmp_path: Path) -> None:
    """The runner does not measure; the function that it hands an instance to does."""
    runner, engine = "def train_all(arms):\n    return arms\n", "def train(arm):\n    return 1\n"
    trains = {"trainings.py": "TRAINS = {'bnbook.rates:Rate': 'bnbook.engine:train'}\n"}
    cell = "from bnbook.rates import Rate\nfrom bnbook.runs import train_all\ntrain_all([Rate()])\n"

    def stamped(runner: str = runner, engine: str = engine) -> tuple[str, str]:
        return hashes(tmp_path, FILES | trains | {"runs/__init__.py": runner, "engine.py": engine}, cell)

    before = stamped()
    assert stamped(runner=runner.replace("arms\n", "list(arms)\n")) == before
    assert stamped(engine=engine.replace("1", "2")) != before


#: What a chapter's trainings are made by: the optimizer's rate, the width of the head, ε, when a training has started.
MADE_BY = "training.engine:SGD models.vgg:HIDDEN normalizers.base:BatchNormalizer curves:START_MARGIN".split()


def test_a_chapter_rests_on_the_engine_and_on_nothing_that_passes_results_on() -> None:
    for name in ("training", "internal-covariate-shift", "lp-norms"):
        met = stamp.definitions(select([f"santurkar/{name}"])[0].code_cells)
        assert {f"bnbook.{each}" for each in MADE_BY} <= met.keys() and len(met) > 60
        assert [each for each in met if each != ":" and not stamp.measures(each.split(":")[0])] == []


@pytest.mark.parametrize(
    "words",
    [
        "from bnbook.meanfield import solve",
        "from bnbook.meanfield import *",
        "import bnbook.meanfield.solving as t\nsolve = t.solve",
        "import bnbook\nsolve = bnbook.meanfield.solving.solve",
        "def f():\n    from bnbook.meanfield import solve\n    return solve",
        "from bnbook import meanfield\nx = [meanfield]",
    ],
)
def test_every_way_to_a_definition(words: str) -> None:
    assert "bnbook.meanfield.solving:solve" in stamp.definitions([words + "\nprint(solve)"])


def test_what_is_imported_when_it_is_asked_for_is_met() -> None:
    met = stamp.definitions(["import bnbook\nbnbook.measure()"])
    assert any(name.startswith("bnbook.report.") and name.endswith(":measure") for name in met)
    assert "bnbook.data.batches:Batches" in stamp.definitions(["from bnbook.data import Batches\nBatches"])


def test_sources_are_read_anew_after_forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes(tmp_path, FILES)
    monkeypatch.setattr(stamp, "folders", lambda: {"bnbook": tmp_path / "bnbook"})
    stamp.forget()
    try:
        before = stamp.code_of(["bnbook.rates:largest"])
        (tmp_path / "bnbook/rates.py").write_text(RATES.replace("** power", "* power"))
        assert stamp.code_of(["bnbook.rates:largest"]) == before
        stamp.forget()
        assert stamp.code_of(["bnbook.rates:largest"]) != before
    finally:
        stamp.forget()


def test_each_of_the_four_hashes() -> None:
    base = dict(
        cells=["from bnbook.meanfield import solve\nsolve"], parameters={"a": 1}, data=[{"sha256": "x"}]
    )

    def differing(**changes: object) -> list[str]:
        first, second = (stamp.of_chapter(**base), stamp.of_chapter(**(base | changes)))
        return [part for part in first if first[part] != second[part]]

    assert differing() == []
    assert differing(cells=["from bnbook.meanfield import solve\nsolve\n1"]) == ["code"]
    assert differing(parameters={"a": 2}) == ["parameters"]
    assert differing(data=[{"sha256": "y"}]) == ["data"]
    assert differing(cells=["from bnbook.models import vgg\nvgg"]) == ["code", "package"]


def test_the_order_in_which_data_sets_were_loaded_does_not_count() -> None:
    rows = [{"name": "b", "sha256": "x"}, {"name": "a", "sha256": "y"}]
    assert stamp.data_digest(rows) == stamp.data_digest(rows[::-1])
    assert stamp.data_digest(rows) != stamp.data_digest(rows[:1])


def test_what_a_run_from_before_is_called_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNBOOK_EXECUTED", str(tmp_path))
    then, now = {"code": "a", "package": "b", "data": "d"}, {"code": "c", "package": "e"}
    assert stamp.known(then) == then and stamp.name_now("x") == "x"
    (tmp_path / stamp.FROM_BEFORE).write_text(json.dumps({stamp.measure(then): now}))
    assert stamp.known(then) == then | now and stamp.name_now(stamp.measure(then)) == stamp.measure(now)


# Of a hint only what decides which fields a dataclass has

#: An attribute of the planted dataclass, as it stands there and with each hint: all pairs differ in kind.
KINDS = {
    "an attribute": "scale = 2",
    "a field": "scale: int = 2",
    "of the class": "scale: ClassVar[int] = 2",
    "of the first call": "scale: InitVar[int] = 2",
    "behind keywords": "_: KW_ONLY\n    scale: int = 2",
    "behind another field": "_: int\n    scale: int = 2",
    "without a default": "scale: int",
}
#: Pairs that say the same.
ALIKE = [
    ("scale: int = 2", "scale: float = 2"),
    ("scale: ClassVar[int] = 2", "scale: ClassVar[float] = 2"),
    ("scale: ClassVar[int] = 2", 'scale: "ClassVar[int]" = 2'),
    ("scale: InitVar[int] = 2", "scale: InitVar[float | None] = 2"),
]


def of(attribute: str, folder: Path) -> str:
    return hashes(folder, changed("rates.py", "scale = 2", attribute))[1]


def test_each_hint_that_decides_what_a_field_is_has_a_stamp_of_its_own(tmp_path: Path) -> None:
    stamps = {kind: of(attribute, tmp_path) for kind, attribute in KINDS.items()}
    assert len(set(stamps.values())) == len(KINDS)
    assert stamps["an attribute"] == hashes(tmp_path, FILES)[1]


@pytest.mark.parametrize("one, other", ALIKE)
def test_any_other_part_of_a_hint_is_free(one: str, other: str, tmp_path: Path) -> None:
    assert of(one, tmp_path) == of(other, tmp_path)
