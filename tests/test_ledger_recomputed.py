"""Every verdict, effect and interval of the committed results once more, by other code: raw JSON and YAML,
NumPy, SciPy's own intervals, and the words written out again. Only the last step asks the package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

ROOT = Path(__file__).parents[1]
RUNS = sorted((ROOT / "executed").glob("*/*/*.json"))


def chapter_of(run: Path) -> str:
    return f"{run.parent.name}/{run.stem}"


def raw_claims(chapter: str) -> list[dict]:
    path = ROOT / "book" / f"{chapter}.claims.yml"
    if not path.is_file():
        return []
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    head = {key: content[key] for key in ("evidence", "statement") if key in content}
    return [{**head, **claim} for claim in content["claims"]]


def is_exact(chapter: str) -> bool:
    """The chapter's own header says so."""
    text = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8")
    return "exact: true" in text.split("\n---\n")[0]


def mean_interval(x, level=0.95):
    """Student's interval of a mean; a point where nothing varies."""
    if len(x) == 1:
        return x[0], -np.inf, np.inf
    if np.all(x == x[0]):
        return x[0], x[0], x[0]
    return (x.mean(), *stats.t.interval(level, len(x) - 1, loc=x.mean(), scale=stats.sem(x)))


def binary(*rows):
    return len(rows[0]) > 1 and set(np.concatenate(rows)) <= {0.0, 1.0}


def difference_interval(a, b, level=0.95):
    """Paired; for shares of seeds Bonett and Price's adjusted Wald interval."""
    if not binary(a, b):
        return mean_interval(a - b, level)
    n, d = len(a), a - b
    up, down = ((d == 1).sum() + 1) / (n + 2), ((d == -1).sum() + 1) / (n + 2)
    half = stats.norm.isf((1 - level) / 2) * np.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return d.mean(), max(up - down - half, -1), min(up - down + half, 1)


def level_interval(a, level=0.95):
    if not binary(a):
        return mean_interval(a, level)
    found = stats.binomtest(int(a.sum()), len(a)).proportion_ci(level, method="exact")
    return a.mean(), found.low, found.high


def widened(found, test, factors=False):
    """The width of the grid on both sides; a bracket does not reach its own ends."""
    effect, low, high = found
    if "resolution" not in test:
        return found
    width = float(test["resolution"])
    if factors:
        return effect, low / width * (1 + 1e-9), high * width * (1 - 1e-9)
    return effect, low - width * (1 - 1e-9), high + width * (1 - 1e-9)


def worst_of_cells(test, rows, judge):
    """Each cell must hold by its own interval; one that fails by the interval for all cells refutes."""
    alone = [widened(level_interval(row), test) for row in rows]
    jointly = [
        widened(level_interval(row, 1 - 0.05 / int(test.get("cells", len(rows)))), test) for row in rows
    ]
    refuted = [k for k, ends in enumerate(jointly) if judge(*ends[1:]) is False]
    loose = [k for k in range(len(rows)) if k not in refuted and judge(*alone[k][1:]) is not True]
    far = [max(high - test["edges"][1], test["edges"][0] - low) for _, low, high in alone]
    among = refuted or loose or range(len(rows))
    shown = max(among, key=lambda k: far[k])
    if refuted or loose:
        return (False if refuted else None, *jointly[shown])
    return (True, *alone[shown])


def beyond(low, high, side, threshold):
    if side == "greater":
        return True if low > threshold else False if high <= threshold else None
    return True if high < threshold else False if low >= threshold else None


def within(low, high, centre, margin):
    if low >= centre - margin and high <= centre + margin:
        return True
    return False if low > centre + margin or high < centre - margin else None


