"""Every verdict, effect, interval and p of the committed results once more, by other code: raw JSON and YAML, NumPy,
SciPy's own intervals, the words written out again. Asked of the package is which draws count (tests/bookpress/claims)."""

from __future__ import annotations

import csv
import io
import json
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from bnbook import rules
from bnbook.errors import BnbookError
from bookpress import claims, results
from bookpress.claims import draws, kinds
from bookpress.pipeline import prose
from bookpress.site import exports, pages

ROOT = Path(__file__).parents[2]
RUNS = sorted((ROOT / "executed").glob("*/*/*.json"))
INF = np.inf


def chapter_of(run: Path) -> str:
    return f"{run.parent.name}/{run.stem}"


# ---- What was recorded ---------------------------------------------------------------------------------------------


def raw_claims(chapter: str) -> list[dict]:
    path = ROOT / "book" / f"{chapter}.claims.yml"
    content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {"claims": []}
    head = {key: content[key] for key in ("evidence", "statement") if key in content}
    return [{**head, **claim} for claim in content["claims"]]


@cache
def raw_draws(run: Path) -> list[dict]:
    """The results of the draws beside a results file, the oldest first, and its own at the end."""
    beside = ROOT / "executed" / "draws" / run.relative_to(ROOT / "executed")
    earlier = json.loads(beside.read_text(encoding="utf-8"))["draws"] if beside.is_file() else []
    return [each["results"] for each in (*earlier, json.loads(run.read_text(encoding="utf-8")))]


def that_count(claim: claims.Claim, published: results.Results, raw: list[dict]) -> list[dict]:
    """The draws by which a claim is judged; any other is left out for a reason, or a later one has all its numbers."""
    counting, found = draws.counting(claim, published), []
    for k, draw in enumerate(published.draws):
        if any(draw is one for one in counting):
            found.append(raw[k])
        elif not draws.left_out(claim, draw, published):
            names = [name for name in claim.result_names() if name in raw[k] and name in raw[-1]]
            assert not names or any(
                is_in(raw[k], later, names) for later in raw[k + 1 :] if {*names} <= later.keys()
            ), claim.id
    return [*found, raw[-1]]


def is_in(draw: dict, later: dict, names: list[str]) -> bool:
    for name in names:
        mine, theirs = (dict(zip(run[name]["seeds"], run[name]["values"])) for run in (draw, later))
        a = np.array([*mine.values()], dtype=float)
        b = np.array([theirs.get(seed, np.full_like(a[0], np.inf)) for seed in mine], dtype=float)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=0, equal_nan=True):
            return False
    return True


def named(*tests: dict) -> set[str]:
    found = [[test.get("a"), test.get("b"), *test.get("results", [])] for test in tests]
    return {name for names in found for name in names if isinstance(name, str)}


def raw_tests(claim: dict, recorded: dict) -> list[dict]:
    """The tests of a claim's parts, or its own; of a ladder those of the rungs that the run has reached; and the
    corrected one."""
    if "rungs" in claim:
        each = [json.loads(json.dumps(claim["test"]).replace("{rung}", rung)) for rung in claim["rungs"]]
        return [test for test in each if named(test) <= recorded.keys()]
    tests = [part["test"] for part in claim.get("parts", [claim])]
    return [*tests, claim["corrected"]] if "corrected" in claim else tests


def by_seed(runs: list[dict], *names: str | float) -> np.ndarray:
    """A row for each seed of the values of all names, of a seed that was drawn several times those of its last draw."""
    found = {}
    for run in runs:
        if {name for name in names if isinstance(name, str)} <= run.keys():
            seeds = run[names[0]]["seeds"]
            columns = [run[name]["values"] if isinstance(name, str) else [name] for name in names]
            columns = [np.array(each, dtype=float).reshape(len(each), -1) for each in columns]
            rows = np.concatenate([np.broadcast_to(c, (len(seeds), c.shape[1])) for c in columns], axis=1)
            found |= dict(zip(seeds, rows, strict=True))
    return np.array([found[seed] for seed in sorted(found)])


