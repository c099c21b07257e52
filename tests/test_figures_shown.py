"""Figures as the site shows them: inks for both themes, no ground, columns that stack on a phone."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.figures import COLORS
from bookpress.book import book
from bookpress.pipeline import inks, phones, pictures
from bookpress.pipeline.pictures import compact
from bookpress.site.claim_pages import caption_of

#: Every committed figure, and those whose legend is in the figure.
COMMITTED = sorted((Path(__file__).parents[1] / "executed").rglob("*.svg"))
DRAWN = [path for path in COMMITTED if '<g id="legend_' in path.read_text("utf-8")]


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


def in_the_dark(light: str) -> str:
    """What a browser makes of a figure where its address ends in #dark; without that, it is as it was."""
    both = inks.for_both_themes(light)
    assert both.count(f'<svg id="{inks.DARK}" ') == 1
    style, root, target = re.search(r"<style>:root\{(.*?)\}:root:target\{(.*?)\}</style>", both).group(
        0, 1, 2
    )
    inside, names = both.replace(style, ""), dict(re.findall(r"(--\d+):(#\w{6});", root))
    words, fill = inks.palette()["text"][0], names[re.search(r"fill:var\((--\d+)\)$", root)[1]]

    def resolved(names: dict[str, str]) -> str:
        return re.sub(r"var\((--\d+)\)", lambda name: names[name[1]], inside)

    assert fill == words
    assert resolved(names) == light.replace(f' fill="{words}"', "", 1).replace("<svg ", '<svg id="dark" ', 1)
    return resolved(dict(re.findall(r"(--\d+):(#\w{6});", target)))


@pytest.mark.parametrize("name", [name for name in inks.palette() if name != "grid"])
def test_each_ink_stands_out_from_both_grounds(name):
    on_white, in_the_dark = inks.palette()[name]
    assert inks.contrast(on_white, inks.LIGHT_GROUND) >= 3
    assert inks.contrast(in_the_dark, inks.DARK_GROUND) >= 3


def test_contrast_is_that_of_the_standard():
    assert inks.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert inks.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert inks.contrast(inks.legible("#fde725", "#ffffff"), "#ffffff") >= 3
    assert inks.legible("#0072b2", "#ffffff") == "#0072b2", "what stands out already stays"


def test_what_lies_on_a_painted_panel_is_alike_in_both_themes():
    fig, ax = plt.subplots(figsize=(4, 3))
    ax.pcolormesh(np.arange(12.0).reshape(3, 4), cmap="viridis")
    ax.plot([1, 2], [1, 2], color="white", label="line")
    ax.scatter([1.5], [1.5], s=30, color="white", edgecolor="#222222")
    ax.plot(2, 1, "o", color="#d55e00")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    light = inks.light(drawn(fig), "a/b/plane")
    shown = [phones.parsed(svg) for svg in (compact(light), in_the_dark(compact(light)))]
    groups = [[each for each in root.iter() if "clip-path" in each.attrib] for root in shown]
    texts = [[ElementTree.tostring(each) for each in found] for found in groups]
    assert len(texts[0]) > 12 and texts[0] == texts[1]
    assert inks.palette()["text"][1] in in_the_dark(light), "numbers and names are not on it"
    other = inks.light(drawn(plt.figure(figsize=(2, 2))), "a/b/curves")
    assert inks.is_painted(light) and not inks.is_painted(other)


def test_a_scale_of_inks_keeps_its_order_in_the_dark():
    scale = [inks.legible(ink, inks.LIGHT_GROUND) for ink in ("#00224e", "#35456c", "#666970", "#948e77")]
    far = [inks.contrast(ink, inks.LIGHT_GROUND) for ink in scale]
    dark = [inks.contrast(inks.mirrored(ink), inks.DARK_GROUND) for ink in scale]
    assert far == sorted(far, reverse=True) and far[0] > 2 * far[-1] > 8
    np.testing.assert_allclose(dark, far, rtol=0.06)


def test_no_two_meanings_share_an_ink():
    for theme in (0, 1):
        shown = [pair[theme] for pair in inks.palette().values()]
        assert len(set(shown)) == len(shown)
    assert set(book().drawn.values()) <= set(inks.palette())


