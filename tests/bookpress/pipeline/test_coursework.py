"""Coursework: full points for the instructor, none for the untouched sheet, the right ones for mistakes, and
nothing of a solution in what students get."""

from __future__ import annotations

import copy
import csv
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from coursework_answers import WRONG
from torch import nn

from bnbook.errors import BnbookError
from bnbook.normalizers import make_normalizer
from bnbook.probes import covariate_shift, landscape
from bookpress import coursework
from scripts import course as measuring

otter = pytest.importorskip("otter.test_files", reason="otter-grader is not installed")
NAMES = [path.stem for path in coursework.discover()]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("course") / "course"
    coursework.make(target)
    return target


def answers(path: Path, changes: dict[str, tuple[str, str]] | None = None) -> dict:
    """What the notebook's cells define, each cell run as a student would; {question: (old, new)} rewrites
    code."""
    world: dict = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or "grader" in source or cell["id"] == "found-code":
            continue
        for old, new in (changes or {}).values():
            source = source.replace(old, new)
        exec(compile(source, path.name, "exec"), world)
    return world


def archived(course: Path, name: str, part: str) -> list[str]:
    """What the zip that grades an assignment holds under names with `part`."""
    with zipfile.ZipFile(course / "autograder" / f"{name}.zip") as archive:
        return [archive.read(each).decode() for each in archive.namelist() if part in each]


def failed(course: Path, name: str, world: dict) -> dict[str, str]:
    """Function name -> what a student reads, for each test of the autograder that fails."""
    found = {}
    for source in archived(course, name, "tests/"):
        tests = otter.ExceptionTestFile.from_string(source)
        tests.run(world)
        for result in (each for each in tests.test_case_results if not each.passed):
            said = f"{result.test_case.failure_message}\n{result.message}"
            found[result.test_case.body.test_func.__name__] = said
    return found