def rows_of(test: dict, runs: list[dict]) -> np.ndarray:
    """What a test compares: a row for each result, a column for each seed. Of a sign it is whether a lies on its side."""
    rows = by_seed(runs, *(test.get("results") or [test[k] for k in ("a", "b") if k in test])).T
    if "nonfinite" in test:
        rows = np.where(np.isfinite(rows), rows, float(test["nonfinite"]))
    if test["kind"] == "sign":
        ahead = rows[0] > rows[1] if test["side"] == "greater" else rows[0] < rows[1]
        rows = np.where(np.isfinite(rows).all(0), ahead, np.nan)[None]
    return rows


# ---- Intervals -----------------------------------------------------------------------------------------------------


def are_events(*rows: np.ndarray) -> bool:
    return rows[0].size > 1 and bool(np.isin(rows, (0.0, 1.0)).all())


def mean_interval(x, level):
    """Student's interval of a mean; a point where nothing varies."""
    if len(x) == 1:
        return x[0], -INF, INF
    if np.all(x == x[0]):
        return x[0], x[0], x[0]
    return (x.mean(), *stats.t.interval(level, len(x) - 1, loc=x.mean(), scale=stats.sem(x)))


def level_interval(x, level):
    """Of a share of seeds that of Clopper and Pearson."""
    if not are_events(x):
        return mean_interval(x, level)
    return (x.mean(), *stats.binomtest(int(x.sum()), len(x)).proportion_ci(level, method="exact"))


def difference_interval(a, b, level):
    """Paired; for shares of seeds Bonett and Price's adjusted Wald interval."""
    if not are_events(a, b):
        return mean_interval(a - b, level)
    up, down = (((a > b).sum() + 1) / (len(a) + 2), ((a < b).sum() + 1) / (len(a) + 2))
    half = stats.norm.isf((1 - level) / 2) * np.sqrt((up + down - (up - down) ** 2) / (len(a) + 2))
    return (a - b).mean(), max(up - down - half, -1), min(up - down + half, 1)


def ratio_interval(a, b, level):
    return tuple(np.exp(mean_interval(np.log(a / b), level)))


def agreement_interval(a, b, level):
    """By the delta method."""
    ratio = a.mean() / b.mean()
    _, low, high = mean_interval((a - ratio * b) / b.mean(), level)
    return ratio - 1, ratio - 1 + low, ratio - 1 + high


def widened(test, effect, low, high):
    """The width of the grid on both sides; a bracket does not reach its own ends."""
    if "resolution" not in test:
        return effect, low, high
    width = float(test["resolution"])
    if test["kind"] == "ratio":
        return effect, low / width * (1 + 1e-9), high * width * (1 - 1e-9)
    return effect, low - width * (1 - 1e-9), high + width * (1 - 1e-9)


def edges(test):
    """Between which two numbers a test holds."""
    if test["kind"] in ("ordering", "sign"):
        return (0.0 if test["kind"] == "ordering" else 0.5), INF
    if "side" in test:
        at = float(test["threshold"])
        return (at, INF) if test["side"] == "greater" else (-INF, at)
    about, margin = float(test.get("expected", 0)), float(test.get("margin", test.get("tolerance")))
    return about - margin, about + margin


def lies(low, high, least, most):
    """Inside, outside or across; on the edge of a side it lies outside, on that of a margin inside."""
    if INF in (-least, most):
        return False if high <= least or low >= most else True if low > least and high < most else None
    return False if high < least or low > most else True if low >= least and high <= most else None


# ---- One test, and the word of a claim -----------------------------------------------------------------------------