def test_a_figure_has_no_ground_and_other_inks_in_the_dark():
    fig = two_panels()
    fig.axes[0].fill_between([0, 100], [0, 1], [1, 2], color="#E3E3E3")
    fig.axes[0].axhline(0.5, color="#440154")
    light = inks.light(drawn(fig), "santurkar/training/curves")
    dark = in_the_dark(light)
    assert "fill: #ffffff" not in light and "<metadata>" not in light and "#d55e00" not in light
    assert inks.palette()["none"][0] in light and inks.palette()["none"][1] in dark
    assert inks.palette()["grid"][1] in dark and inks.palette()["text"][1] in dark
    for svg, ground in ((light, inks.LIGHT_GROUND), (dark, inks.DARK_GROUND)):
        used = set(inks.INK.findall(svg)) - {
            pair[0] for pair in inks.palette().values() if pair[0] == "#e3e3e3"
        }
        faint = {ink for ink in used if inks.contrast(ink, ground) < 3} - {inks.palette()["grid"][1]}
        assert not faint


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: "/".join(path.parts[-4:]))
def test_each_line_of_a_committed_figure_stands_out_from_both_grounds(path):
    """Contours, too, which take their inks from a scale; a grey line is faint where it was drawn faint."""
    figure = "/".join(path.parts[-3:]).removesuffix(".svg").replace(".figures", "")
    light = inks.light(path.read_text(encoding="utf-8"), figure)
    for svg, ground in ((light, inks.LIGHT_GROUND), (in_the_dark(light), inks.DARK_GROUND)):
        lines = set(re.findall(r"fill: none; stroke: (#\w+)", svg)) - {inks.palette()["grid"][1]}
        assert [ink for ink in lines if not inks.is_grey(ink) and inks.contrast(ink, ground) < 3] == []


def test_green_is_what_was_corrected_and_never_the_noise():
    svg = drawn(two_panels()).replace("#d55e00", "#009e73")
    assert inks.palette()["corrected"][0] in inks.light(svg, "mean-field/fisher/sweeps")
    assert inks.palette()["noisy"][0] in inks.light(svg, "santurkar/noisy-batch-norm/curves")
    violated = inks.light(drawn(two_panels()), "theory/minima/margins")
    assert inks.palette()["wrong"][0] in violated and inks.palette()["none"][0] not in violated


def test_a_new_run_draws_with_the_palette_and_is_left_as_it_is():
    fig, ax = plt.subplots()
    for name, ink in COLORS.items():
        ax.plot([0, 1], color=ink, label=name)
    svg = inks.light(drawn(fig), "santurkar/training/curves")
    assert {ink for ink in COLORS.values() if ink not in svg} == set()


def words(drawing: str) -> list[str]:
    """Each text of a drawing in order, as the letters that it uses."""
    found = (re.findall(r'href="#DejaVuSans-([0-9a-f]+)"', text) for text in drawing.split('id="text_')[1:])
    return ["".join(chr(int(letter, 16) + 29) for letter in letters) for letters in found]


def test_columns_stand_alone_and_have_the_labels_of_the_axis_that_they_share():
    for shared in (False, True):
        svg = drawn(two_panels(sharey=shared))
        legends, (first, second) = phones.parts(svg)
        assert not legends and words(first).count("step") == words(second).count("step") == 1
        assert words(first).count("loss") == words(second).count("loss") == 1, "of the whole row"
        assert sorted(words(first)) == sorted(words(second)), "the numbers, too"
        assert len(first) + len(second) < 1.5 * len(svg) and second.count('id="axes_') == 1
        for drawing in (first, second):
            outlines = set(re.findall(r'id="([^"]+)"', drawing))
            used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', drawing)
            assert {one or other for one, other in used} <= outlines


def test_numbers_of_another_scale_are_not_borrowed():
    fig = two_panels()
    fig.axes[1].set_yticks([0.1, 0.7], ["", ""])
    _, (first, second) = phones.parts(drawn(fig))
    assert "0.2" in words(first) and "0.2" not in words(second)


def test_a_legend_of_one_column_belongs_to_all_where_it_names_what_another_draws():
    for ink, of_all in (("#D55E00", 1), ("#0072B2", 0)):
        fig = two_panels()
        for line in fig.axes[1].lines:
            line.set_color(ink)
        fig.axes[0].legend(["without"], frameon=False)
        above, columns = phones.parts(inks.readable(drawn(fig)))
        assert len(above) == of_all
        assert sum(drawing.count('id="legend_') for drawing in columns) == 1 - of_all