def recompute(test: dict, results: dict):
    """(holds, effect, low, high) of one test."""
    number = {k: float(test[k]) for k in ("threshold", "margin", "tolerance", "expected") if k in test}
    values = lambda name: np.array(results[name]["values"], dtype=float)
    if test["kind"] == "identity":
        worst = np.abs(values(test["a"])).max()
        worst = worst if np.isfinite(worst) else np.inf
        return bool(worst <= number["tolerance"]), worst, worst, worst
    if test["kind"] == "inequality":
        broken, trials = values(test["a"]), test.get("b")
        size = values(trials).sum() if isinstance(trials, str) else (trials or 0) * len(broken) or broken.size
        found = stats.binomtest(int(broken.sum()), int(size)).proportion_ci(method="exact")
        low, high = found.low, found.high
        if len(broken) > 1:  # at least as wide as the seeds' own shares say
            each = values(trials) if isinstance(trials, str) else trials or broken[0].size
            each = np.broadcast_to(each, len(broken))
            own = broken.reshape(len(broken), -1).sum(1)[each > 0] / each[each > 0]
            half = stats.t.ppf(0.975, len(own) - 1) * stats.sem(own)
            low, high = max(0, min(low, own.mean() - half)), min(1, max(high, own.mean() + half))
        return bool(broken.sum() <= test.get("allowed", 0)), broken.sum() / size, low, high
    names = test.get("results") or [test[k] for k in ("a", "b") if k in test]
    first = values(names[0]).reshape(-1)
    rows = [values(n).reshape(-1) if isinstance(n, str) else np.array([float(n)]) for n in names]
    rows = np.array([np.broadcast_to(row, first.shape) for row in rows])
    if "nonfinite" in test:
        rows = np.where(np.isfinite(rows), rows, float(test["nonfinite"]))
    nothing = (None, np.nan, -np.inf, np.inf)
    if not np.isfinite(rows).all():
        return nothing
    kind, side = test["kind"], test.get("side")
    if kind in ("level", "rate"):
        if test.get("events"):
            assert set(rows.ravel()) <= {0.0, 1.0}
        if side:
            at = number["threshold"]
            test = {**test, "edges": (at, np.inf) if side == "greater" else (-np.inf, at)}
            return worst_of_cells(test, rows, lambda low, high: beyond(low, high, side, at))
        about, margin = number["expected"], number["tolerance"]
        test = {**test, "edges": (about - margin, about + margin)}
        return worst_of_cells(test, rows, lambda low, high: within(low, high, about, margin))
    if kind == "ordering":
        steps = [
            difference_interval(b, a, 1 - 0.05 / (len(rows) - 1))
            for a, b in zip(rows, rows[1:], strict=False)
        ]
        held = [beyond(low, high, "greater", 0.0) for _, low, high in steps]
        all_hold = False if False in held else None if None in held else True
        end = 2 if all_hold is False else 1
        return (all_hold, *min(steps, key=lambda step: step[end]))
    if kind == "sign":
        ahead = rows[0] > rows[1] if side == "greater" else rows[0] < rows[1]
        effect, low, high = level_interval(ahead.astype(float))
        return beyond(low, high, "greater", 0.5), effect, low, high
    if kind == "ratio":
        if (rows <= 0).any():
            return nothing
        effect, low, high = widened(np.exp(mean_interval(np.log(rows[0] / rows[1]))), test, factors=True)
        return beyond(low, high, side, number["threshold"]), effect, low, high
    if kind == "agreement":
        ratio = rows[0].mean() / rows[1].mean()
        _, low, high = mean_interval((rows[0] - ratio * rows[1]) / rows[1].mean())
        _, *ends = widened((ratio, ratio - 1 + low, ratio - 1 + high), test)
        return within(*ends, 0.0, number["tolerance"]), ratio - 1, *ends
    effect, low, high = widened(difference_interval(*rows), test)
    if kind == "equivalence":
        return within(low, high, 0.0, number["margin"]), effect, low, high
    return beyond(low, high, side, number["threshold"]), effect, low, high


def expected_word(claim: dict, outcomes: list, corrected, profile: str, exact: bool) -> str:
    """The table of words, written out once more."""
    counts = claim.get("evidence", ["laptop", "paper"])
    if not (exact or profile in counts or profile == "overnight" and "laptop" in counts):
        return "not tested at this scale"
    held = [outcome[0] for outcome in outcomes]
    some = claim.get("combine") == "any"
    refuted = all(h is False for h in held) if some else any(h is False for h in held)
    proved = any(h is True for h in held) if some else all(h is True for h in held)
    if not (refuted or proved):
        return "open"
    if claim.get("asks"):
        return "yes" if proved else "no"
    if claim.get("statement"):
        condition = "condition" in claim
        if proved:
            return "holds if …" if condition and corrected is None else "holds"
        mended = corrected is not None and corrected[0] is True
        return ("holds if …" if condition else "wrong as printed, corrected") if mended else "wrong"
    if proved:
        return "reproduced"
    return "mixed" if True in held else "partly refuted, rest open" if None in held else "not reproduced"


def named(tests: list[dict]) -> set[str]:
    found = [[test.get("a"), test.get("b"), *test.get("results", [])] for test in tests]
    return {name for names in found for name in names if isinstance(name, str)}


def raw_tests(claim: dict, results: dict) -> list[dict]:
    """The tests of a claim's parts, or its own; of a ladder, those of the rungs that the run has reached."""
    if "rungs" not in claim:
        return [part["test"] for part in claim.get("parts", [claim])]
    each = [json.loads(json.dumps(claim["test"]).replace("{rung}", rung)) for rung in claim["rungs"]]
    return [test for test in each if named([test]) <= results.keys()]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parts[-3]}-{chapter_of(run)}")
def test_the_ledger_is_what_other_code_finds(run):
    from bnbook import claims
    from bnbook.results import Results

    chapter, profile, exact = chapter_of(run), run.parts[-3], is_exact(chapter_of(run))
    results = json.loads(run.read_text(encoding="utf-8"))["results"]
    books = {claim.id: claim for claim in claims.chapter_claims(chapter)}
    for claim in raw_claims(chapter):
        tests = raw_tests(claim, results)
        needed = named([*tests, *([claim["corrected"]] if "corrected" in claim else [])])
        if not tests or not needed <= results.keys():
            continue  # asked after this run, or at other profiles, or of rungs that no run has reached
        outcomes = [recompute(test, results) for test in tests]
        corrected = recompute(claim["corrected"], results) if "corrected" in claim else None
        found = claims.judge(books[claim["id"]], Results({}, results), profile, exact=exact)
        assert found.verdict == expected_word(claim, outcomes, corrected, profile, exact), claim["id"]
        shown = [outcome for _, _, outcome in found.parts] or [found]
        shown = [each for each in shown if each.n] if "rungs" in claim else shown
        if corrected and outcomes[0][0] is False:
            shown, outcomes = [*shown, found.corrected], [*outcomes, corrected]
        for outcome, (_, *numbers) in zip(shown, outcomes, strict=True):
            book = [outcome.effect, *outcome.interval]
            np.testing.assert_allclose(book, numbers, rtol=1e-7, atol=1e-12, err_msg=claim["id"])


