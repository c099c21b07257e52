"""Chips, forest plots, the board and the pages of claims: what a reader is told is what the ledger says."""

from __future__ import annotations

import csv
import io
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from site_rows import row, rows

from bookpress.book import book
from bookpress.claims import Claim, Source, Test, judging
from bookpress.pipeline.chapters import Chapter
from bookpress.pipeline.prose import Pages
from bookpress.results import Results
from bookpress.site import board, claim_pages, front
from bookpress.site.claim_pages import Context, claim_page


def test_every_verdict_has_a_look_a_glyph_and_a_word_of_its_own():
    names = [name for name in dir(judging) if name.isupper() and isinstance(getattr(judging, name), str)]
    names = set(names) - {"SEEN", "DIVERGED"}  # why a draw is left out, and what a number did
    assert {getattr(judging, name) for name in names} <= set(board.LOOKS)
    seen = [(kind, glyph) for kind, glyph, _ in board.LOOKS.values()]
    pairs = {verdict: seen.count(board.LOOKS[verdict][:2]) for verdict in board.LOOKS}
    same = {verdict for verdict, number in pairs.items() if number > 1}
    assert same == {"reproduced", "holds", "wrong", "not reproduced", "not tested at this scale", "not run"}


def test_a_chip_leads_to_its_page_and_marks_what_is_exploratory():
    young = row("a-b", "open", exploratory='made "late"', words="open (more seeds)")
    shown = board.chip(young, "../")
    assert 'href="../claims/a-b.html"' in shown and "exploratory: made &quot;late&quot;" in shown
    assert "exploratory" not in board.chip(row("a"))
    token = re.match(r"(?P<name>.*)", "a-b")
    assert board.inlined({"a-b": young}, "../")(token).endswith("</a> (more seeds)")
    with pytest.raises(ValueError, match="no chapter has a claim 'a-b'"):
        board.inlined({}, "")(token)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ({"kind": "difference", "a": "x", "b": "y", "side": "greater", "threshold": 0.1}, (0.1, None)),
        ({"kind": "ratio", "a": "x", "b": "y", "side": "less", "threshold": 2.0}, (None, 2.0)),
        ({"kind": "equivalence", "a": "x", "b": "y", "margin": 0.03}, (-0.03, 0.03)),
        ({"kind": "rate", "a": "x", "expected": -0.5, "tolerance": 0.05}, (-0.55, -0.45)),
        ({"kind": "agreement", "a": "x", "b": "y", "tolerance": 0.1}, (-0.1, 0.1)),
        ({"kind": "ordering", "results": ["a", "b"]}, (0.0, None)),
        ({"kind": "sign", "a": "x", "b": "y", "side": "greater"}, (0.5, None)),
    ],
)
def test_a_forest_plot_knows_where_each_kind_of_test_holds(test, expected):
    found = board.bounds({"test": test})
    assert [None if edge is None else round(edge, 9) for edge in found] == list(expected)


def test_a_forest_plot_draws_threshold_interval_and_a_dot_a_seed_in_place():
    drawn = ElementTree.fromstring(board.plot(row("a")["tests"][0]))
    dots = sorted(float(each.get("cx")) for each in drawn if each.tag == "circle")
    lines = {each.get("class"): each.get("d") for each in drawn if each.tag == "path"}
    edge = float(re.match(r"M([\d.]+)", lines["edge"])[1])
    low, high = map(float, re.match(r"M([\d.]+) 17H([\d.]+)", lines["interval"]).groups())
    middle = float(re.match(r"M([\d.]+)", lines["effect"])[1])
    assert len(dots) == 5 and edge < low < middle < high
    assert low == dots[0] and high == dots[-1] and middle == pytest.approx((low + high) / 2, abs=0.11)
    assert lines["holds"] == f"M{edge} 3H{board.WIDTH}V31H{edge}z", "green from the threshold on"
    exact = row("a")["tests"][0] | {"test": {"kind": "identity", "tolerance": 1e-9}}
    assert board.plot(exact) == "" and board.plot(None) == ""
    diverged = row("a")["tests"][0] | {"values": [None, 0.12, 0.14]}
    assert board.plot(diverged).count("<circle") == 2


