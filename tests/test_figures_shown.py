"""Figures as the site shows them: inks for both themes, no ground, columns that stack on a phone."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest

from bnbook.figures import COLORS
from bnbook.pipeline import inks, lettering, panels, pictures

#: Every committed figure whose legend is in the figure.
EXECUTED = Path(__file__).parents[1] / "executed"
DRAWN = [path for path in sorted(EXECUTED.rglob("*.svg")) if '<g id="legend_' in path.read_text("utf-8")]


def drawn(fig: plt.Figure) -> str:
    buffer = io.BytesIO()
    fig.savefig(buffer, format="svg")
    plt.close(fig)
    return buffer.getvalue().decode()


def two_panels(**shared) -> plt.Figure:
    fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained", **shared)
    for ax in axes:
        ax.plot([0, 100], [0, 1], color="#D55E00")
        ax.set(xlabel="step", title="a title")
    axes[0].set_ylabel("loss")
    return fig


@pytest.mark.parametrize("name", [name for name in inks.PALETTE if name != "grid"])
def test_each_ink_stands_out_from_both_grounds(name):
    on_white, in_the_dark = inks.PALETTE[name]
    assert inks.contrast(on_white, inks.LIGHT_GROUND) >= 3
    assert inks.contrast(in_the_dark, inks.DARK_GROUND) >= 3


def test_contrast_is_that_of_the_standard():
    assert inks.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert inks.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert inks.contrast(inks.legible("#fde725", "#ffffff"), "#ffffff") >= 3
    assert inks.legible("#0072b2", "#ffffff") == "#0072b2", "what stands out already stays"


def test_no_two_meanings_share_an_ink():
    for theme in (0, 1):
        shown = [pair[theme] for pair in inks.PALETTE.values()]
        assert len(set(shown)) == len(shown)
    assert set(inks.DRAWN.values()) <= set(inks.PALETTE)


def test_a_figure_has_no_ground_and_other_inks_in_the_dark():
    fig = two_panels()
    fig.axes[0].fill_between([0, 100], [0, 1], [1, 2], color="#E3E3E3")
    fig.axes[0].axhline(0.5, color="#440154")
    light = inks.light(drawn(fig), "santurkar/training/curves")
    dark = inks.dark(light)
    assert "fill: #ffffff" not in light and "<metadata>" not in light and "#d55e00" not in light
    assert inks.PALETTE["none"][0] in light and inks.PALETTE["none"][1] in dark
    assert inks.PALETTE["grid"][1] in dark and inks.PALETTE["text"][1] in dark
    for svg, ground in ((light, inks.LIGHT_GROUND), (dark, inks.DARK_GROUND)):
        used = set(inks.INK.findall(svg)) - {
            pair[0] for pair in inks.PALETTE.values() if pair[0] == "#e3e3e3"
        }
        faint = {ink for ink in used if inks.contrast(ink, ground) < 3} - {inks.PALETTE["grid"][1]}
        assert not faint


def test_green_is_what_was_corrected_and_never_the_noise():
    svg = drawn(two_panels()).replace("#d55e00", "#009e73")
    assert inks.PALETTE["corrected"][0] in inks.light(svg, "mean-field/fisher/sweeps")
    assert inks.PALETTE["noisy"][0] in inks.light(svg, "santurkar/noisy-batch-norm/curves")
    violated = inks.light(drawn(two_panels()), "theory/minima/margins")
    assert inks.PALETTE["wrong"][0] in violated and inks.PALETTE["none"][0] not in violated


def test_a_new_run_draws_with_the_palette_and_is_left_as_it_is():
    fig, ax = plt.subplots()
    for name, ink in COLORS.items():
        ax.plot([0, 1], color=ink, label=name)
    svg = inks.light(drawn(fig), "santurkar/training/curves")
    assert {ink for ink in COLORS.values() if ink not in svg} == set()


def test_columns_stand_alone_and_one_without_labels_borrows_its_neighbours():
    own = panels.columns(drawn(two_panels()))
    assert [len(spans) for spans in own.spans] == [1, 1]
    (first,), (second,) = own.spans
    assert 0 <= first[0] < first[1] <= second[0] + 2 and second[1] <= own.width == 504
    shared = panels.columns(drawn(two_panels(sharey=True)))
    assert [len(spans) for spans in shared.spans] == [1, 2]
    labels, _ = shared.spans[1]
    assert labels[0] == shared.spans[0][0][0] and 15 < labels[1] - labels[0] < 80


def test_two_small_columns_stand_side_by_side_on_a_phone(tmp_path):
    for count, small in ((2, 0), (5, 5)):
        fig, axes = plt.subplots(1, count, figsize=(7, 3), layout="constrained")
        for ax in axes:
            ax.set_yticks([])
        (tmp_path / f"n{count}.svg").write_text(inks.light(drawn(fig), "a/b/c"))
        page = pictures.in_both_themes(
            f'<img alt="x" src="_images/n{count}.svg" />', pictures.pairs(tmp_path, tmp_path)
        )
        assert page.count('class="column narrow"') == small and page.count('class="column') >= count


def test_a_figure_with_one_panel_or_a_legend_of_its_own_stays_whole():
    fig, ax = plt.subplots()
    assert panels.columns(drawn(fig)).spans == ()
    fig = two_panels()
    fig.legend(["all"], loc="outside upper center")
    assert panels.columns(drawn(fig)).spans == ()


def test_a_page_shows_each_figure_once_a_theme_whole_and_by_columns(tmp_path):
    for name, fig in (("two", two_panels(sharey=True)), ("one", plt.figure())):
        svg = inks.light(drawn(fig), f"part/chapter/{name}")
        (tmp_path / f"{name}.svg").write_text(svg)
    (tmp_path / "logo.svg").write_text('<svg viewBox="0 0 1 1"></svg>')
    shown = pictures.pairs(tmp_path, tmp_path)
    assert set(shown) == {"one", "two"} and (tmp_path / "two.dark.svg").is_file()
    page = pictures.in_both_themes('<img alt="What &quot;it&quot; shows." src="../_images/two.svg" />', shown)
    images = re.findall(r'<img alt="([^"]*)" [^>]*class="only-(light|dark)" src="\.\./_images/([^"]*)"', page)
    assert [theme for _, theme, _ in images] == ["light", "dark"] * 4
    assert {source for _, theme, source in images if theme == "dark"} == {"two.dark.svg"}
    assert images[0][0] == "What &quot;it&quot; shows." and "Column 2 of 2" in images[-1][0]
    assert 'class="plot stacks"' in page and 'href="../_images/two.svg"' in page
    other = '<img alt="a logo" src="_images/logo.svg" />'
    assert pictures.in_both_themes(other, shown) == other
    assert 'class="plot fits"' in pictures.in_both_themes('<img alt="x" src="_images/one.svg" />', shown)


def test_on_a_phone_a_page_shows_the_narrow_drawing_of_a_figure_of_one_panel(tmp_path):
    images, drawings = tmp_path / "images", tmp_path / "part" / "chapter.figures"
    images.mkdir()
    drawings.mkdir(parents=True)
    (images / "one.svg").write_text(inks.light(drawn(plt.figure(figsize=(7, 3))), "part/chapter/curve"))
    narrow = inks.light(drawn(plt.figure(figsize=(4, 3))), "part/chapter/curve")
    (drawings / "curve.narrow.svg").write_text(narrow)
    shown = pictures.pairs(images, tmp_path)
    page = pictures.in_both_themes('<img alt="x" src="_images/one.svg" />', shown)
    sources = re.findall(r'width="(\d+)" height="\d+" class="only-(\w+)" src="_images/([^"]*)"', page)
    assert sources == [
        ("672", "light", "one.svg"),
        ("672", "dark", "one.dark.svg"),
        ("384", "light", "one.narrow.svg"),
        ("384", "dark", "one.narrow.dark.svg"),
    ]
    assert 'class="plot stacks"' in page and all((images / name).is_file() for _, _, name in sources)


def with_legend(size: float, width: float = 7, place: str = "upper right") -> plt.Figure:
    fig, ax = plt.subplots(figsize=(width, 3), layout="constrained")
    ax.plot([0, 1], color="#0068a8", label="with batch norm")
    ax.legend(fontsize=size, loc=place, frameon=False)
    return fig


def sizes(svg: str) -> dict[str, float]:
    """The size of each line's letters, by the words that Matplotlib leaves in a comment."""
    found = {}
    for words, inside in re.findall(r"<!-- (.*?) -->(.*?)<use", svg, flags=re.S):
        outer = re.findall(r'id="legend_\d+" transform="[^"]*scale\(([\d.]+)', svg)
        own = 100 * float(re.search(r"scale\(([\d.]+)", inside)[1])
        found[words] = own * (float(outer[0]) if outer and words == "with batch norm" else 1)
    return found