def test_a_legend_whose_inks_are_named_otherwise_beside_lines_stays_with_its_panel():
    fig = two_panels()
    fig.axes[1].text(
        0.5, 0.5, "early", color=fig.axes[1].lines[0].get_color(), transform=fig.axes[1].transAxes
    )
    fig.axes[0].legend(["without"], frameon=False)
    above, columns = phones.parts(inks.readable(drawn(fig)))
    assert not above and ["legend_" in drawing for drawing in columns] == [True, False]


def test_legends_that_say_the_same_are_shown_once():
    fig = two_panels()
    for ax in fig.axes:
        ax.legend(["without"], frameon=False)
    above, columns = phones.parts(drawn(fig))
    assert len(above) == 1 and not any("legend_" in drawing for drawing in columns)
    for names, ink in ((("one", "other"), "#D55E00"), (("one", "one"), "#0072B2")):
        fig = two_panels()
        fig.axes[1].lines[0].set_color(ink)
        for ax, name in zip(fig.axes, names):
            ax.legend([name], frameon=False)
        above, columns = phones.parts(drawn(fig))
        assert not above and all("legend_" in drawing for drawing in columns)


def test_names_on_the_lines_of_one_column_stand_above_all():
    fig = two_panels()
    fig.axes[1].text(50, 0.5, "a name", color="#D55E00")
    (above,), (first, second) = phones.parts(drawn(fig))
    assert words(above) == ["a name"] and "#d55e00" in above, "in the ink of its line"
    assert "a name" not in words(first) and words(second).count("a name") == 1
    fig = two_panels()
    for ax in fig.axes:
        ax.text(50, 0.5, "a name", color="#D55E00")
    assert phones.parts(drawn(fig))[0] == []


def test_a_panel_of_one_ink_that_others_name_differently_has_its_title():
    fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for ax, names in zip(axes, (("all", "early"), ("range", "slope"), ())):
        ax.plot([0, 1], color="#D55E00")
        ax.set_title("a title")
        for name, ink in zip(names, ("#D55E00", "#0072B2")):
            ax.plot([1, 0], color=ink)
            ax.text(0.5, 0.5, name, color=ink)
    above, found = phones.parts(drawn(fig))
    assert not above and len(found) == 3
    axes[2].plot([1, 0], color="#0072B2")
    assert phones.parts(drawn(fig)) == ([], []), "which is which?"


@pytest.mark.parametrize("ink", ["#D55E00", "black"])
def test_an_ink_that_names_two_things_keeps_the_figure_whole(ink):
    """So do words in the ink of all words: they may say something of their own panel alone."""
    fig = two_panels()
    for words_, height in (("solid", 0.5), ("dashed", 0.7)):
        fig.axes[1].text(50, height, words_, color=ink)
    assert phones.parts(drawn(fig)) == ([], [])


LONG = ["number one of all", "number two of all", "number three of all", "number four of all"]


def with_a_wide_legend(rows: int = 1) -> str:
    fig, axes = plt.subplots(rows, 2, figsize=(7, 3 * rows), layout="constrained", squeeze=False)
    for ax in axes.flat:
        for k in range(4):
            ax.plot([0, 1], [k, k], "o-" if k else "-")
    fig.legend(axes[0, 0].lines, LONG, loc="outside upper center", ncols=4, title="all", frameon=rows == 2)
    return drawn(fig)


def test_a_wide_legend_is_laid_out_anew_in_the_width_of_a_column():
    svg = with_a_wide_legend()
    (wide,) = [group for group in phones.figure(phones.parsed(svg)) if "legend_" in group.get("id", "")]
    before = phones.legend_box(wide)
    (legend,), columns = phones.parts(svg)
    left, top, width, height = map(float, phones.parsed(legend).get("viewBox").split())
    assert before.right - before.left > 400 and width < 290
    assert sorted(words(legend)) == sorted(["all", *LONG])
    assert legend.count('id="line2d_') == len([g for g in wide if g.get("id", "").startswith("line2d_")])
    places = [float(y) for y in re.findall(r'<g transform="translate\(\S+ (\S+)\)"><g', legend)]
    assert len(set(places)) == 3, "a title, then two rows"
    boxes = [_box(place) for place in phones.parsed(legend)[1]]
    for box, other in itertools.combinations(boxes, 2):
        assert box.right <= other.left or other.right <= box.left or box.bottom <= other.top
    assert all(left <= box.left and box.right <= left + width for box in boxes)
    assert all(top <= box.top and box.bottom <= top + height for box in boxes)