def test_the_plot_and_the_words_are_of_the_part_that_decides():
    first, second = row("a")["tests"][0], row("a")["tests"][0] | {"role": "part", "says": "second"}
    second = second | {"effect": {"number": 9.0, "unit": "", "words": "9 times"}, "interval": None}
    made = row("a", tests=[first | {"role": "part"}, second], effect=second["effect"], interval=None)
    assert board.deciding(made) is second
    assert "9 times" in board.found(made) and "part 2 of 2" in board.found(made)


def test_a_row_of_the_board_says_all_and_escapes_what_is_no_markup():
    shown = board.item(row("a"))
    assert r"\(\gamma &lt; 1\)" in shown and "&lt;true&gt;" in shown and "<true>" not in shown
    assert (
        "must hold: more than 10 points higher with batch norm" in shown and "95 % interval 11 to 15" in shown
    )
    assert "at twice <em>open</em>" in shown and "Santurkar et al. 2018, v1, NeurIPS: Figure 1" in shown
    assert 'data-source="santurkar2018|santurkar2018 v1|santurkar2018 NeurIPS"' in shown
    assert 'id="claim-a"' in shown and 'data-standing="locked"' in shown


def test_the_waffle_has_a_square_for_each_claim_and_counts_own_questions_apart():
    shown = board.waffle(rows())
    assert shown.count('href="claims/') == len(rows())
    assert "Santurkar et al. 2018: 10 claims" in shown and "Wikipedia: 1 claims" in shown
    assert "The book’s own questions: 2 claims" in shown and "(exploratory)" in shown
    assert "γ &lt; 1" in shown, "formulas in the squares' words are plain"


def test_the_legend_counts_the_squares_and_explains_their_frames():
    made = [*rows(), row("a-rung", "open", rungs=True)]
    legend = board.waffle(made).partition("waffle-legend")[2]
    counted = [int(number) for number in re.findall(r"</span>(\d+) (?!of them)", legend)]
    assert sum(counted) == len(rows()) and "1 yes (own questions)" in legend
    assert "1 of them exploratory" in legend and "#standing=exploratory&amp;sizes=first" in legend
    trust = front.trust(made, Pages({}, []))
    assert f"of {len(rows())} claims, 1 are exploratory" in trust
    untried = re.search(r"(\d+) open, (\d+) not tested", trust)
    assert f"{untried[1]} open" in legend, "the same squares are counted"


def test_the_scale_names_the_widest_and_the_longest_rung_that_was_reached():
    header = {"parameters": {"width": 0.125, "steps": 2000}, "data": []}
    made = SimpleNamespace(
        results=SimpleNamespace(header=header),
        chapter=SimpleNamespace(parameters=lambda profile: {"steps": 15000}),
        profile="laptop",
    )
    says = [
        "1/16 of the width, 2,000 steps.",
        "The whole width, 2,000 steps.",
        "1/4 of the width, 15,000 steps.",
    ]
    ladder = row("a-rung", rungs=True)
    test = ladder["tests"][0]

    def scale(*reached: int) -> str:
        ladder["tests"] = [test | {"says": words, "n": 3 * (at in reached)} for at, words in enumerate(says)]
        return front.trust([*rows(), ladder], Pages({book().main: made}, [])).partition(". At full size")[0]

    assert scale(0, 1, 2).endswith(
        "1/8 of the paper's width and train for 2,000 of 15,000 steps. One chapter goes up to the whole of the "
        "width, and, at 1/4 of it, to 15,000 steps"
    )
    assert scale(0, 2).endswith("goes up to 1/4 of the width, and, at 1/4 of it, to 15,000 steps")
    assert scale(0, 1).endswith("goes up to the whole of the width")
    assert scale(0).endswith("One chapter goes up to 1/16 of the width")
    assert scale().endswith("train for 2,000 of 15,000 steps")


def test_what_no_run_at_its_scale_has_tried_is_grey_and_said_not_to_count():
    made = row("a", judging.NOT_TESTED)
    made["tests"][0] |= {"verdict": judging.NOT_TESTED, "holds": False}
    shown = board.item(made)
    assert 'class="forest untested"' in shown and 'class="holds"' not in shown
    assert "at a scale that does not count · must" in shown
    own = claim_page(made, Context("A coin", None))
    assert "does not count at this scale" in own and "not met" not in own