@pytest.mark.parametrize(("size", "width", "least"), [(7, 7, 9), (8, 9, 9 * 648 / 552), (10, 7, 10)])
def test_no_letter_is_smaller_than_nine_points_where_the_page_is_widest(size, width, least):
    svg = drawn(with_legend(size, width))
    assert sizes(svg)["with batch norm"] == pytest.approx(size)
    assert sizes(lettering.readable(svg))["with batch norm"] == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("place", ["upper right", "lower left"])
def test_an_enlarged_legend_stays_in_its_corner(place):
    svg = lettering.readable(drawn(with_legend(6, place=place)))
    x, y, factor = (float(n) for n in re.search(r"translate\((\S+) (\S+)\) scale\((\S+)\)\">", svg).groups())
    fixed = (x / (1 - factor), y / (1 - factor))
    assert (
        (fixed[0] > 460 and fixed[1] < 40) if place == "upper right" else (fixed[0] < 80 and fixed[1] > 150)
    )


def test_words_of_a_legend_stand_before_the_colour_of_the_ground():
    svg = lettering.readable(drawn(with_legend(10)))
    letters = len("withbatchnorm") + 2
    assert svg.count(lettering.BEHIND) == 1
    assert svg.split(lettering.BEHIND)[1].split("<g id=")[0].count("<use") == letters
    assert inks.dark(inks.light(svg, "a/b/c")).count(f"fill: {inks.DARK_GROUND}") == 1


