"""What a run notes of the rules that judged it: it changes with what decides, and not with its words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bnbook

SOURCE = Path(bnbook.__file__).parent
DECIDES = {
    "intervals.py": ("LEVEL = 0.95", "LEVEL = 0.9"),
    "claims/kinds/sampled.py": ("if low > least else", "if low >= least else"),
    "claims/kinds/comparisons.py": ("Cell(a - b,", "Cell(b - a,"),
    "claims/kinds/levels.py": ("return 0.5, math.inf", "return 0.6, math.inf"),
    "claims/kinds/exact.py": ("worst <= test.tolerance", "worst < test.tolerance"),
    "claims/kinds/kind.py": ("test.threshold or 0.0", "test.threshold or 1.0"),
    "claims/kinds/known.py": ("test=test, shown=shown", "test=test, shown=None"),
    "claims/cells.py": ("HAIR = 1e-9", "HAIR = 1e-3"),
    "claims/recorded.py": ("is_constant = len(row) == 1", "is_constant = len(row) <= 2"),
    "claims/judging.py": ("return MIXED if", "return OPEN if"),
    "claims/deciding.py": ("POWER = 0.8", "POWER = 0.7"),
}
WORDS = {
    "claims/kinds/levels.py": ("every step goes up", "each step goes up"),
    "claims/kinds/exact.py": ("off by at most", "off by no more than"),
    "claims/units.py": ("within a factor of {in_unit(tol", "by a factor of {in_unit(tol"),
    "claims/words.py": ("own question", "our question"),
    "claims/cells.py": ("One comparison:", "A comparison:"),
}


def rules(root: Path) -> str:
    code = "from bnbook.claims.rules import judging_rules; print(judging_rules())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    root = tmp_path_factory.mktemp("rules")
    shutil.copytree(SOURCE, root / "bnbook", ignore=shutil.ignore_patterns("__pycache__"))
    return root, rules(root)


@pytest.mark.parametrize(("decides", "changes"), [(True, DECIDES), (False, WORDS)], ids=["decides", "words"])
def test_what_decides_is_in_the_hash_and_what_words_is_not(copied, decides, changes):
    root, before = copied
    for name, (old, new) in changes.items():
        path = root / "bnbook" / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r} any more: plant another change"
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert (rules(root) != before) is decides, name
        path.write_text(text, encoding="utf-8")