def test_a_place_is_said_once():
    asked = row("a", kind="question", says="The book's own question: is it?")
    assert board.place(asked).startswith("About Santurkar") and "no source" not in board.place(asked)
    assert board.place(asked | {"says": "Is it?"}).startswith("The book’s own question. About Santurkar")
    source = {"key": "santurkar2018", "version": "v1", "where": "v1 Lemma 3.3"}
    assert board.place(row("a", source=source)).startswith("Santurkar et al. 2018, v1 Lemma 3.3 ·")
    assert board.source_version("encyclopedia", "English Wikipedia") == "Wikipedia"


def test_what_the_first_page_counts():
    made = rows()
    assert front.tally(made, "claims") == len(made) - 2 and front.tally(made, "questions") == 2
    assert front.tally(made, "exploratory") == 1 and front.tally(made, "statement.wrong") == 1
    assert front.tally(made, "measurement.decided") == 7 and front.tally(made, "question.yes") == 1
    with pytest.raises(ValueError, match="nothing is counted"):
        front.tally(made, "statement.hold")


def test_the_page_of_a_claim_has_all_that_the_board_leaves_out():
    twice = (("laptop", row("a")), ("paper", row("a", "not reproduced")))
    about = Context("A coin", None, places=("v1, Figure 1: it says so.",), runs=twice, locked="2026-11-20")
    shown = claim_page(row("a"), about).replace("\u00a0", " ")
    for text in (
        "<title>With γ &lt; 1 claim a is &lt;true&gt;. – reproduced</title>",
        "Must hold: more than 10 points higher with batch norm.",
        "locked 2026-11-20",
        "v1, Figure 1: it says so.",
        "bnbook run part/coin --profile laptop --compare",
        'href="a.json"',
        'href="a.csv"',
        "not reproduced",
        'href="../part/coin.html"',
        "tex-chtml.js",
    ):
        assert text in shown, text
    wide = shown.count("scrollable-table-container")
    assert wide and shown.count('container" tabindex="0"') == wide, "the keyboard reaches what scrolls"
    assert "http" not in re.sub(r"https?://www.w3.org\S*", "", shown), "no repository is set"
    young = claim_page(row("a", exploratory="made late"), about)
    assert "exploratory: made late" in young and "locked 2026" not in young
    read = claim_page(row("a", says="It is fast; we read, by a factor of 2 $< 3$."), about)
    assert "Our reading: by a factor of 2" in read and "Our reading" not in shown
    parted = row("a")
    parted["tests"] = [test | {"role": "part", "says": "l1."} for test in parted["tests"]]
    assert " ℓ1. Must hold:" in claim_page(parted, about)


@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        ({}, []),
        ({"sign_p": 0.2}, []),  # five seeds: it never can
        ({"n": 6, "sign_p": 0.22}, ["the sign test does not decide (p = 0.22)"]),
        ({"kept": False}, ["not kept among the many tests of the book"]),
        ({"kept": False, "holds": None, "n": 20, "sign_p": 0.9}, []),  # an open test decides nothing
    ],
)
def test_the_page_of_a_claim_says_where_many_tests_or_the_sign_test_disagree(changes, marks):
    made = row("a")
    made["tests"] = [test | changes for test in made["tests"]]
    shown = claim_page(made, Context("A coin", None)).replace("\u00a0", " ")
    every = ("the sign test does not decide (p = 0.22)", "not kept among the many tests of the book")
    assert [mark for mark in every if mark in shown] == marks


def test_a_rung_that_no_run_has_reached_is_neither_open_nor_measured():
    made = row("a", rungs=True)
    part = made["tests"][0] | {"role": "part", "says": "An eighth."}
    missing = {"verdict": "not tested at this scale", "holds": None, "n": 0, "values": []}
    made["tests"] = [part, part | missing | {"interval": None, "p": None}]
    shown = claim_page(made, Context("A ladder", None))
    found = re.findall(r'<li class="claim.*?</li>', shown, re.S)
    assert "met</span>" in found[0] and "n = 5" in found[0].replace("\u00a0", " ")
    assert "not tested at this scale</span>" in found[1] and "claim-found" not in found[1]
    assert "at every size that was reached" in shown