def strokes(part: ElementTree.Element, outlines: dict, width: float = 1.0, scale: float = 1.0):
    """The width of each stroke in a group, in points."""
    size = re.search(r"scale\(([\d.]+)", part.get("transform", ""))
    scale *= float(size[1]) if size else 1.0
    given = re.search(r"stroke-width: ([\d.]+)", part.get("style", ""))
    width = float(given[1]) if given else width
    if part.tag.endswith("}use"):
        yield from strokes(
            outlines[part.get("{http://www.w3.org/1999/xlink}href")[1:]], outlines, width, scale
        )
    elif part.tag != f"{panels.SVG}g":
        yield width * scale
    for inside in part:
        yield from strokes(inside, outlines, width, scale)


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: "/".join(path.parts[-4:]))
def test_what_lies_behind_a_legend_is_little_wider_than_its_letters(path):
    """A root's or a fraction's bar is drawn in other units than letters are."""
    svg = lettering.readable(path.read_text(encoding="utf-8"), lettering.PHONE)
    root = ElementTree.fromstring(svg.encode())
    outlines = {each.get("id"): each for each in root.iter(f"{panels.SVG}path") if each.get("id")}
    behind = [each for each in root.iter(f"{panels.SVG}g") if each.get("style") == lettering.BEHIND]
    assert len(behind) == sum(len(lettering.TEXT.findall(m[0])) for m in lettering.LEGEND.finditer(svg))
    assert all(1 < width < 6 for group in behind for width in strokes(group, outlines))


def test_a_label_grows_only_as_far_as_its_neighbours_leave_room():
    fig = plt.figure(figsize=(7, 3))
    fig.text(0.1, 0.5, "mmmm", fontsize=6)
    fig.text(0.1 + 4 * 6 / 504, 0.5, "close by", fontsize=6)
    fig.text(0.8, 0.5, "alone", fontsize=6)
    shown = sizes(lettering.readable(drawn(fig)))
    assert shown["alone"] == pytest.approx(9) and shown["mmmm"] < 9


def test_a_picture_that_matplotlib_did_not_draw_is_left_as_it_is():
    assert (
        lettering.readable('<svg width="10"><text>a</text></svg>') == '<svg width="10"><text>a</text></svg>'
    )