def _box(place: ElementTree.Element):
    return phones.legend_box(place)


def test_columns_of_several_panels_have_the_legend_of_all_above_them():
    (legend,), columns = phones.parts(with_a_wide_legend(rows=2))
    assert set(LONG) <= set(words(legend)) and "patch_" not in legend, "a frame would be too wide"
    assert [column.count('id="axes_') for column in columns] == [2, 2]


def test_panels_with_titles_come_as_one_reads_with_the_axes_that_they_share():
    fig, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained", sharex=True, sharey=True)
    for k, ax in enumerate(axes.flat):
        ax.plot([0, 100], [0, 1])
        ax.set_title(f"panel {k}")
    for ax in axes[1]:
        ax.set_xlabel("step")
    for ax in axes[:, 0]:
        ax.set_ylabel("loss")
    _, found = phones.parts(drawn(fig))
    said = [words(each) for each in found]
    assert [next(word for word in each if "panel" in word) for each in said] == [
        f"panel {k}" for k in range(4)
    ]
    for each in said:
        assert each.count("step") == each.count("loss") == each.count("100") == each.count("0.4") == 1


def test_a_label_of_another_quantity_is_not_borrowed():
    for scale, borrowed in (("linear", 1), ("log", 0)):
        fig = two_panels()
        fig.axes[1].set(yscale=scale, ylim=(1e-5, 1e5))
        _, (_, second) = phones.parts(drawn(fig))
        assert words(second).count("loss") == borrowed


def test_a_colour_bar_stays_with_its_panel():
    fig, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained")
    for ax in axes.flat:
        ax.set_title("a map")
        fig.colorbar(ax.imshow([[0, 1]]), ax=ax)
    _, found = phones.parts(drawn(fig))
    assert [each.count('id="axes_') for each in found] == [2] * 4


def test_panels_that_stand_in_no_columns_are_taken_apart_row_by_row():
    fig = plt.figure(figsize=(7, 4))
    places = [(0.05, 0.6, 0.2), (0.4, 0.6, 0.2), (0.75, 0.6, 0.2), (0.05, 0.1, 0.4), (0.55, 0.1, 0.4)]
    for k, (x, y, wide) in enumerate(places):
        fig.add_axes((x, y, wide, 0.3)).set(title=f"panel {k}")
    _, found = phones.parts(drawn(fig))
    assert [next(word for word in words(each) if "panel" in word) for each in found] == [
        f"panel {k}" for k in range(5)
    ]


def test_a_legend_of_all_stands_above_the_columns():
    fig = two_panels()
    fig.legend(["all"], loc="outside upper center")
    (legend,), columns = phones.parts(drawn(fig))
    assert words(legend) == ["all"] and not any("all" in words(column) for column in columns)
    fig = two_panels()
    fig.suptitle("of both")
    assert phones.parts(drawn(fig)) == ([], [])


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: "/".join(path.parts[-4:]))
def test_each_column_of_a_committed_figure_has_the_words_of_its_own_panels_and_their_letters(path):
    """One of a neighbour's is neither there by halves nor twice. A letter is defined where Matplotlib draws
    it first, which may be in what another drawing shows."""
    above, columns = phones.parts(inks.readable(path.read_text(encoding="utf-8")))
    for drawing in (*above, *columns):
        used = set(re.findall(r'(?:href="|url\()#([^")]+)', drawing))
        assert used <= set(re.findall(r'\bid="([^"]+)"', drawing))
    for drawing in columns:
        root = phones.parsed(drawing)
        left, top, wide, high = map(float, root.get("viewBox").split())
        for group in root:
            for text in phones.texts(group):
                box = phones.around(text)
                if box and "legend" not in group[0].get("id", ""):
                    box = box.moved(*phones.moved(group))
                    assert box.left > left - 1 and box.right < left + wide + 1
                    assert box.top > top - 1 and box.bottom < top + high + 1


def test_two_small_columns_stand_side_by_side_on_a_phone(tmp_path):
    for count, small in ((2, 0), (5, 5)):
        fig, axes = plt.subplots(1, count, figsize=(7, 3), layout="constrained")
        for ax in axes:
            ax.set_yticks([])
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / f"n{count}.svg").write_text(inks.light(drawn(fig), "a/b/c"))
        page = pictures.in_both_themes(
            f'<img alt="x" src="_images/n{count}.svg" />', pictures.pairs(folder, folder)
        )
        assert page.count('class="column narrow"') == small and page.count('class="column') >= count