def held(results):
    """A run without earlier draws."""
    return SimpleNamespace(results=results, quoted=lambda n: (results.entries[n]["seeds"], results[n]))


def test_the_numbers_of_a_claim_are_a_line_a_seed():
    results = Results({}, {})
    for name, values in (("acc.batch", [0.5, 0.6]), ("grid", [[1, 2], [3, 4]])):
        results.entries[name] = {"values": values, "unit": "", "seeds": [0, 1], "note": ""}
    test = Test("difference", a="acc.batch", b="grid", side="greater", threshold=0.1)
    claim = Claim("a", "part/coin", Source("x", "y", "z"), "says", "shares", test)
    evidence = held(results)
    table = list(csv.reader(io.StringIO(claim_pages.per_seed(claim, evidence))))
    assert table[0] == ["seed", "acc.batch", "grid[0]", "grid[1]"]
    assert np.array_equal(np.array(table[1:], float), [[0, 0.5, 1, 2], [1, 0.6, 3, 4]])


def test_a_board_without_scripts_is_a_plain_list():
    chapters = [Chapter("part/coin", None, "A coin"), Chapter("part/dice", None, "Dice")]
    shown = board.board(rows(), chapters)
    assert shown.count('<li class="claim') == len(rows()) and " hidden>" in shown.partition("</form>")[0]
    assert board.rich("a `b<` $c$ <d>") == (
        'a <code>b&lt;</code> <span class="math notranslate nohighlight">\\(c\\)</span> &lt;d&gt;'
    )


def test_the_first_pages_pictures_are_as_wide_as_their_card_and_their_letters_are_not():
    found = {"a": [1.0, 3.0], "b": [4.0]}
    evidence = SimpleNamespace(per_seed=lambda name, _: found[name])
    shown = SimpleNamespace(evidence={"part/chapter": evidence})
    block = "```{dots}\none | batch | part/chapter#a\nother | none | part/chapter#b\n```\n"
    (svg,) = ElementTree.fromstring(front.pictures(block, shown))
    assert svg.get("width") == "100%" and "viewBox" not in svg.attrib
    bars = [float(each.get("x2").rstrip("%")) for each in svg if each.get("class", "").startswith("bar")]
    dots = [float(each.get("cx").rstrip("%")) for each in svg if each.tag == "circle"]
    zero = float(svg[1].get("x1").rstrip("%"))
    assert bars[0] - zero == pytest.approx((bars[1] - zero) / 2, abs=0.02)  # means 2 and 4, from 0 on
    assert dots[-1] == bars[1] == max(dots) > 70 and bars[0] == pytest.approx(
        (dots[0] + dots[1]) / 2, abs=0.02
    )


def test_the_places_of_a_forest_plot_by_hand():
    """From 0.1 to 0.15 with 6 % of room on each side, 200 pixels; factors on a logarithmic axis."""
    test = row("a")["tests"][0]
    shown = board.plot(test | {"values": [0.11, 0.12, 0.13, 2.0]})  # one is far out: it squeezes no other
    assert 'd="M20.7 3V31"' in shown and 'd="M56.4 17H199.3"' in shown and 'cx="218.0"' in shown
    ratio = {"kind": "ratio", "a": "a", "b": "b", "side": "greater", "threshold": 1.0}
    found = {"effect": {"number": 10.0}, "interval": {"low": 5.0, "high": 100.0}, "values": [10.0]}
    assert 'class="effect" d="M110.0 ' in board.plot(test | found | {"test": ratio})  # half of two decades
    near = {"effect": {"number": 1.5}, "interval": {"low": 1.2, "high": 2.0}, "values": [1.5]}
    assert 'class="effect" d="M110.0 ' in board.plot(test | near | {"test": ratio})  # half from 1 to 2


