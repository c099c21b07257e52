"""Freshness: code counts, comments do not, and every Python computes the same hash."""

from __future__ import annotations

import pytest
from bnbook.pipeline import fingerprint

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


def test_only_measuring_modules_of_the_closure_count():
    modules = fingerprint.package_modules(["bnbook.normalizers", "bnbook.figures", "bnbook.results"])
    assert "bnbook.normalizers.batch" in modules
    assert not any(name.startswith(("bnbook.pipeline", "bnbook.figures", "bnbook.results")) for name in modules)


def test_imports_are_found_however_they_are_written():
    source = "import bnbook.data\nfrom bnbook import meanfield as m\nfrom bnbook.claims import judge\nimport numpy\n"
    found = fingerprint.imported_modules(source)
    assert {"bnbook.data", "bnbook.meanfield", "bnbook.claims", "bnbook"} <= found and "numpy" not in found
    assert "bnbook.data.cache" in fingerprint.imported_modules("from . import cache", package="bnbook.data")
    assert "bnbook.errors" in fingerprint.imported_modules("from ..errors import BnbookError", package="bnbook.data")


def test_each_part_of_the_fingerprint_reacts_to_its_own_cause():
    def parts(cells=("from bnbook.meanfield import solve",), parameters=(("a", 1),), data=({"sha256": "x"},)):
        return fingerprint.chapter_fingerprint(list(cells), dict(parameters), list(data))

    base = parts()
    changed = {
        "code": parts(cells=("from bnbook.meanfield import solve\n1",)),
        "parameters": parts(parameters=(("a", 2),)),
        "data": parts(data=({"sha256": "y"},)),
    }
    for name, other in changed.items():
        assert [part for part in base if base[part] != other[part]] == [name]
    assert parts(cells=("from bnbook.models import vgg",))["package"] != base["package"]
