"""Figures as the site shows them: drawn from results by functions, in inks for both themes, for a page and for a phone."""

from __future__ import annotations

import dataclasses
import io
import random
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook import figures
from bnbook.errors import BnbookError
from bnbook.figures import COLORS
from bookpress import paths
from bookpress.book import book, folders, register
from bookpress.pipeline import inks, pictures
from bookpress.pipeline.chapter_runs import published
from bookpress.pipeline.chapters import discover
from bookpress.profiles import PUBLISHED
from bookpress.results import Results

CHAPTERS = {chapter.name: chapter for chapter in discover()}


def drawn(fig: plt.Figure) -> str:
    buffer = io.BytesIO()
    fig.savefig(buffer, format="svg")
    plt.close(fig)
    return buffer.getvalue().decode()


def two_panels(**shared) -> plt.Figure:
    fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained", **shared)
    for ax in axes:
        ax.plot([0, 100], [0, 1], color=COLORS["none"])
        ax.set(xlabel="step", title="a title")
    axes[0].set_ylabel("loss")
    return fig


def resolved(svg: str) -> tuple[str, str]:
    """What a browser makes of a themed figure, on white and where its address ends in #dark."""
    assert svg.count(f'<svg id="{inks.DARK}" ') == 1
    style, light, dark = re.search(r"<style>:root\{(.*?)\}:root:target\{(.*?)\}.*?</style>", svg).group(
        0, 1, 2
    )
    shown = []
    for names in (light, light + dark):
        known = dict(re.findall(r"(--\d+):(#\w{6});", names))
        shown.append(
            re.sub(r"var\((--\d+)\)", lambda name, known=known: known[name[1]], svg.replace(style, ""))
        )
    root = dict(re.findall(r"(--\d+):(#\w{6});", light))
    letters = root[re.search(r"fill:var\((--\d+)\)", light)[1]]
    assert letters == inks.palette()["text"][0], "of letters without an ink"
    return shown[0], shown[1]


# ---- inks ----


def test_each_ink_stands_out_from_both_grounds_and_means_one_thing():
    for theme, ground in enumerate((inks.LIGHT_GROUND, inks.DARK_GROUND)):
        shown = {name: pair[theme] for name, pair in inks.palette().items()}
        assert len(set(shown.values())) == len(shown)
        assert not [name for name, ink in shown.items() if name != "grid" and inks.contrast(ink, ground) < 3]


def test_contrast_is_that_of_the_standard_and_a_scale_keeps_its_order_in_the_dark():
    assert inks.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert inks.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert inks.legible("#0072b2", "#ffffff") == "#0072b2", "what stands out already stays"
    scale = [inks.legible(ink, inks.LIGHT_GROUND) for ink in ("#00224e", "#35456c", "#666970", "#948e77")]
    far = [inks.contrast(ink, inks.LIGHT_GROUND) for ink in scale]
    dark = [inks.contrast(inks.mirrored(ink), inks.DARK_GROUND) for ink in scale]
    assert far == sorted(far, reverse=True) and far[0] > 2 * far[-1] > 8
    np.testing.assert_allclose(dark, far, rtol=0.06)


def test_any_ink_stands_out_from_both_grounds_in_the_theme_of_each():
    chosen = random.Random(0)
    for ink in (f"#{chosen.randrange(16**6):06x}" for _ in range(60)):
        if not inks.is_grey(ink):
            drawing = f'<svg viewBox="0 0 1 1"><path style="stroke: {ink}"/></svg>'
            for svg, ground in zip(
                resolved(inks.themed(drawing, "a/b/c")), (inks.LIGHT_GROUND, inks.DARK_GROUND)
            ):
                (used,) = re.findall(r"stroke: (#\w+)", svg)
                assert inks.contrast(used, ground) >= 3, (ink, used)


def test_a_figure_has_no_ground_and_the_palettes_inks_in_either_theme():
    fig = two_panels()
    fig.axes[0].fill_between([0, 100], [0, 1], [1, 2], color="#E3E3E3")
    fig.axes[0].axhline(0.5, color="#440154")
    svg = inks.themed(drawn(fig), "santurkar/training/curves", ["a", "b"])
    light, dark = resolved(svg)
    assert "fill: #ffffff" not in light and "<metadata>" not in svg and "<!--" not in svg
    for name in ("none", "grid", "text"):
        assert inks.palette()[name][0] in light and inks.palette()[name][1] in dark
    assert "#000000" not in light and inks.told(svg) == ("santurkar/training/curves", ("a", "b"))
    assert inks.told(inks.themed(drawn(two_panels()), "a/b/c")) == ("a/b/c", ())
    assert inks.told(drawn(two_panels())) == ("", ())