def test_no_refuted_claim_reads_open():
    """By the raw files: a claim of which every part has to hold, with one that is refuted, is not open."""
    from bnbook import claims
    from bnbook.results import Results

    books = {claim.id: claim for claim in claims.load_claims()}
    judged = refuted = 0
    for run in RUNS:
        results = json.loads(run.read_text(encoding="utf-8"))["results"]
        for claim in raw_claims(chapter_of(run)):
            tests = raw_tests(claim, results)
            if not tests or not named(tests) <= results.keys():
                continue
            judged += 1
            if claim.get("combine") != "any" and False in [recompute(test, results)[0] for test in tests]:
                refuted += 1
                assert claims.judge(books[claim["id"]], Results({}, results)).verdict != "open"
    assert judged >= 390 and refuted >= 180


def raw_values(test: dict, results: dict):
    """One value per seed and the edges of where the test holds, both on the scale of the interval."""
    columns = [results[test[k]]["values"] if isinstance(test.get(k), str) else test.get(k) for k in "ab"]
    a, b = (None if column is None else np.array(column, dtype=float).reshape(-1) for column in columns)
    if "nonfinite" in test:
        a, b = (None if x is None else np.where(np.isfinite(x), x, float(test["nonfinite"])) for x in (a, b))
    kind = test["kind"]
    if kind == "sign":
        return (a > b if test["side"] == "greater" else a < b).astype(float), (0.5,)
    if kind == "agreement":
        ratio = a.mean() / b.mean()
        x, about, margin = (a - ratio * b) / b.mean() + ratio - 1, 0.0, test["tolerance"]
    else:
        x = a if kind in ("level", "rate") else np.log(a / b) if kind == "ratio" else a - b
        about, margin = test.get("expected", 0.0), test.get("tolerance", test.get("margin"))
    if test.get("side"):
        edge = float(test["threshold"])
        return x, (np.log(edge) if kind == "ratio" else edge,)
    return x, (float(about) - float(margin), float(about) + float(margin))


def test_p_values_sign_tests_and_what_is_kept_are_what_other_code_finds():
    from bnbook import claims
    from bnbook.pipeline.chapters.chapters import discover
    from bnbook.pipeline.gate.passed import passed_run
    from bnbook.pipeline.pages import ledger
    from bnbook.pipeline.prose import tokens

    evidence = {chapter.name: passed_run(chapter) for chapter in discover()}
    rows = ledger.ledger(tokens.Pages(evidence, claims.load_claims()))
    checked, ps, kept = 0, [], []
    for row in rows:
        for test in (test for test in row["tests"] if test["p"] is not None):
            ps.append(test["p"])
            kept.append(test["kept"])
            asked, results = test["test"], evidence[row["chapter"]].results.entries
            if asked["kind"] == "ordering" or {"cells", "resolution", "results"} & asked.keys():
                continue  # several intervals, or wider ones: the verdict itself is recomputed above
            x, edges = raw_values(asked, results)
            if len(x) > 1 and np.ptp(x) > 0 and not set(x) <= {-1.0, 0.0, 1.0}:
                expected = max(stats.ttest_1samp(x, edge).pvalue for edge in edges)
                np.testing.assert_allclose(test["p"], expected, rtol=2e-3, atol=2e-12, err_msg=row["id"])
            elif (
                len(x) > 1 and set(x) <= {0.0, 1.0} and len(edges) == 1 and asked["kind"] in ("level", "sign")
            ):
                hits, tail = int(x.sum()), stats.binom(len(x), edges[0])
                expected = min(1, 2 * (tail.sf(hits - 1) if x.mean() > edges[0] else tail.cdf(hits)))
                np.testing.assert_allclose(test["p"], expected, rtol=3e-3, atol=2e-12, err_msg=row["id"])
            if test["holds"] is not None and len(edges) == 1:
                above, below = int((x > edges[0]).sum()), int((x < edges[0]).sum())
                if set(x) <= {0.0, 1.0} and 0 < edges[0] < 1:  # a share of seeds is held against its edge
                    tail = stats.binom(len(x), edges[0])
                    expected = min(1, 2 * min(tail.cdf(above), tail.sf(above - 1)))
                else:
                    expected = stats.binomtest(above, above + below).pvalue if above + below else 1.0
                np.testing.assert_allclose(test["sign_p"], expected, rtol=1e-4, err_msg=row["id"])
                checked += 1
    assert kept == list(stats.false_discovery_control(ps) <= 0.05) and checked > 150
