"""The site: words joined with evidence, numbers equal to the results files, nothing from an earlier build."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from locked_coin import claims_file, coin, edit, laptop_run

from bnbook.errors import BnbookError
from bookpress import claims
from bookpress.claims.locks import UNLOCKED
from bookpress.pipeline import chapter_runs, gate, prose, publishing
from bookpress.pipeline.chapters import discover
from bookpress.site import build, pages


def text_of(path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))


def test_a_site_shows_the_runs_numbers_and_no_older_ones(ran, capsys):
    stale = ran / "_build" / "jupyter_execute" / "part"  # trap 2: what an earlier build left
    stale.mkdir(parents=True)
    (stale / "coin.glue.json").write_text('{"heads": "stale"}')
    (ran / "_build" / "html").mkdir()
    (ran / "_build" / "html" / "removed.html").write_text("old")
    index = build.build("smoke")
    site = index.parent
    stages = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert stages == ["reading", "filling", "drawing", "rendering"], "a line as each begins"
    mean = f"{chapter_runs.fresh_run(coin(), 'smoke').results['heads'].mean():.1%}".replace("%", " %")
    assert f"Heads came up in {mean} (95 % interval" in text_of(site / "part" / "coin.html")
    assert f"Heads: {mean}" in text_of(index), "another chapter's number"
    image = re.search(r'<img alt="The same line[^"]*"[^>]*src="([^"]+)"', index.read_text()).group(1)
    assert (site / image).is_file(), "trap 4: a figure on the page of another chapter"
    assert "not tested at this scale (smoke run)" in (site / "scoreboard.html").read_text()
    assert "not tested here" in text_of(site / "scoreboard.html")
    own = (site / "part" / "coin.html").read_text()
    assert "bnbook run part/coin --profile smoke --compare" in own and "#claim-coin-fair" in own
    assert "../part/coin.html#claim-coin-fair" in (site / "claims" / "coin-fair.html").read_text()
    assert [*(site / "data").rglob("*.csv")], "what a figure draws is there to take along"
    assert "Peak memory" in text_of(site / "provenance.html")
    assert not stale.exists() and not (site / "removed.html").exists()
    page = (site / "part" / "coin.html").read_text()
    assert re.search(r'href="[^"]*_sources/part/coin\.ipynb" download', page), "trap 6"
    download = json.loads((site / "_sources" / "part" / "coin.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in download["cells"]]
    assert sources[-1].endswith('show_verdicts("part/coin", profile)'), "the one that is handed out"
    assert mean in sources[0] and not [source for source in sources if "{figure}" in source]
    assert "thebe" not in page.lower() and not re.search(r'(?:src|href)="https?://', page), "trap 6"
    assert (site / "_static" / "mathjax" / "tex-chtml.js").is_file()
    for text in (page,):
        words = f"A line, {mean} on average, not &quot;biased&quot;."
        assert set(re.findall(r'alt="([^"]*on average[^"]*)"', text.replace("\xa0", " "))) == {words}
    assert not [source for source in sources if "{{" in source or "git+" in source]
    every = [file.read_text() for file in site.rglob("*.html")]
    assert not [text for text in every if "<article" in text and "source-links" in text], "no address is set"
    shown = [text for text in every if 'http-equiv="refresh"' not in text]  # what leads on shows nothing
    assert all("Content-Security-Policy" in text for text in shown) and not [*site.rglob("*.map")]
    assert (site / "part" / re.search(r'<a class="way" download href="([^"]+)"', page)[1]).is_file()
    assert 'alt="A line' in page and not re.search(r'alt="[^"]*[0-9a-f]{32}', page)


def test_the_highest_fresh_profile_is_shown_and_stale_evidence_is_not(ran, tmp_path):
    path, staged = coin().path, tmp_path / "pages"
    publishing.publish(coin(), "laptop")

    def page():
        shutil.rmtree(staged, ignore_errors=True)
        pages.stage(staged, None)
        return (staged / "part" / "coin.ipynb").read_text()

    assert "**laptop** profile" in page() and "of 400 tosses" in page()
    edit(path, "rate) / tosses", "rate) / tosses * 1")
    assert "No fresh evidence" in page() and "appears once its chapter has been run" in page()
    assert "not run" in (staged / "scoreboard.md").read_text()
    edit(path, "rate) / tosses * 1", "rate) / tosses")
    edit(path, "Is it fair?", "Is this coin fair?")
    assert "Is this coin fair?" in page(), "prose is merged in again"


def test_the_scoreboard_says_scope_and_margin(ran, tmp_path):
    path = ran / "book" / "part" / "coin.claims.yml"
    chapter, text = coin(), path.read_text()

    def shown(more):
        path.write_text(text.replace("  says: ", more + "  says: ", 1))
        run = chapter_runs.Evidence(chapter, ran / "runs" / "smoke")
        return prose.Pages({chapter.name: run}, claims.load_claims())

    board = lambda more: pages.texts([chapter], shown(more))["scoreboard.md"]
    asked = board("  evidence: [smoke]\n  asks: true\n")
    assert "The book’s own question. About folklore" in asked and "smoke · n = 3" in asked
    assert "at half the margin <em>open</em>, at twice <em>yes</em>" in asked
    mended = "  evidence: [smoke]\n  statement: true\n"
    mended += "  corrected: {kind: level, a: heads, side: less, threshold: 1.0}\n"
    path.write_text(text)
    text = text.replace("expected: 0.5, tolerance: 0.2", "expected: 5, tolerance: 0.2")
    assert "</span>wrong as printed, corrected" in board(mended)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("half of the time", "never", "reworded after the run"),
        ("id: coin-fair", "id: coin-fairer", "exploratory: its test is not locked"),
        ("tolerance: 0.2", "tolerance: 0.3", f"exploratory: {UNLOCKED}"),
        ("id: coin-fair", "id: coin-fairer",
         "Withdrawn since its run, in [A coin](/part/coin.ipynb): `coin-fair`."),
    ],
)  # fmt: skip
def test_whatever_changed_since_the_run_shows_beside_the_verdict(ran, tmp_path, old, new, shown):
    for name in ("part/coin.claims.yml", "errata.yml"):
        path = ran / "book" / name
        text = path.read_text().replace(old, new)
        path.write_text(text.replace("claim: coin-fair\n", f"claim: {new[4:]}\n") if "id:" in old else text)
    pages.stage(tmp_path / "pages", "laptop")
    assert shown in (tmp_path / "pages" / "scoreboard.md").read_text()


def test_a_verdict_that_other_code_turns_shows(ran, monkeypatch):
    """An exact chapter by decree, or another way to judge: the verdict of the run itself stands beside it."""
    run = chapter_runs.fresh_run(coin(), "smoke")
    claim = claims.load_claims()[0]
    assert chapter_runs.judged(claim, run)["words"] == "not tested at this scale (smoke run)"
    object.__setattr__(run.chapter, "exact", True)
    again = chapter_runs.fresh_run(run.chapter, "smoke")
    assert chapter_runs.judged(claim, again)["words"].endswith("(“not tested at this scale” when it ran)")
    laptop = chapter_runs.fresh_run(run.chapter, "laptop")
    monkeypatch.setattr("bookpress.claims.judging.NOT_REPRODUCED", "reproduced")
    monkeypatch.setattr("bookpress.claims.judging.REPRODUCED", "not reproduced")
    assert chapter_runs.judged(claim, laptop)["words"] == "not reproduced (“reproduced” when it ran)"


@pytest.mark.parametrize(
    ("exact", "words"),
    [
        (False, "not tested at this scale (with tosses = 7 it reads “reproduced”)"),
        (True, "reproduced (with tosses = 7)"),
    ],
)
def test_what_a_rerun_changed_stands_beside_its_verdict(ran, exact, words):
    run, claim = chapter_runs.fresh_run(coin(), "laptop"), claims.load_claims()[0]
    run.results.header |= {"default_parameters": False, "other_settings": "tosses = 7"}
    object.__setattr__(run.chapter, "exact", exact)
    assert chapter_runs.judged(claim, run)["words"] == words


def test_a_verdict_that_was_only_renamed_has_not_turned(ran):
    """What the run noted in the words of its time stands for the words of now; another verdict shows."""
    run, claim = chapter_runs.fresh_run(coin(), "smoke"), claims.load_claims()[0]
    noted = run.results.header["judged"][claim.id]
    for then, remark in (("at most partly", ""), ("mixed", "“mixed” when it ran"), ("wrong, mended", None)):
        header = {"judged": {claim.id: noted | {"verdict": then}}}
        said = chapter_runs._remark(claim, "partly refuted, rest open", header)
        assert said == ("“wrong as printed, corrected” when it ran" if remark is None else remark)


@pytest.mark.parametrize("chapter", discover(), ids=lambda chapter: chapter.name)
def test_each_answer_box_can_be_told_from_the_text_around_it(chapter):
    assert chapter.text.count("\n:class: answer\n") == 1
    shown = pages.unanswered(chapter.text, chapter.name)
    assert "**Found.**" not in shown and "**At what scale.**" not in shown
    assert shown.partition("profile laptop`")[2] in chapter.text


def test_signs_in_claims_and_errata_never_become_markup(ran, tmp_path):
    edit(claims_file(ran), "half of the time", "<script>alert(1)</script> if $p<q$")
    edit(ran / "book" / "errata.yml", "Tails is", "<b>Tails</b> is")
    staged = pages.stage(tmp_path / "pages", "laptop") and tmp_path / "pages"
    shown = "".join((staged / name).read_text() for name in ("scoreboard.md", "errata.md", "part/coin.ipynb"))
    assert "<script" not in shown and "<b>" not in shown
    assert "&lt;script>" in shown and "&lt;b>Tails" in shown and "$p\\lt q$" in shown


LOW = "6m σ<sub>x<sub>i</sub></sub> (1 − μ/L)<sup>2t</sup> ‖w<sub>t</sub>‖²<sub>S</sub> c<sup>−1/2</sup>"
KEPT = "`a_b`, first_seed, $a_b^2$, {{ mean:part/coin#t.q_a }}"
MARKED = [
    (f"6m σ_{{x_i}} (1 − μ/L)^2t ‖w_t‖²_S c^(−1/2), {KEPT}", f"{LOW}, {KEPT}"),
    (
        "l1, lp and l-infinity normalization, `l1`, lp-norms, al2",
        "ℓ1, ℓp and ℓ∞ normalization, `l1`, lp-norms, al2",
    ),
    ("a < b, `a<b`, $1<2$, <i", r"a &lt; b, `a<b`, $1\lt 2$, &lt;i"),
]


@pytest.mark.parametrize(("written", "shown"), MARKED)
def test_signs_that_stand_for_themselves(written, shown):
    assert claims.without_markup(written) == shown


def test_the_stamp_says_which_numbers_another_chapters_other_profile_made(ran):
    run = laptop_run()
    other = chapter_runs.fresh_run(run.chapter, "laptop")
    quoting = dataclasses.replace(run.chapter, name="part/dice")
    book = prose.Pages({"part/coin": other}, [])
    assert "quoted" not in pages.stamp(quoting, run, book)
    edit(run.chapter.path, "Is it fair?", "Is it? {{ mean:part/coin#heads }}")
    quoting = dataclasses.replace(coin(), name="part/dice")
    assert "quoted" not in pages.stamp(quoting, run, book)
    other.results.header["profile"] = "overnight"
    assert "**laptop** profile; quoted: part/coin at **overnight** · data" in pages.stamp(quoting, run, book)


def test_the_stamp_says_from_which_seeds_most_results_come(ran):
    run = laptop_run()
    book = prose.Pages({"part/coin": run}, [])
    assert "· seeds 0 to 4 ·" in pages.stamp(run.chapter, run, book)
    run.results.entries["draws"] |= {"values": [1, 2], "seeds": [0, 3]}
    assert "· seeds 0 to 4 ·" in pages.stamp(run.chapter, run, book)  # all of them are among those
    run.results.entries["draws"] |= {"seeds": [0, 9]}
    assert "· seeds 0 to 4 and others ·" in pages.stamp(run.chapter, run, book)
    assert prose.fill("{{ ci:draws | .0f }}", "part/coin", book).endswith("; n = 2)")
    assert "n =" not in prose.fill("{{ ci:heads | .0f }}", "part/coin", book)


@pytest.mark.filterwarnings("error")
def test_a_seed_without_a_finite_value_is_shown_and_not_warned_of(ran):
    run = laptop_run()
    run.results.entries["draws"] |= {"values": [1.0, "inf"], "seeds": [0, 1]}
    book = prose.Pages({"part/coin": run}, [])
    for verb in ("ci", "factor"):
        assert "∞" in prose.fill(f"{{{{ {verb}:draws | .3g }}}}", "part/coin", book)


def test_pages_substitute_nothing_but_tokens(ran, tmp_path):
    """MyST would compute {{ 7*7 }}."""
    import yaml

    config = yaml.safe_load((ran / "_config.yml").read_text())
    assert "substitution" not in config["parse"]["myst_enable_extensions"]
    edit(ran / "book" / "index.md", "Heads:", "{{ 7*7 }}")
    with pytest.raises(BnbookError, match=r"index.md: \{\{ 7\*7 \}\} is not a token"):
        pages.stage(tmp_path / "pages", "laptop")


def test_evidence_of_code_that_reads_otherwise_is_merged_by_its_place(ran):
    """A moved module changes the text of an import and nothing that was measured."""
    edit(coin().path, "import numpy as np\n", "import numpy\nnp = numpy\n")
    run = laptop_run()
    printed = nbformat.v4.new_output("stream", text="{4: np.float64(-0.57), 'b': np.int64(3)}\n")
    chapter_runs.ran_cells(run.notebook)[-1].outputs = [printed]
    page = chapter_runs.with_evidence(run.chapter, run)
    last = [cell for cell in page.cells if cell.cell_type == "code"][-1]
    assert "np = numpy" in last.source and last.execution_count == 3
    assert last.outputs[0].text == "{4: -0.57, 'b': 3}\n" and "np." in printed.text


def shown(ran) -> prose.Pages:
    run = laptop_run()
    return prose.Pages({"part/coin": run}, claims.load_claims())


BAD = """mean:tails, verdict:coin-unfair, param:x, mean:part/other#heads, geo:draws, share:draws, value:draws, mean:draws[0],
mean:wide, mean:wide[2], param:tosses | zz, param:names | .2f, param:names[9], param:tosses[0], mean:draws | .1zz"""
BAD = [each.strip() for each in BAD.split(",")]


def test_tokens(ran):
    book = shown(ran)
    values = book.evidence["part/coin"].results["heads"]
    half = 2.776 * values.std(ddof=1) / 5**0.5

    book.evidence["part/coin"].results.entries |= {
        "rate": {"values": [0.5, 0.5], "seeds": [0, 1], "unit": ""},
        "wide": {"values": [[1, 2], [3, 4]], "seeds": [0, 1], "unit": ""},
    }

    def fill(text):
        return prose.fill(text, "part/coin", book)

    assert fill("{{ mean:heads | .3f }}") == f"{values.mean():.3f}"
    assert fill("{{ci:heads|.2f}}") == (
        f"{values.mean():.2f} (95 % interval {values.mean() - half:.2f} to {values.mean() + half:.2f})"
    )
    log, spread = np.log(values).mean(), 2.776 * np.log(values).std(ddof=1) / 5**0.5
    assert fill("{{ geo:heads | .3f }}") == (
        f"{np.exp(log):.3f} (95 % interval {np.exp(log - spread):.3f} to {np.exp(log + spread):.3f})"
    )
    ends = [10 ** (values.mean() + side * half) for side in (0, -1, 1)]
    assert fill("{{ factor:heads | .3f }}") == "{:.3f} (95 % interval {:.3f} to {:.3f})".format(*ends)
    assert fill("{{ power:heads | .3f }}") == f"{ends[0]:.3f}", "of a logarithm to base ten"
    assert fill("| {{ value:rate \\| .1% }} |") == "| 50.0 % |", "a bar inside a table"
    assert fill("| {{ ci:heads \\| .1% }} |") == (
        f"| {100 * values.mean():.1f} %<br><small>{100 * (values.mean() - half):.1f} to "
        f"{100 * (values.mean() + half):.1f} %</small> |"
    ), "in a table the interval stands below, small"
    assert fill("{{ n:heads }} {{ param:tosses }} {{ profile }} {{ data }}") == "5 400 laptop none"
    assert fill("{{ verdict:coin-fair }}") == "reproduced"
    assert not re.search(r"\d\.\d{6}", fill("{{ effect:coin-fair }}")), "without a format in words"
    book.evidence["part/coin"].results.header["parameters"]["names"] = ["a", "b", "c"]
    assert fill("{{ param:rate | fraction }} {{ param:names[0] }} {{ param:names[-1] }}") == "1/2 a c"
    book.evidence["part/coin"].results.header["parameters"]["rates"] = [1e-8, 3e-7, 0.001]
    assert fill("{{ param:rates }}") == "10⁻⁸, 3·10⁻⁷, 10⁻³"
    assert fill("$\\frac{{a}}{{b}}$") == "$\\frac{{a}}{{b}}$", "mathematics is left alone"
    for bad in BAD:  # draws has a 0, and a 4
        with pytest.raises(BnbookError, match="token"):
            fill(f"{{{{ {bad} }}}}")
    assert fill("{{ mean:wide[-1] | .0f }}") == "3"
    empty = prose.Pages({"part/coin": None}, book.claims)
    assert prose.fill("{{ mean:heads }} {{ verdict:coin-fair }}", "part/coin", empty) == "— —"


@pytest.mark.parametrize(
    ("values", "middle", "low", "high"),
    [([0.9, 1.0, 0.98, 0.6], 0.87, None, 1.0), ([0.1, 0.0, 0.02, 0.4], 0.13, 0.0, None)],
)
def test_the_interval_of_a_share_stays_between_0_and_1(values, middle, low, high):
    half = 3.182 * np.std(values, ddof=1) / 2
    ends = (middle - half if low is None else low, middle + half if high is None else high)
    assert prose.STATISTICS["share"](np.array(values)) == pytest.approx((middle, *ends), abs=1e-3)


def test_a_warning_of_the_site_build_is_an_error_that_names_it(ran):
    edit(coin().path, "Is it fair?", "See {ref}`nowhere-at-all`.")
    with pytest.raises(BnbookError, match="jupyter-book refused the pages: .*nowhere-at-all"):
        build.build("smoke")


def test_scrubbing_removes_progress_and_paths():
    status = {"papermill": {"status": "completed"}}
    cell = nbformat.v4.new_code_cell(
        "1", metadata={"papermill": status["papermill"] | {"start_time": "x"}, "a": 1}
    )
    said = {"stderr": "10%\r20%", "stdout": "in /home/ann/x"}
    cell.outputs = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in said.items()]
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"papermill": {"input_path": "/home/ann"}})
    gate.scrub(notebook)
    assert [output.text for output in cell.outputs] == [f"in {gate.SCRUBBED}"] and cell.metadata == status
    assert not any(pattern.search(json.dumps(notebook)) for pattern in gate.LOCAL_PATHS)


def test_figures_are_found_in_both_fences():
    text = "```{figure} a.figures/x.svg\n:name: a-x\n:alt: words\n\ncaption\n```\n"
    text += ":::{figure} a.figures/y.svg\n:alt: more\n:::\n"
    found = [(path, alt) for path, alt, *_ in chapter_runs.referenced_figures(text)]
    assert found == [("a.figures/x.svg", "words"), ("a.figures/y.svg", "more")]


@pytest.mark.parametrize("folder", [".", "book"])
def test_jupyter_book_alone_says_in_one_line_which_command_builds_the_site(tmp_path, folder):
    root = Path(__file__).parents[3]
    for name in ("_config.yml", "_toc.yml", "book/_toc.yml", "book/index.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy2(root / name, tmp_path / name)
    main = "from jupyter_book.cli.main import main; main()"
    program = [sys.executable, "-c", main, "build", str(tmp_path / folder), "-q"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 2 and "bnbook build" in done.stderr and "Traceback" not in done.stderr