def test_a_figure_with_one_panel_stays_whole():
    assert phones.parts(drawn(plt.subplots()[0])) == ([], [])


def test_a_page_shows_each_figure_once_a_theme_whole_and_by_columns(tmp_path):
    for name, fig in (("two", two_panels(sharey=True)), ("one", plt.figure())):
        svg = inks.light(drawn(fig), f"part/chapter/{name}")
        (tmp_path / f"{name}.svg").write_text(svg)
    (tmp_path / "logo.svg").write_text('<svg viewBox="0 0 1 1"></svg>')
    shown = pictures.pairs(tmp_path, tmp_path)
    assert set(shown) == {"one", "two"} and len(list(tmp_path.glob("two*.svg"))) == 3
    page = pictures.in_both_themes('<img alt="What &quot;it&quot; shows." src="../_images/two.svg" />', shown)
    images = re.findall(r'<img alt="([^"]*)" [^>]*class="only-(light|dark)" src="\.\./_images/([^"]*)"', page)
    assert [theme for _, theme, _ in images] == ["light", "dark"] * 3
    assert [source for *_, source in images][::2] == ["two.svg", "two.1.svg", "two.2.svg"]
    assert [source for *_, source in images][1::2] == ["two.svg#dark", "two.1.svg#dark", "two.2.svg#dark"]
    assert images[0][0] == "What &quot;it&quot; shows." and "Column 2 of 2" in images[-1][0]
    assert 'class="plot stacks in-a-row"' in page and 'href="../_images/two.svg"' in page
    other = '<img alt="a logo" src="_images/logo.svg" />'
    assert pictures.in_both_themes(other, shown) == other
    assert 'class="plot fits"' in pictures.in_both_themes('<img alt="x" src="_images/one.svg" />', shown)


def test_a_caption_says_where_left_and_right_are_on_a_phone(tmp_path):
    (tmp_path / "two.svg").write_text(inks.light(drawn(two_panels()), "a/b/two"))
    (tmp_path / "one.svg").write_text(inks.light(drawn(plt.figure()), "a/b/one"))
    (tmp_path / "four.svg").write_text(inks.light(drawn(plt.subplots(2, 2)[0]), "a/b/four"))
    shown = pictures.pairs(tmp_path, tmp_path)
    caption = (
        '<span class="caption-text">Left: the left side, lower. Rates (right). Middle and right: x.</span>'
    )
    for name, words, said in (
        ("two", "lower", 0),
        ("two", "less", 2),
        ("one", "less", 0),
        ("four", "less", 0),
    ):
        page = f'<figure><img alt="x" src="_images/{name}.svg" />{caption.replace("lower", words)}</figure>'
        page = pictures.in_both_themes(page, shown)
        assert page.count("on-phone") == said
        if said:
            left, right = (
                f'<span class="on-desk">{desk}</span><span class="on-phone">{phone}</span>'
                for desk, phone in (("Left", "Above"), ("right", "below"))
            )
            assert f"{left}: the left side" in page and f"({right})" in page


def test_a_figure_on_a_claims_page_has_the_caption_of_its_chapter(tmp_path):
    page = tmp_path / "chapter.html"
    caption = r'Of <span class="math">\(q\)</span> in <a href="#eq">(2)</a>.'
    page.write_text(
        '<figure id="other"><figcaption><p><span class="caption-text">No.</span></p></figcaption></figure>'
        f'<figure id="own"><figcaption><p><span class="caption-text">{caption}</span>'
        '<a class="headerlink" href="#own">#</a></p></figcaption></figure>'
    )
    assert caption_of(page, "own") == r'Of <span class="math">\(q\)</span> in (2).'
    assert caption_of(page, "none") == caption_of(page, "") == ""