def notebook(course: Path, part: str, name: str) -> dict:
    return json.loads((course / part / f"{name}.ipynb").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_earns_everything(course, name):
    assert failed(course, name, answers(course / "instructor" / f"{name}.ipynb")) == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_untouched_sheet_earns_nothing_and_says_why(course, name):
    found = failed(course, name, answers(course / "student" / f"{name}.ipynb"))
    tests = assignment(name).of("public", "hidden")
    assert len(found) == len(tests)
    for cell in tests:
        said = found[re.search(r"def (\w+)", cell.source).group(1)]
        assert said.startswith(cell.fails) and "nothing is written here yet" in said


def zeros(value):
    """The same with a zero in the place of each number."""
    if isinstance(value, (tuple, list)):
        return type(value)(zeros(each) for each in value)
    if isinstance(value, dict):
        return {name: zeros(each) for name, each in value.items()}
    numbers = isinstance(value, (bool, int, float, np.ndarray, np.number, torch.Tensor))
    return value * 0 if numbers else value


@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_filled_with_zeros_earns_nothing(course, name):
    """Each answer has the right form, and leaves what it is handed as it is."""
    world = answers(course / "instructor" / f"{name}.ipynb")
    for cell in assignment(name).of("solution"):
        for written in re.findall(r"^def (\w+)", cell.source, flags=re.M):
            right = world[written]
            filled = lambda *given, right=right, **more: zeros(right(*copy.deepcopy(given), **more))
            world = {**world, written: filled}  # what the answers call of each other stays right
    assert len(failed(course, name, world)) == len(assignment(name).of("public", "hidden"))


@pytest.mark.parametrize("mistake", WRONG)
def test_a_typical_mistake_loses_the_right_points(course, mistake):
    name, question, right, wrong, tests = WRONG[mistake]
    (solution,) = assignment(name).of("solution", question=question)
    assert solution.source.count(right) == 1
    world = answers(course / "instructor" / f"{name}.ipynb", {question: (right, wrong)})
    assert set(failed(course, name, world)) == set(tests)


@pytest.mark.parametrize("name", NAMES)
def test_students_get_no_solution_and_no_hidden_test(course, name):
    content = notebook(course, "student", name)
    assert set(content["metadata"]) <= {"kernelspec", "otter", "language_info"}
    assert not any(cell.get("outputs") for cell in content["cells"])
    text = "\n".join("".join(cell["source"]) for cell in content["cells"]) + json.dumps(content["metadata"])
    for cell in assignment(name).of("hidden"):
        assert re.search(r"def (\w+)", cell.source)[1] not in text
    for cell in assignment(name).of("solution"):
        inside = re.search(r"# BEGIN SOLUTION\n(.*?)\n *# END SOLUTION", cell.source, flags=re.S)[1]
        assert [each for each in inside.splitlines() if len(each.strip()) > 20 and each.strip() in text] == []
    last = assignment(name).found.source
    assert [line for line in last.splitlines() if len(line) > 40 and line in text] == []
    assert last in "".join(notebook(course, "instructor", name)["cells"][-1]["source"])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_numpy_and_torch_is_imported(course, name):
    """What students and graders have; the zip brings the hidden tests, and says what the machine that grades needs."""
    tests = "".join(archived(course, name, "tests/"))
    cells = (cell for cell in notebook(course, "student", name)["cells"] if cell["cell_type"] == "code")
    given = "\n".join("".join(cell["source"]) for cell in cells)
    found = re.findall(r"^ *(?:from|import) (\w+)", tests.replace("\\n", "\n") + given, flags=re.M)
    assert set(found) - {"numpy", "torch"} <= {"copy", "otter"} and {"numpy", "torch"} & set(found)
    assert re.search(r"^ *- torch$", archived(course, name, "environment.yml")[0], flags=re.M)


def test_the_solutions_measure_what_the_book_measures():
    """Hidden tests know formulas only; here the right answers meet the book's own instruments."""
    torch.manual_seed(0)
    first, second, third = (nn.Linear(n, m, bias=False) for n, m in ((4, 5), (5, 5), (5, 2)))
    plain = nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), third).double()
    batch = torch.randn(7, 4).double(), torch.arange(7) % 2

    def loss(w):
        z = ((batch[0] @ w[0].T).tanh() @ w[1].T).tanh() @ w[2].T
        return nn.functional.cross_entropy(z, batch[1])

    shift = right("covariate-shift")["shift"](loss, [p.detach() for p in plain.parameters()], 0.3)
    wanted = covariate_shift.measure(plain, nn.functional.cross_entropy, batch, 0.3)
    assert torch.allclose(torch.tensor(shift).double(), torch.stack([wanted.distance, wanted.cosine]))

    normed = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2)).double()
    steps = [0.2, 0.7, 2.0]
    seen = landscape.along_gradient(normed, nn.functional.cross_entropy, batch, steps)
    found = right("landscape")["smoothness"](normed, nn.functional.cross_entropy, batch, steps)
    assert found == pytest.approx(float(seen.effective_smoothness), abs=1e-8)

    x = np.random.default_rng(0).normal(2, 1, (4, 3, 5, 6))
    for p, name in ((1, "l1"), (2, "l2"), (np.inf, "linf")):
        layer = make_normalizer(name, 3, 2, eps=1e-12).double()
        wanted = layer(torch.tensor(x)).detach().numpy()
        assert np.allclose(right("lp-norms")["normalize"](x, p), wanted, atol=1e-6)


def right(name: str) -> dict:
    """What the solutions define."""
    world: dict = {}
    exec(measuring.solved(assignment(name)), world)
    return world


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_says_is_found_was_measured_with_this_code(name):
    record = json.loads(measuring.record_file().read_text(encoding="utf-8"))
    own = record["sheets"][name]
    again = "measure again: python scripts/course.py " + name
    assert own["code"] == measuring.digest(assignment(name)), again
    assert own["points"] == assignment(name).points and own["run"]["seconds"] < 300
    if name in ("transform", "inference", "lp-norms"):  # at once
        found = measuring.found(assignment(name))
        assert own["found"] == pytest.approx(found, rel=1e-3, abs=1e-9), again


def test_the_page_shows_the_record():
    page = measuring.page_file().read_text(encoding="utf-8")
    record = json.loads(measuring.record_file().read_text(encoding="utf-8"))
    assert measuring.block(record, [assignment(name) for name in NAMES]) in page
    assert [each["command"].split() for each in record["class"]] == measuring.commands(page)