def recompute(test: dict, runs: list[dict], level: float = 0.95) -> tuple:
    """(holds, effect, low, high) of one test by the results of all draws that count."""
    if test["kind"] == "identity":
        worst = np.abs(by_seed(runs, test["a"])).max()
        worst = worst if np.isfinite(worst) else INF
        return bool(worst <= float(test["tolerance"])), worst, worst, worst
    if test["kind"] == "inequality":
        return violations(test, runs)
    rows = rows_of(test, runs)
    if not np.isfinite(rows).all() or test["kind"] == "ratio" and (rows <= 0).any():
        return None, np.nan, -INF, INF
    if test["kind"] == "ordering":
        cells = [partial(difference_interval, b, a) for a, b in zip(rows, rows[1:])]
    elif test["kind"] in ("level", "rate", "sign"):
        cells = [partial(level_interval, row) for row in rows]
    else:
        of = {"ratio": ratio_interval, "agreement": agreement_interval}
        cells = [partial(of.get(test["kind"], difference_interval), *rows)]
    count, (least, most) = max(int(test.get("cells", 1)), len(cells)), edges(test)
    jointly = [widened(test, *cell(1 - (1 - level) / count)) for cell in cells]
    alone = jointly if test["kind"] == "ordering" else [widened(test, *cell(level)) for cell in cells]
    # Each cell must hold by its own interval; one that fails by the interval for all cells refutes.
    refuted = [k for k, (_, *ends) in enumerate(jointly) if lies(*ends, least, most) is False]
    loose = [k for k, (_, *ends) in enumerate(alone) if lies(*ends, least, most) is not True]
    far = [max(high - most, least - low) for _, low, high in alone]
    shown = max(refuted or loose or range(len(cells)), key=lambda k: far[k])
    if refuted or loose:
        return (False if refuted else None, *jointly[shown])
    return (True, *alone[shown])


def violations(test: dict, runs: list[dict]) -> tuple:
    """None of many trials; the interval of their share is at least as wide as the seeds' own shares say."""
    broken, trials = np.abs(by_seed(runs, test["a"])), test.get("b")
    own = by_seed(runs, trials)[:, 0] if isinstance(trials, str) else trials or broken.shape[1]
    own = np.broadcast_to(own, len(broken))
    low, high = stats.binomtest(int(broken.sum()), int(own.sum())).proportion_ci(method="exact")
    if len(broken) > 1:
        _, least, most = mean_interval(broken.sum(1)[own > 0] / own[own > 0], 0.95)
        low, high = max(0, min(low, least)), min(1, max(high, most))
    return bool(broken.sum() == 0), broken.sum() / own.sum(), low, high


def expected_word(claim: dict, held: list, profile: str, exact: bool) -> str:
    """The table of words, written out once more."""
    counts = claim.get("evidence", ["laptop", "paper"])
    if not (exact or profile in counts or profile == "overnight" and "laptop" in counts):
        return "not tested at this scale"
    mended = held.pop() is True if "corrected" in claim else None
    some = claim.get("combine") == "any"
    proved, refuted = (any(held), all(h is False for h in held)) if some else (all(held), False in held)
    if not (proved or refuted):
        return "open"
    if claim.get("asks"):
        return "yes" if proved else "no"
    if claim.get("statement"):
        condition = "condition" in claim
        if proved:
            return "holds if …" if condition and mended is None else "holds"
        return ("holds if …" if condition else "wrong as printed, corrected") if mended else "wrong"
    if proved:
        return "reproduced"
    return "mixed" if True in held else "partly refuted, rest open" if None in held else "not reproduced"


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parts[-3]}-{chapter_of(run)}")
def test_the_ledger_is_what_other_code_finds(run):
    chapter, profile, published, raw = chapter_of(run), run.parts[-3], results.read(run), raw_draws(run)
    assert len(raw) == len(published.draws) + 1
    head = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8").split("\n---\n")[0]
    exact, books = "exact: true" in head, {claim.id: claim for claim in claims.chapter_claims(chapter)}
    for claim in raw_claims(chapter):
        tests = raw_tests(claim, raw[-1])
        if not tests or not named(*tests) <= raw[-1].keys():
            continue  # asked after this run, or at other profiles, or of rungs that no run has reached
        own = books[claim["id"]]
        found = [recompute(test, that_count(own, published, raw)) for test in tests]
        word = expected_word(claim, [holds for holds, *_ in found], profile, exact)
        assert claims.verdict(own, published, profile, exact=exact) == word, own.id
        counting, reached = draws.counted(own, published), set(published)
        shown = [kinds.evaluate(t, counting, own.id) for t in own.tests if set(t.result_names()) <= reached]
        for outcome, (_, *numbers) in zip(shown, found, strict=True):
            book = [outcome.effect, *outcome.interval]
            np.testing.assert_allclose(book, numbers, rtol=1e-7, atol=1e-12, err_msg=own.id)