@pytest.mark.parametrize(("letters", "width", "kind"), [(14, 7, "fits"), (10, 7, "scrolls"), (10, 5, "fits")])
def test_a_figure_whose_letters_a_phone_would_make_too_small_scrolls(tmp_path, letters, width, kind):
    with plt.rc_context({"font.size": letters, "xtick.labelsize": letters, "ytick.labelsize": letters}):
        fig, _ = plt.subplots(figsize=(width, 3))
        (tmp_path / "one.svg").write_text(inks.light(drawn(fig), "a/b/c"))
    page = pictures.in_both_themes(
        '<img alt="x" src="_images/one.svg" />', pictures.pairs(tmp_path, tmp_path)
    )
    assert f'class="plot {kind}"' in page and ("--wide: 504px" in page) == (kind == "scrolls")


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
        ("672", "dark", "one.svg#dark"),
        ("384", "light", "one.narrow.svg"),
        ("384", "dark", "one.narrow.svg#dark"),
    ]
    assert 'class="plot stacks"' in page and {name.partition("#")[0] for _, _, name in sources} == {
        path.name for path in images.iterdir()
    }


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
    assert sizes(inks.readable(svg))["with batch norm"] == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("place", ["upper right", "lower left"])
def test_an_enlarged_legend_stays_in_its_corner(place):
    svg = inks.readable(drawn(with_legend(6, place=place)))
    x, y, factor = (float(n) for n in re.search(r"translate\((\S+) (\S+)\) scale\((\S+)\)\">", svg).groups())
    fixed = (x / (1 - factor), y / (1 - factor))
    assert (
        (fixed[0] > 460 and fixed[1] < 40) if place == "upper right" else (fixed[0] < 80 and fixed[1] > 150)
    )


def test_words_of_a_legend_stand_before_the_colour_of_the_ground():
    svg = inks.readable(drawn(with_legend(10)))
    letters = len("withbatchnorm") + 2
    assert svg.count(inks.BEHIND_LETTERS) == 1
    assert svg.split(inks.BEHIND_LETTERS)[1].split("<g id=")[0].count("<use") == letters
    assert in_the_dark(inks.light(svg, "a/b/c")).count(f"fill: {inks.DARK_GROUND}") == 1


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
    elif part.tag != f"{phones.SVG}g":
        yield width * scale
    for inside in part:
        yield from strokes(inside, outlines, width, scale)


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: "/".join(path.parts[-4:]))
def test_what_lies_behind_words_is_little_wider_than_their_letters(path):
    """Those of a legend, and names of lines in a panel. A root's or a fraction's bar is drawn in other units
    than letters are."""
    svg = inks.readable(path.read_text(encoding="utf-8"), inks.PHONE)
    root = ElementTree.fromstring(svg.encode())
    outlines = {each.get("id"): each for each in root.iter(f"{phones.SVG}path") if each.get("id")}
    behind = [each for each in root.iter(f"{phones.SVG}g") if each.get("style") == inks.BEHIND_LETTERS]
    legends = [match.span() for match in inks.LEGEND.finditer(svg)]
    words = [
        text
        for text in inks.TEXT.finditer(svg)
        if any(a < text.start() < b for a, b in legends)
        or (text[1] == inks.IN_PANEL and "#ffffff" not in text[0])
    ]
    assert len([text for text in words if text[1] != inks.IN_PANEL]) <= len(behind) <= len(words)
    assert all(1 < width < 8 for group in behind for width in strokes(group, outlines))


def test_the_ground_lies_behind_words_in_a_panel_and_not_behind_its_title():
    fig, ax = plt.subplots(figsize=(4, 3))
    ax.plot([0, 1], [0, 1])
    ax.set(title="a title", xlabel="x")
    ax.text(0.5, 0.5, "on the line")
    ax.text(0.2, 0.8, "on a colour", color="white")
    svg = inks.readable(drawn(fig))
    behind = svg.index(inks.BEHIND_LETTERS)
    assert svg.count(inks.BEHIND_LETTERS) == 1
    assert svg.index("<!-- on the line -->") > behind > svg.index('id="line2d_')


def test_a_label_grows_only_as_far_as_its_neighbours_leave_room():
    fig = plt.figure(figsize=(7, 3))
    fig.text(0.1, 0.5, "mmmm", fontsize=6)
    fig.text(0.1 + 4 * 6 / 504, 0.5, "close by", fontsize=6)
    fig.text(0.8, 0.5, "alone", fontsize=6)
    shown = sizes(inks.readable(drawn(fig)))
    assert shown["alone"] == pytest.approx(9) and shown["mmmm"] < 9


def test_a_picture_that_matplotlib_did_not_draw_is_left_as_it_is():
    assert inks.readable('<svg width="10"><text>a</text></svg>') == '<svg width="10"><text>a</text></svg>'