def test_the_points_table_adds_up(course):
    with open(course / "points.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name in NAMES:
        own = [row for row in rows if row["assignment"] == name]
        assert sum(float(row["public"]) + float(row["hidden"]) for row in own) == assignment(name).points


def test_the_instructors_page_names_pages_and_sheets_as_they_are():
    page = coursework.folder() / "README.md"
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\[([^]]+)\]\((\.\./book/[^)]+)\)", text)
    assert len(links) >= 8
    for words, target in links:
        title = re.search(r"^# (.+)$", (page.parent / target).read_text(encoding="utf-8"), flags=re.M)[1]
        assert words.lower() == title.lower() or target.endswith(("index.md", "your-network.md")), target
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| (\d+) \|$", text, flags=re.M)
    assert dict(rows) == {name: str(assignment(name).minutes) for name in NAMES}


def test_otter_itself_gives_the_same_points(course, tmp_path):
    """One assignment all the way: the zip that goes to Gradescope on a submission with one mistake."""
    name, _, right, wrong, tests = WRONG["transform: gamma forgotten"]
    text = (course / "instructor" / f"{name}.ipynb").read_text(encoding="utf-8")
    submitted = tmp_path / f"{name}.ipynb"
    submitted.write_text(text.replace(right, wrong), encoding="utf-8")
    grader = str(course / "autograder" / f"{name}.zip")
    words = [sys.executable, *f"-m otter run --no-logo -a {grader} -o {tmp_path} {submitted}".split()]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graded = json.loads((tmp_path / "results.json").read_text())["tests"]
    lost = [
        cell.points
        for cell in assignment(name).of("public", "hidden")
        if any(f"def {test}(" in cell.source for test in tests)
    ]
    assert sum(test.get("score", 0) for test in graded) == pytest.approx(assignment(name).points - sum(lost))


def assignment(name: str) -> coursework.Assignment:
    return coursework.read(coursework.folder() / f"{name}.md")


def test_bad_input_is_one_clear_line(tmp_path, monkeypatch):
    with pytest.raises(BnbookError, match="no sheet 'nothing'"):
        coursework.make(tmp_path / "new", ["nothing"])
    with pytest.raises(BnbookError, match="is there already"):
        coursework.make(tmp_path)
    monkeypatch.setattr("locale.getpreferredencoding", lambda _: "cp1252")
    with pytest.raises(BnbookError, match="set PYTHONUTF8=1"):
        coursework.make(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_time_of_the_processor_is_that_of_the_program_and_of_the_system(monkeypatch, tmp_path):
    used = iter([SimpleNamespace(ru_utime=1.0, ru_stime=2.0), SimpleNamespace(ru_utime=4.0, ru_stime=7.0)])
    monkeypatch.setattr("resource.getrusage", lambda _: next(used))
    assert measuring._timed(["this"], tmp_path)["processor"] == 8.0


def test_points_are_those_that_were_earned(monkeypatch):
    def ran(words, place, *_, **__):
        if "otter" in words:
            tests = [{"score": 2.0, "max_score": 3.0}, {"score": 0.5, "max_score": 1.0}, {"name": "public"}]
            (Path(words[words.index("-o") + 1]) / "results.json").write_text(json.dumps({"tests": tests}))
        return {"seconds": 1.0, "processor": 1.0, "said": ""}

    monkeypatch.setattr(measuring, "_timed", ran)
    monkeypatch.setattr(coursework, "make", lambda *_: [SimpleNamespace(name="sheet")])
    monkeypatch.setattr(measuring, "digest", lambda _: "")
    monkeypatch.setattr(measuring, "found", lambda _: {})
    assert measuring.measure()["sheet"]["points"] == 2.5


def test_a_secret_that_would_reach_the_students_is_refused(monkeypatch, tmp_path):

    name = coursework.discover()[0].stem
    for secret in ("BEGIN SOLUTION", "hidden=True"):
        leak = lambda notebook, secret=secret: notebook | {"leak": secret}
        monkeypatch.setattr(coursework, "_unwritten", leak)
        with pytest.raises(BnbookError, match=f"students would get .{secret}"):
            coursework.make(tmp_path / "course", [name])
        assert not (tmp_path / "course").exists()
