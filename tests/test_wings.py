"""Instruments measure and know nothing of the machine of the book, which runs and shows them; chapters stand on
both, and nothing stands on a chapter but a chapter."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bnbook
from bnbook import pipeline
from bnbook.fingerprint.sources import Sources

ROOT = Path(bnbook.__file__).parent
INSTRUMENTS = (
    "data normalizers models probes meanfield training small_networks deep_linear intervals report".split()
)
BASEMENT = ("errors", "paths", "atomic", "cores")
MODULES = sorted(
    "bnbook." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path.parent != ROOT or path.stem not in ("__init__", "__main__")
)


def imports(name: str) -> set[str]:
    """Modules and names of the package that a module imports, at its top or inside a function."""
    sources = Sources()
    tree = ast.parse(sources.path(name).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {each.removeprefix("bnbook.") for each in found if each.startswith("bnbook.")}


@pytest.mark.parametrize("name", MODULES)
def test_instruments_import_nothing_of_the_machine(name: str) -> None:
    room = name.split(".")[1]
    met = {each.split(".")[0] for each in imports(name)}
    if room in BASEMENT:
        assert met <= set(BASEMENT)
    if room in INSTRUMENTS:
        assert met <= {*INSTRUMENTS, *BASEMENT}
    assert room == "chapters" or "chapters" not in met


@pytest.mark.parametrize("name", MODULES)
def test_private_names_are_imported_by_nobody(name: str) -> None:
    private = {each for each in imports(name) if each.split(".")[-1].startswith("_")}
    assert private <= {"__version__"}


def test_the_modules_of_the_pipeline_stand_on_each_other_in_the_order_that_it_names():
    order = pipeline.__doc__.split(": ")[1].strip(".").replace("\n", " ").split(", ")
    assert sorted(order) == sorted(
        path.stem for path in (ROOT / "pipeline").glob("*.py") if path.stem != "__init__"
    )
    climbs = {
        (name, other)
        for name in MODULES
        if name.startswith("bnbook.pipeline.")
        for other in imports(name)
        if other.startswith("pipeline.")
        and order.index(other.split(".")[1]) > order.index(name.split(".")[2])
    }
    # The rows of the ledger are made from the pages' own object, which hands them to tokens.
    # And a run's notebook is written as it is handed out.
    assert climbs == {
        ("bnbook.pipeline.prose", "pipeline.ledger"),
        ("bnbook.pipeline.gate", "pipeline.handout"),
    }


def test_the_package_names_every_room_once():
    wings = re.split(r":\s", bnbook.__doc__)[2:]
    named = [word for wing in wings for word in wing.split(".")[0].split()]
    there = {name.split(".")[1] for name in MODULES}
    assert sorted(named) == sorted(there) and named[: len(INSTRUMENTS)] == list(INSTRUMENTS)