def test_what_lies_on_a_painted_panel_is_alike_in_both_themes():
    fig, ax = plt.subplots(figsize=(4, 3))
    ax.pcolormesh(np.arange(12.0).reshape(3, 4), cmap="viridis")
    ax.plot([1, 2], [1, 2], color="white", label="line")
    ax.scatter([1.5], [1.5], s=30, color="white", edgecolor="#222222")
    ax.plot(2, 1, "o", color=COLORS["none"])
    ax.set_title("words that are on no scale")
    light, dark = resolved(inks.themed(drawn(fig), "a/b/plane"))
    roots = [ElementTree.fromstring(svg) for svg in (light, dark)]
    on_scale = [[ElementTree.tostring(x) for x in root.iter() if "clip-path" in x.attrib] for root in roots]
    assert len(on_scale[0]) > 12 and on_scale[0] == on_scale[1]
    assert inks.palette()["text"][1] in dark and 'class="around"' not in light


def test_words_stand_before_the_colour_of_the_ground_but_white_ones():
    fig, ax = plt.subplots(figsize=(4, 3))
    ax.text(0.5, 0.5, "on the line")
    ax.text(0.2, 0.8, "on a colour", color="white")
    svg = inks.themed(drawn(fig), "a/b/c")
    names = re.findall(r'<use href="#(text_\d+)" class="around"/><g id="(text_\d+)">', svg)
    assert names and all(one == other for one, other in names)
    assert svg.count('<g id="text_') == len(names) + 1, "all but the white one"
    ground = re.search(r"\.around\{stroke:var\((--\d+)\)", svg)[1]
    assert f"{ground}:{inks.LIGHT_GROUND};" in svg and f"{ground}:{inks.DARK_GROUND};" in svg


def test_the_bar_of_a_root_has_an_outline_as_thin_as_its_letters():
    """A letter is a path with a name, 64 units high for one of the text; a bar has none, and no such scale."""

    def draw(_):
        fig, ax = plt.subplots()
        ax.set_title(r"$\sqrt{m}$")
        return fig

    (svg,) = figures.drawn(draw, {}, narrow=False)
    svg = inks.themed(svg.decode(), "part/chapter/name")
    (title,) = re.findall(r'<g id="text_\d+"><g [^>]*>(?=<defs>.*?DOblique)(.*?</g>)', svg, re.S)[-1:]
    assert re.search(r'<path (?!id=)d="', title), "the bar"
    thin = re.search(r"\[id\^=text\] path:not\(\[id\]\)\{stroke-width:(\d+)\}", svg)[1]
    letters = re.search(r"\.around\{[^}]*stroke-width:(\d+)", svg)[1]
    assert int(letters) == pytest.approx(64 * int(thin), rel=0.05)


# ---- which function draws what ----


def chapter_of(*cells: str):
    path = paths.book_folder() / "a" / "b.md"
    text = "```{figure} b.figures/one.svg\n:alt: x\n```\n```{figure} ../c/d.figures/two.svg\n```\n"
    return SimpleNamespace(name="a/b", path=path, text=text, code_cells=list(cells))


CELLS = "from bnbook.chapters import reach\nimport bnbook.chapters.reach as far\nimport numpy as np"


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("figure('one', reach.beside_rule)", "beside_rule"),
        ("page.figure('one', far.beside_rule)", "beside_rule"),
        ("def own(results):\n    return np.pi\nfigure('one', own)", "own"),
        ("figure('one', lambda results: 2)", "<lambda>"),
    ],
)
def test_a_cell_names_the_function_that_draws(call, names):
    (draw,) = pictures.drawings(chapter_of(CELLS, "x = train()\n" + call)).values()
    assert draw.__name__ == names and (names != "own" or draw({}) == np.pi)


@pytest.mark.parametrize(
    "own", ["made = train()\nfigure('one', made)", "figure('one', reach.made)", "figure('one', mad)"]
)
def test_what_names_no_function_is_told_without_an_import_and_refused_in_one_line(own):
    assert pictures.told(chapter_of(CELLS, own)) == set()
    assert pictures.told(chapter_of(CELLS, "figure('one', reach.beside_rule)")) == {"one"}
    with pytest.raises(BnbookError, match="a/b: \"figure\\('one', .*\\)\" names no drawing function"):
        pictures.drawings(chapter_of(CELLS, own))
    assert pictures.drawings(chapter_of("figure(x, y)\nfigure('one')\nsave_figure(fig, 'one')")) == {}


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_page_shows_what_functions_draw_from_the_published_results_and_nothing_else(name):
    """Without what is done to every drawing; some draw other profiles' runs, too."""
    known = pictures.drawings(CHAPTERS[name])
    assert set(known) == set(pictures.shown(CHAPTERS[name])) == pictures.told(CHAPTERS[name])
    runs = (published(CHAPTERS[name], profile) for profile in PUBLISHED)
    for run in (run for run in runs if run.exists):
        with plt.rc_context(figures.STYLE):
            for draw in known.values():
                fig = draw(run.results)
                assert any(ax.has_data() for ax in fig.axes)
                plt.close(fig)


# ---- drawn once, in both ways ----


