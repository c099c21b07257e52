"""Every verdict, effect and interval of the committed results once more, by other code: raw JSON and YAML,
NumPy, SciPy's own intervals, the words written out again, and the draws that count put together seed by seed. Only the
last step asks the package."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from bnbook import rules
from bnbook.errors import BnbookError
from bookpress import claims
from bookpress.pipeline import prose
from bookpress.site import exports as ledger
from bookpress.site import pages

ROOT = Path(__file__).parents[2]
RUNS = sorted((ROOT / "executed").glob("*/*/*.json"))
LOCKS = [
    json.loads(line) for line in (ROOT / "book" / "locks.jsonl").read_text(encoding="utf-8").splitlines()
]
#: Pairs of short names of code that gives the same numbers.
ALIKE = [{line["was"], line["now"]} for line in LOCKS if line["event"] == "same"] + [
    {then, hashlib.sha256(f'["{now["code"]}","{now["package"]}"]'.encode()).hexdigest()[:16]}
    for then, now in json.loads((ROOT / "executed" / "stamps.json").read_bytes()).items()
]


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


def difference_interval(a, b, level=0.95, events=False):
    """Paired; for shares of seeds Bonett and Price's adjusted Wald interval. Of a seed whose draws disagree as many
    pairs as can differ."""
    if not events:
        return mean_interval(a - b, level)
    n, less, more = len(a), np.minimum(a, 1 - b).sum(), np.minimum(b, 1 - a).sum()
    up, down = (less + 1) / (n + 2), (more + 1) / (n + 2)
    half = stats.norm.isf((1 - level) / 2) * np.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return (a - b).mean(), max(up - down - half, -1), min(up - down + half, 1)


def level_interval(a, level=0.95, events=False):
    if not events:
        return mean_interval(a, level)
    hits, n, tail = a.sum(), len(a), (1 - level) / 2
    if hits == round(hits):
        found = stats.binomtest(int(hits), n).proportion_ci(level, method="exact")
        return a.mean(), found.low, found.high
    return hits / n, stats.beta.ppf(tail, hits, n - hits + 1), stats.beta.isf(tail, hits + 1, n - hits)


def widened(found, test, factors=False):
    """The width of the grid on both sides; a bracket does not reach its own ends."""
    effect, low, high = found
    if "resolution" not in test:
        return found
    width = float(test["resolution"])
    if factors:
        return effect, low / width * (1 + 1e-9), high * width * (1 - 1e-9)
    return effect, low - width * (1 - 1e-9), high + width * (1 - 1e-9)


def worst_of_cells(test, rows, events, judge):
    """Each cell must hold by its own interval; one that fails by the interval for all cells refutes."""
    each = 1 - 0.05 / int(test.get("cells", len(rows)))
    alone = [
        widened(level_interval(row, 0.95, is_event), test) for row, is_event in zip(rows, events, strict=True)
    ]
    jointly = [
        widened(level_interval(row, each, is_event), test) for row, is_event in zip(rows, events, strict=True)
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


def values_of(runs, name):
    """Of each seed, in order, its |values| in the last run that has it."""
    found = {}
    for run in (each for each in runs if name in each):
        for seed, value in zip(run[name]["seeds"], run[name]["values"], strict=True):
            found[seed] = np.abs(np.array(value, dtype=float))
    return np.array([found[seed] for seed in sorted(found)])


def rows_of(test, runs):
    """What a test compares, a row for each result and a column for each seed, and of each row whether it counts
    events: of a seed that was drawn several times the last draw counts. Of a sign it is whether a lies on its side."""
    names = test.get("results") or [test[k] for k in ("a", "b") if k in test]
    found = {}
    for run in runs:
        if not named([test]) <= run.keys():
            continue
        columns = [
            np.ravel(run[n]["values"]).astype(float) if isinstance(n, str) else np.array([n]) for n in names
        ]
        for k, seed in enumerate(run[names[0]]["seeds"]):
            found[seed] = [column[k] if len(column) > 1 else column[0] for column in columns]
    rows = np.array([found[seed] for seed in sorted(found)], dtype=float).T
    if "nonfinite" in test:
        rows[~np.isfinite(rows)] = float(test["nonfinite"])
    if test["kind"] == "sign":
        ahead = rows[0] > rows[1] if test["side"] == "greater" else rows[0] < rows[1]
        rows = np.where(np.isfinite(rows).all(0), ahead, np.nan)[None]
    return rows, [rows.shape[1] > 1 and bool(np.isin(row, (0.0, 1.0)).all()) for row in rows]


def recompute(test: dict, runs: list[dict]):
    """(holds, effect, low, high) of one test by the results of all draws that count, the last run at the end."""
    number = {k: float(test[k]) for k in ("threshold", "margin", "tolerance", "expected") if k in test}
    if test["kind"] == "identity":
        worst = values_of(runs, test["a"]).max()
        worst = worst if np.isfinite(worst) else np.inf
        return bool(worst <= number["tolerance"]), worst, worst, worst
    if test["kind"] == "inequality":
        broken, trials = values_of(runs, test["a"]), test.get("b")
        own = values_of(runs, trials) if isinstance(trials, str) else None
        size = own.sum() if own is not None else (trials or 0) * len(broken) or broken.size
        found = stats.binomtest(int(broken.sum()), int(size)).proportion_ci(method="exact")
        low, high = found.low, found.high
        if len(broken) > 1:  # at least as wide as the seeds' own shares say
            each = own if own is not None else trials or broken[0].size
            each = np.broadcast_to(each, len(broken))
            own = broken.reshape(len(broken), -1).sum(1)[each > 0] / each[each > 0]
            half = stats.t.ppf(0.975, len(own) - 1) * stats.sem(own)
            low, high = max(0, min(low, own.mean() - half)), min(1, max(high, own.mean() + half))
        return bool(broken.sum() <= test.get("allowed", 0)), broken.sum() / size, low, high
    rows, events = rows_of(test, runs)
    nothing = (None, np.nan, -np.inf, np.inf)
    if not np.isfinite(rows).all():
        return nothing
    kind, side = test["kind"], test.get("side")
    if kind in ("level", "rate"):
        if test.get("events"):
            assert all(events)
        if side:
            at = number["threshold"]
            test = {**test, "edges": (at, np.inf) if side == "greater" else (-np.inf, at)}
            return worst_of_cells(test, rows, events, lambda low, high: beyond(low, high, side, at))
        about, margin = number["expected"], number["tolerance"]
        test = {**test, "edges": (about - margin, about + margin)}
        return worst_of_cells(test, rows, events, lambda low, high: within(low, high, about, margin))
    if kind == "ordering":
        steps = [
            difference_interval(b, a, 1 - 0.05 / (len(rows) - 1), events[k] and events[k + 1])
            for k, (a, b) in enumerate(zip(rows, rows[1:], strict=False))
        ]
        held = [beyond(low, high, "greater", 0.0) for _, low, high in steps]
        all_hold = False if False in held else None if None in held else True
        end = 2 if all_hold is False else 1
        return (all_hold, *min(steps, key=lambda step: step[end]))
    if kind == "sign":
        effect, low, high = level_interval(rows[0], 0.95, *events)
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
    effect, low, high = widened(difference_interval(*rows, 0.95, all(events)), test)
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


def hashed(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def measured_with(header):
    """What the locks call it: code, and settings without numbers of seeds."""
    of_seeds = lambda name: name == "seeds" or name.endswith(("_seeds", "first_seed"))
    settings = {k: v for k, v in header["parameters"].items() if k != "profile" and not of_seeds(k)}
    print_ = header["fingerprint"]
    return named_now(hashed([print_["code"], print_["package"]])[:16]), hashed(settings)[:8]


@cache
def named_now(code):
    """One name for all code that gives the same numbers: by what a fingerprint from before is called now, and by the
    `same` lines of the locks."""
    found, left = set(), {code}
    while left:
        found |= left
        left = {each for pair in ALIKE if found & pair for each in pair} - found
    return min(found)


def ways(claim, profile, now):
    """All that measures as `now` does, by the lines of the locks that carried the claim over."""
    own = [
        line
        for line in LOCKS
        if claim in (line.get("claim"), *line.get("claims", ()), *line.get("tests", ()))
    ]
    found = {now}
    for line in own:
        if profile in line.get("planned", {}):
            same = {(named_now(line["measure"]), line["planned"][profile]["settings"])}
            for each in own:
                if each["event"] == "carried" and each["profile"] == profile:
                    was, new = ((named_now(each[key][0]), each[key][1]) for key in ("was", "now"))
                    same |= {new} if was in same else set()
            found |= same if now in same else set()
    return found


def read(run):
    """A results file and the draws beside it, the oldest first and the last run at the end."""
    last = json.loads(run.read_text(encoding="utf-8"))
    path = ROOT / "executed" / "draws" / run.relative_to(ROOT / "executed")
    draws = json.loads(path.read_text(encoding="utf-8"))["draws"] if path.is_file() else []
    return [*({**draw["header"], "results": draw["results"]} for draw in draws), last]


@cache
def locked():
    return claims.locks.read()


def that_count(claim, needed, runs, profile):
    """The results of the draws by which a claim is judged: measured as the last run, with all that is needed, other
    numbers than in a later one, and not seen by a test that the last run had not shown its data to."""
    from bookpress.results import Results

    (own,) = (each for each in claims.chapter_claims(runs[-1]["chapter"]) if each.id == claim["id"])
    seen = lambda run: bool(claims.locks.standing(own, Results(run, run["results"]), locked()).exploratory)
    last, found = runs[-1], [runs[-1]]
    alike = ways(claim["id"], profile, measured_with(last))
    different = []
    for draw in runs[-2::-1]:
        shared = [name for name in own.result_names() if name in draw["results"] and name in last["results"]]
        if not shared or any(
            same_numbers(draw["results"], later["results"], shared) for later in [last, *different]
        ):
            continue
        different.append(draw)
        whole = needed <= draw["results"].keys() or "rungs" in claim
        same = (
            draw["fingerprint"].get("data") == last["fingerprint"].get("data")
            and measured_with(draw) in alike
        )
        if whole and same and not (seen(draw) and not seen(last)):
            found.append(draw)
    return [run["results"] for run in found[::-1]]


def same_numbers(draw, later, names):
    for name in names:
        if name not in later or not set(draw[name]["seeds"]) <= set(later[name]["seeds"]):
            return False
        place = [later[name]["seeds"].index(seed) for seed in draw[name]["seeds"]]
        a, b = (
            np.array(draw[name]["values"], dtype=float),
            np.array(later[name]["values"], dtype=float)[place],
        )
        exact = draw[name]["unit"] == "share"
        if a.shape != b.shape or not np.allclose(a, b, 0 if exact else 1e-9, 0, equal_nan=True):
            return False
    return True


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parts[-3]}-{chapter_of(run)}")
def test_the_ledger_is_what_other_code_finds(run):
    from bookpress import results as package
    from bookpress.claims import draws, kinds

    chapter, profile, exact = chapter_of(run), run.parts[-3], is_exact(chapter_of(run))
    drawn, published = read(run), package.read(run)
    results = drawn[-1]["results"]
    books = {claim.id: claim for claim in claims.chapter_claims(chapter)}
    for claim in raw_claims(chapter):
        tests = raw_tests(claim, results)
        needed = named([*tests, *([claim["corrected"]] if "corrected" in claim else [])])
        if not tests or not needed <= results.keys():
            continue  # asked after this run, or at other profiles, or of rungs that no run has reached
        runs = that_count(claim, needed, drawn, profile)
        outcomes = [recompute(test, runs) for test in tests]
        corrected = recompute(claim["corrected"], runs) if "corrected" in claim else None
        own = books[claim["id"]]
        found = claims.verdict(own, published, profile, exact=exact)
        assert found == expected_word(claim, outcomes, corrected, profile, exact), claim["id"]
        if corrected:
            outcomes = [*outcomes, corrected]
        counting = draws.counted(own, published)
        tests = [test for test in own.tests if set(test.result_names()) <= set(published)]
        shown = [kinds.evaluate(test, counting, own.id) for test in tests]
        for outcome, (_, *numbers) in zip(shown, outcomes, strict=True):
            book = [outcome.effect, *outcome.interval]
            np.testing.assert_allclose(book, numbers, rtol=1e-7, atol=1e-12, err_msg=claim["id"])


def raw_values(test: dict, runs: list[dict]):
    """One value per seed, whether these are events, and the edges of where the test holds on the scale of the
    interval."""
    rows, events = rows_of(test, runs)
    a, b, kind = rows[0], rows[-1], test["kind"]
    if kind == "sign":
        return a, True, (0.5,)
    if kind == "agreement":
        ratio = a.mean() / b.mean()
        x, about, margin = (a - ratio * b) / b.mean() + ratio - 1, 0.0, test["tolerance"]
    else:
        x = a if kind in ("level", "rate") else np.log(a / b) if kind == "ratio" else a - b
        about, margin = test.get("expected", 0.0), test.get("tolerance", test.get("margin"))
    if test.get("side"):
        edge = float(test["threshold"])
        return x, all(events), (np.log(edge) if kind == "ratio" else edge,)
    return x, all(events), (float(about) - float(margin), float(about) + float(margin))


def test_p_values_sign_tests_and_what_is_kept_are_what_other_code_finds(the_book, book_rows):
    checked, ps, kept, counted = 0, [], [], {}
    for chapter, own in the_book.evidence.items():
        drawn = read(own.results_path) if own else []
        for claim in raw_claims(chapter) if own else []:
            needed = named(
                [
                    *raw_tests(claim, drawn[-1]["results"]),
                    *([claim["corrected"]] if "corrected" in claim else []),
                ]
            )
            counted[claim["id"]] = that_count(claim, needed, drawn, own.profile)
    for row in book_rows:
        for test in (test for test in row["tests"] if test["p"] is not None):
            ps.append(test["p"])
            kept.append(test["kept"])
            asked = test["test"]
            if asked["kind"] == "ordering" or {"cells", "resolution", "results"} & asked.keys():
                continue  # several intervals, or wider ones: the verdict itself is recomputed above
            x, events, edges = raw_values(asked, counted[row["id"]])
            if len(x) > 1 and np.ptp(x) > 0 and not events:
                expected = max(stats.ttest_1samp(x, edge).pvalue for edge in edges)
                np.testing.assert_allclose(test["p"], expected, rtol=2e-3, atol=2e-12, err_msg=row["id"])
            elif len(x) > 1 and events and len(edges) == 1 and asked["kind"] in ("level", "sign"):
                hits, tail = x.sum(), stats.binom(len(x), edges[0])
                if hits != round(hits):
                    continue  # no count: the interval itself is recomputed above
                expected = min(1, 2 * (tail.sf(hits - 1) if x.mean() > edges[0] else tail.cdf(hits)))
                np.testing.assert_allclose(test["p"], expected, rtol=3e-3, atol=2e-12, err_msg=row["id"])
            if test["holds"] is not None and len(edges) == 1:
                above, below = int((x > edges[0]).sum()), int((x < edges[0]).sum())
                if events and 0 < edges[0] < 1:  # a share of seeds is held against its edge
                    tail = stats.binom(len(x), edges[0])
                    expected = min(1, 2 * min(tail.cdf(x.sum()), tail.sf(x.sum() - 1)))
                else:
                    expected = stats.binomtest(above, above + below).pvalue if above + below else 1.0
                np.testing.assert_allclose(test["sign_p"], expected, rtol=1e-4, err_msg=row["id"])
                checked += 1
    assert kept == list(stats.false_discovery_control(ps) <= 0.05) and checked > 150


# The same rows as data, and the page on how a verdict is made


def test_every_claim_has_a_row_with_the_verdict_that_pages_show_and_the_exports_say_the_same(
    the_book, book_rows
):
    assert [row["id"] for row in book_rows] == [claim.id for claim in the_book.claims]
    shown = {claim.id: the_book.judgement(claim) for claim in the_book.claims}
    for row in book_rows:
        if found := shown[row["id"]]:
            apart = {"rests_on": [], "tests": []}
            assert row | apart == found | apart
        for test in row["tests"]:
            if test["values"] and test["test"]["kind"] in ("difference", "level", "equivalence", "rate"):
                assert np.mean(test["values"]) == pytest.approx(test["effect"]["number"], rel=1e-4, abs=1e-6)
                assert len(test["values"]) == test["n"]
            if test["p"] is not None:
                assert (test["p"] <= 0.05) is (test["holds"] is not None), row["id"]
                assert test["kept"] is not None and 0 <= test["side"] <= test["n"]
    assert json.loads(ledger.as_json(book_rows)) == {"schema": ledger.SCHEMA, "claims": book_rows}
    tests = [(row, test) for row in book_rows for test in row["tests"]]
    lines = list(csv.DictReader(io.StringIO(ledger.as_csv(book_rows))))
    assert len(tests) > 400 and [(line["id"], line["test_says"], line["words"]) for line in lines] == [
        (row["id"], test["says"], row["words"]) for row, test in tests
    ]


def test_the_page_on_verdicts_shows_these_numbers_and_leaves_nothing_open(the_book):
    name = "how-a-verdict-is-made"
    text = (claims.reading.paths.book_folder() / f"{name}.md").read_text(encoding="utf-8")
    filled = lambda text, shown: prose.fill(text, name, shown, pages.here(name, shown))
    page = filled(text, the_book)
    assert "{{" not in page and "nan" not in page
    for rates, seeds in ((rules.one_mean("heavy tails", 5), 5), (rules.share(0.9, 20), 20)):
        assert f" {100 * rates.holds:.1f}, {100 * rates.fails:.1f} |" in page, seeds
    example = next(claim for claim in claims.load_claims() if claim.id == rules.EXAMPLE)
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