def test_claims_at_further_sizes_are_not_counted_again_and_seeds_have_their_middle():
    made = [*rows(), row("a-rung", rungs=True)]
    assert front.tally(made, "claims") == front.tally(rows(), "claims")
    assert front.tally(made, "measurement.reproduced") == front.tally(rows(), "measurement.reproduced")
    several = [row(f"n{n}", n=n) for n in (9, 2, 4, 3, 200)]
    assert "**Seeds.** 2 to 200, median 4." in front.trust(several, Pages({}, []))


def test_dots_on_a_logarithmic_axis_and_logarithms_as_factors():
    found = {"a": [1.0, 4.0], "b": [4.0], "c": [1.0, 1.0]}
    evidence = SimpleNamespace(per_seed=lambda name, _: np.array(found[name]))
    shown = SimpleNamespace(evidence={"part/chapter": evidence})
    lines = "one | batch | part/chapter#a\nother | none | part/chapter#b\n"
    text = front.pictures(f"```{{dots}} log\n{lines}```\n", shown)
    (svg,) = ElementTree.fromstring(text)
    assert not [each for each in svg if each.get("class", "").startswith("bar")]  # a bar would start at zero
    dots = [float(each.get("cx").rstrip("%")) for each in svg if each.tag == "circle"]
    ticks = {each.text: float(each.get("x").rstrip("%")) for each in svg if each.get("class") == "at"}
    assert ticks == {"1": dots[0], "2": pytest.approx((dots[0] + dots[1]) / 2, abs=0.02)}
    assert "one: 2; other: 4. A dot a seed, logarithmic scale" in text
    powers = front.pictures("```{dots} factor\nthree | batch | part/chapter#c\n```\n", shown)
    assert "three: 10 times. A dot a seed." in powers


def test_the_page_of_a_claim_says_which_margin_and_which_p():
    shown = claim_page(row("a"), Context("A coin", None)).replace("\u00a0", " ")
    assert "<dt>At half the margin</dt><dd>reproduced</dd>" in shown
    assert "<dt>At twice the margin</dt><dd>open</dd>" in shown
    for p, words_of_p in ((0.001, "p = 0.001"), (3e-6, "p = 3·10⁻⁶"), (0.0, "p &lt; 10⁻¹²")):
        made = row("a")
        made["tests"] = [test | {"p": p} for test in made["tests"]]
        found = claim_page(made, Context("A coin", None)).replace("\u00a0", " ")
        assert words_of_p in found or words_of_p.replace("&lt;", "<") in found, p


def test_the_numbers_of_a_claim_keep_their_nine_digits():
    results = Results({}, {"x": {"values": [1 / 3, 2e-7 / 3], "unit": "", "seeds": [0, 1], "note": ""}})
    claim = Claim(
        "a",
        "part/coin",
        Source("x", "y", "z"),
        "says",
        "f",
        Test("level", a="x", side="greater", threshold=0.0),
    )
    table = list(csv.reader(io.StringIO(claim_pages.per_seed(claim, held(results)))))
    assert [float(line[1]) for line in table[1:]] == pytest.approx([1 / 3, 2e-7 / 3], rel=1e-8)


def test_the_board_says_what_its_squares_and_rows_are():
    from bookpress.pipeline import pages

    said = pages._population([*rows(), row("a-rung", rungs=True)])
    assert said == (
        "A square each for 11 claims of the sources and 2 questions of the book's own. Below them 14 rows: "
        "one for each square; 1 judge claims again at several sizes."
    )


def test_the_numbers_of_a_claim_stand_beside_their_own_seeds():
    entry = {"unit": "", "note": ""}
    results = Results({}, {"a": entry | {"values": [1.0, 2.0], "seeds": [110, 111]}})
    results.entries["b"] = entry | {"values": [5.0, 6.0], "seeds": [111, 112]}
    test = Test("difference", a="a", b="b", side="greater", threshold=0.1)
    claim = Claim("a", "part/coin", Source("x", "y", "z"), "says", "f", test)
    table = list(csv.reader(io.StringIO(claim_pages.per_seed(claim, held(results)))))
    assert table == [["seed", "a", "b"], ["110", "1", ""], ["111", "2", "5"], ["112", "", "6"]]