@pytest.fixture
def press(tmp_path, monkeypatch):
    """A book whose package draws with what a test says, and a run with one result."""
    told = SimpleNamespace(drawn=[])
    module = SimpleNamespace(drawings=lambda chapter: {"one": told}, modules=lambda chapter: ())

    def drawn(draw, results, narrow, formats):
        draw.drawn.append((results["x"].tolist(), narrow))
        svg = f'<svg viewBox="0 0 {100 if narrow else 400} 50"><path style="stroke: #000000"/></svg>'
        return [f"{kind} {draw.drawn[-1]}".encode() if kind == "png" else svg.encode() for kind in formats]

    module.drawn = drawn
    before = book()

    class Told(type(before)):
        figures = module

    register(Told(**{f.name: getattr(before, f.name) for f in dataclasses.fields(before)}))
    monkeypatch.setenv("BNBOOK_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(pictures, "_drawings", lambda path: module.drawings(""))
    monkeypatch.setattr(pictures, "_results", lambda path: Results({}, ENTRIES))
    yield told
    register(before)


ENTRIES = {"x": {"values": [1.0, 2.0], "unit": "", "seeds": [0, 1], "note": ""}}


def run_of(tmp_path, content="1", *cells):
    results = Results({"content": content}, ENTRIES)
    folder = tmp_path / "own"
    folder.mkdir(exist_ok=True)
    return SimpleNamespace(
        chapter=chapter_of(*cells), results=results, results_path=tmp_path / "x.json", figures_folder=folder
    )


def test_a_figure_is_drawn_for_a_page_and_a_phone_once_for_the_same_results_and_code(
    press, tmp_path, monkeypatch
):
    place = tmp_path / "pages" / "a" / "b.figures"
    pictures.put([run_of(tmp_path)], tmp_path / "pages")
    assert press.drawn == [([1.0, 2.0], False), ([1.0, 2.0], True)]
    found = {path.name: path.read_text() for path in place.iterdir()}
    assert {name: inks.told(svg) for name, svg in found.items()} == {
        "one.svg": ("a/b/one", ("x",)), "one.narrow.svg": ("a/b/one", ())
    }  # fmt: skip
    assert "0 0 400 50" in found["one.svg"] and "0 0 100 50" in found["one.narrow.svg"]
    for again, times in ((("1",), 2), (("2",), 4), (("2", "import numpy"), 6)):
        pictures.put([run_of(tmp_path, *again)], tmp_path / f"pages{times}")
        assert len(press.drawn) == times
    assert (tmp_path / "pages2/a/b.figures/one.svg").read_text() == found["one.svg"]
    monkeypatch.setattr(pictures, "told", lambda chapter: {"one"})
    assert pictures.picture(run_of(tmp_path, "3")) == b"png ([1.0, 2.0], False)" and len(press.drawn) == 7
    pictures.put([run_of(tmp_path, "3")], tmp_path / "pages3")  # that for a phone was left
    assert pictures.picture(run_of(tmp_path, "3")) and len(press.drawn) == 8
    monkeypatch.setattr(inks, "palette", lambda: inks.PALETTE | {"other": ("#111111", "#eeeeee")})
    pictures.put([run_of(tmp_path)], tmp_path / "inks")
    assert len(press.drawn) == 10, "in other inks it is another drawing"


def test_what_a_runs_own_cell_drew_is_taken_while_its_code_is_the_same(press, tmp_path):
    own = '<svg viewBox="0 0 777 50"><path style="stroke: #000000"/></svg>'
    page = tmp_path / "pages" / "a" / "b.figures" / "one.svg"
    for content, cells, width in (("1", (), 777), ("2", ("import numpy",), 400)):
        run = run_of(tmp_path, content, *cells)
        (run.figures_folder / "one.svg").write_text(own)
        note = run.figures_folder / pictures.MADE_WITH
        note.write_text(pictures.made_with(chapter_of(), folders().values()))
        pictures.put([run], tmp_path / "pages")
        assert f"0 0 {width} 50" in page.read_text()
        assert inks.told(page.read_text()) == ("a/b/one", ("x",))
    (run.figures_folder / "one.svg").unlink()
    pictures.put([run_of(tmp_path, "3")], tmp_path / "pages")
    assert "0 0 400 50" in page.read_text()


def test_what_cannot_be_drawn_is_said_by_its_name(press, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "_results", lambda path: Results({}, {}))
    with pytest.raises(
        BnbookError, match="a/b: the figure one cannot be drawn from its results .KeyError.*no result 'x'"
    ):
        pictures.put([run_of(tmp_path)], tmp_path / "pages")


def test_a_drawing_hangs_on_the_code_that_its_cells_reach_and_on_no_other(tmp_path):
    reached = pictures._reached(["bnbook.chapters.reach", "numpy", "bnbook.no_such"])
    assert {"bnbook.chapters.reach", "bnbook.figures", "bnbook.plots.layout"} <= reached
    assert "bnbook.chapters.edge" not in reached and not any(name.startswith("numpy") for name in reached)