def test_p_values_sign_tests_and_what_is_kept_are_what_other_code_finds(the_book, book_rows):
    """p is the least α at which the interval at 1 - α still decides."""
    ps, kept, signs = [], [], 0
    for claim, row in zip(the_book.claims, book_rows, strict=True):
        run = the_book.evidence[claim.chapter]
        tests = [test for test in row["tests"] if test["p"] is not None]
        runs = that_count(claim, run.results, raw_draws(run.results_path)) if tests else []
        for test in tests:
            ps.append(test["p"])
            kept.append(test["kept"])
            asked = json.loads(json.dumps(test["test"]))
            if 1e-11 < test["p"] < 0.99:
                assert recompute(asked, runs, 1 - 1.003 * test["p"])[0] is not None, row["id"]
                assert recompute(asked, runs, 1 - 0.997 * test["p"])[0] is None, row["id"]
            (least, most), rows = edges(asked), rows_of(asked, runs)
            edge = most if least == -INF else least
            if test["holds"] is None or INF not in (-least, most) or len(rows) > 2 or "results" in asked:
                continue
            a, *others = rows
            x = a / others[0] if asked["kind"] == "ratio" else a - others[0] if others else a
            above, below, chance = int((x > edge).sum()), int((x < edge).sum()), 0.5
            if are_events(x) and 0 < edge < 1:  # a share of seeds is held against its edge
                above, below, chance = int(x.sum()), int((1 - x).sum()), edge
            tail = stats.binom(above + below, chance)
            expected = min(1, 2 * min(tail.cdf(above), tail.sf(above - 1)))
            np.testing.assert_allclose(test["sign_p"], expected, rtol=1e-4, err_msg=row["id"])
            signs += 1
    assert kept == list(stats.false_discovery_control(ps) <= 0.05) and signs > 150 and len(ps) > 400


# ---- The same rows as data, and the page on how a verdict is made --------------------------------------------------


def test_the_exports_say_what_pages_show(the_book, book_rows):
    assert [row["id"] for row in book_rows] == [claim.id for claim in the_book.claims]
    apart = {"rests_on": [], "tests": []}  # `kept` is of the whole book
    for row, claim in zip(book_rows, the_book.claims):
        if found := the_book.judgement(claim):
            assert row | apart == found | apart
    assert json.loads(exports.as_json(book_rows)) == {"schema": exports.SCHEMA, "claims": book_rows}
    lines = list(csv.DictReader(io.StringIO(exports.as_csv(book_rows))))
    tests = [(row["id"], test["says"], row["words"]) for row in book_rows for test in row["tests"]]
    assert len(tests) > 400 and [(e["id"], e["test_says"], e["words"]) for e in lines] == tests


def test_the_page_on_verdicts_shows_these_numbers_and_leaves_nothing_open(the_book):
    name = "how-a-verdict-is-made"
    filled = lambda text, shown: prose.fill(text, name, shown, pages.here(name, shown))
    page = filled((ROOT / "book" / f"{name}.md").read_text(encoding="utf-8"), the_book)
    assert "{{" not in page and "nan" not in page
    for rates, seeds in ((rules.one_mean("heavy tails", 5), 5), (rules.share(0.9, 20), 20)):
        assert f" {100 * rates.holds:.1f}, {100 * rates.fails:.1f} |" in page, seeds
    (example,) = (claim for claim in the_book.claims if claim.id == rules.EXAMPLE)
    seeds = the_book.rows[example.id]["n"]
    assert example.says in page
    assert f"Student's t for {seeds} seeds is {stats.t.ppf(0.975, seeds - 1):.3f}" in page
    with pytest.raises(BnbookError, match="here:nonsense .* nothing fills it; known: power"):
        filled("{{ here:nonsense }}", prose.Pages({}, []))
    assert "1. " not in filled("{{ here:example }} {{ here:shared }}", prose.Pages({}, []))


def test_hardly_a_draw_of_the_book_contradicts_another(the_book):
    """From holds to fails or back: none of the same seeds, and of hundreds of others less than one in a hundred."""
    said = rules.redrawings(the_book.claims)
    assert int(said["same_tests"]) >= 180 and int(said["other_tests"]) >= 450
    assert said["same_reversed"] == "none"
    assert int(said["other_reversed"].replace("none", "0")) <= int(said["other_tests"]) / 100
