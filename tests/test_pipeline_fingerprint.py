"""Freshness: code counts, comments do not, and every Python computes the same hash."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bnbook.pipeline import definitions, fingerprint
from bnbook.pipeline.definitions import closure

CODE = 'def f(x: float) -> float:\n    """Twice."""\n    return 2 * x  # why\n'


def test_comments_docstrings_and_layout_do_not_count():
    same = "def f(x: float) -> float:\n\n    return (2 * x)\n"
    assert fingerprint.normalised(CODE) == fingerprint.normalised(same)


@pytest.mark.parametrize("change", ["3 * x", "2 + x", "2.0 * x", "2 * y", "f'{x!r:>{3}}'"])
def test_code_counts(change):
    assert fingerprint.normalised(CODE) != fingerprint.normalised(CODE.replace("2 * x", change))


TRICKY = """
class A:
    x = f'{1:>{2}}' 'b'
    async def g(self, /, *a, k=None): ...
try:
    pass
except* ValueError:
    print(b'x', 1j, ...)
"""


def test_the_hash_is_the_same_under_every_python():
    # Computed under Python 3.11, 3.12 and 3.13 alike; another value would turn every published result stale.
    assert fingerprint.digest(fingerprint.normalised(TRICKY))[:16] == "ed095722af4273c7"


def names(*roots):
    return {f"{module}:{part}" for module, part in closure([tuple(root.split(":")) for root in roots])}


def test_a_definition_brings_what_it_rests_on_and_nothing_else():
    found = names("bnbook.training.engine:train")
    wanted = [
        "models.convolutional:vgg",
        "normalizers.lp:LpNorm",
        "probes.activations:measure",
        "training.arm:Arm",
        "data.batches:infinite_batches",
        "normalizers.base:wide",
        "models.building:initialise",
    ]
    assert {f"bnbook.{each}" for each in wanted} <= found
    unused = [
        "models.dense:deep_linear",
        "normalizers.formulas:batch_norm_forward",
        "probes.activations:quantiles",
    ]
    assert not {f"bnbook.{each}" for each in unused} & found
    assert not [
        each for each in found if each.startswith(("bnbook.results", "bnbook.errors", "bnbook.pipeline"))
    ]


def edited(monkeypatch, module, old, new):
    """Fingerprint of the training with one file of the package changed."""
    path = definitions.file_of(module)
    text = path.read_text(encoding="utf-8")
    assert old in text
    definitions._module.cache_clear()
    monkeypatch.setattr(fingerprint, "_fingerprint", fingerprint._fingerprint.__wrapped__)
    changed = definitions.take_apart(text.replace(old, new), module.rpartition(".")[0])
    original = definitions._module
    monkeypatch.setattr(definitions, "_module", lambda name: changed if name == module else original(name))
    return fingerprint.package_fingerprint(["bnbook.training.engine:train"])


@pytest.mark.parametrize(
    ("module", "old", "new", "counts"),
    [
        ("bnbook.models.vgg", "units * width + 0.5", "units * width", True),
        ("bnbook.models.vgg", "HIDDEN = (512, 512)", "HIDDEN = (512,)", True),
        ("bnbook.normalizers.lp", "x.abs().mean(axes)", "x.abs().sum(axes)", True),
        ("bnbook.normalizers.base", "torch.ones(self.features)", "torch.zeros(self.features)", True),
        (
            "bnbook.models.dense",
            "_last: bool = False",
            "_last: bool = True",
            False,
        ),  # the deep linear network
        ("bnbook.models.vgg", '"""VGG-A for small colour images."""', '"""Other words."""', False),
        (
            "bnbook.probes.activations",
            "def quantiles(",
            "def other():\n    return 2\n\n\ndef quantiles(",
            False,
        ),
        ("bnbook.models.vgg", "HIDDEN = (512, 512)", "HIDDEN = (512, 512)\nprint(HIDDEN)", True),
    ],
)
def test_only_what_the_training_rests_on_makes_it_stale(monkeypatch, module, old, new, counts):
    before = fingerprint.package_fingerprint(["bnbook.training.engine:train"])
    assert (edited(monkeypatch, module, old, new) != before) == counts


@pytest.mark.parametrize(
    "cell",
    [
        "from bnbook.meanfield.solving import solve\nsolve",
        "import bnbook\nbnbook.meanfield.solving.solve(1)",
        "import bnbook.meanfield.solving as t\nt.solve",
        "from bnbook import meanfield as m\nm.solve(1)",
        "def f():\n    from bnbook.meanfield import solve\n    return solve",
        "from bnbook.meanfield import *",
        "from bnbook import meanfield\ngetattr(meanfield, 'solve')",
    ],
)
def test_a_definition_is_found_however_it_is_reached(cell):
    module = definitions.take_apart(cell, "")
    roots = [
        *definitions.references(ast.parse(cell).body, module, ""),
        *((star, "*") for star in module.stars),
    ]
    assert ("bnbook.meanfield.solving", "solve") in closure(roots)


def test_relative_imports_are_resolved():
    assert definitions.take_apart("from . import cache", "bnbook.data").imports["cache"] == (
        "bnbook.data.cache",
        "*",
    )
    other = definitions.take_apart("from ..errors import BnbookError", "bnbook.data").imports
    assert other["BnbookError"] == ("bnbook.errors", "BnbookError")


def test_no_definition_of_the_package_acts_on_another_by_its_decorator():
    # The closure does not see what such a decorator would register.
    for path in Path(definitions.file_of("bnbook").parent).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = {name for node in tree.body for name in definitions._defined(node)}
        used = [d for node in tree.body for d in getattr(node, "decorator_list", [])]
        assert not {inner.id for d in used for inner in ast.walk(d) if isinstance(inner, ast.Name)} & own, (
            path
        )


def test_each_part_of_the_fingerprint_reacts_to_its_own_cause():
    def parts(
        cells=("from bnbook.meanfield import solve\nsolve",), parameters=(("a", 1),), data=({"sha256": "x"},)
    ):
        return fingerprint.chapter_fingerprint(list(cells), dict(parameters), list(data))

    base = parts()
    changed = {
        "code": parts(cells=("from bnbook.meanfield import solve\nsolve\n1",)),
        "parameters": parts(parameters=(("a", 2),)),
        "data": parts(data=({"sha256": "y"},)),
    }
    for name, other in changed.items():
        assert [part for part in base if base[part] != other[part]] == [name]
    assert parts(cells=("from bnbook.models import vgg\nvgg",))["package"] != base["package"]
