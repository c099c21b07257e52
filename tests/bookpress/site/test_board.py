"""The board and the waffle under the finger, the keyboard and with scripts off; needs a browser."""

from __future__ import annotations

import re

import browsing
import pytest
from conftest import ROOT
from site_rows import rows

from bookpress.pipeline import inks
from bookpress.pipeline.chapters import Chapter
from bookpress.site import verdicts

pytestmark = pytest.mark.skipif(browsing.CHROMIUM is None, reason="no browser is installed")
SHOWN = "li.claim:not([hidden])"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    chapters = [Chapter("part/coin", None, "A coin"), Chapter("part/dice", None, "Dice")]
    script, style = (ROOT / "book" / "_static" / name for name in ("board.js", "book.css"))
    for name in {row["chapter"] for row in rows()}:
        own = (
            f"<details class=verdict id=claim-{row['id']}>It.</details>"
            for row in rows()
            if row["chapter"] == name
        )
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.html").write_text(f"{''.join(own)}<script src='{script.as_uri()}'></script>")
    file = folder / "scoreboard.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{style.as_uri()}">'
        f"{verdicts.waffle(rows())}{verdicts.board(rows(), chapters)}<script src='{script.as_uri()}'></script>"
    )
    return file


@pytest.fixture
def page(browser, page_file):
    opened = browser.new_page()
    opened.set_default_timeout(10_000)
    opened.goto(page_file.as_uri())
    yield opened
    opened.close()


def ids(page) -> list[str]:
    return page.eval_on_selector_all(SHOWN, "rows => rows.map(row => row.id)")


def test_search_and_filters_show_fewer_rows_and_stay_in_the_address(browser, page):
    assert len(ids(page)) == len(rows()) and page.inner_text(".board-count") == "13 of 13 rows"
    page.fill("[name=find]", "CLAIM-1 figure")
    assert ids(page) == ["claim-claim-10", "claim-claim-11", "claim-claim-12"]
    assert page.evaluate("location.hash") == "#find=CLAIM-1+figure"
    page.fill("[name=find]", "")
    page.select_option("[name=source]", "santurkar2018 NeurIPS")
    assert "claim-claim-2" not in ids(page) and len(ids(page)) == 11
    page.select_option("[name=standing]", "exploratory")
    assert ids(page) == ["claim-claim-3"]
    again = browser.new_page()
    again.goto(page.evaluate("location.href"))
    assert ids(again) == ["claim-claim-3"] and again.input_value("[name=standing]") == "exploratory"
    page.click("button[type=reset]")
    page.wait_for_function("document.querySelector('.board-count').textContent.startsWith('13')")
    assert "#" not in page.evaluate("location.href")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("chapter", "part/dice", ["claim-claim-4"]),
        ("verdict", "mixed", ["claim-claim-6"]),
        ("kind", "statement", ["claim-claim-4"]),
        ("scale", "paper", ["claim-claim-4"]),
    ],
)
def test_each_filter_filters(page, name, value, expected):
    page.select_option(f"[name={name}]", value)
    assert ids(page) == expected
    hidden = page.eval_on_selector_all(".board-chapter[hidden]", "found => found.length")
    assert hidden == 1, "a chapter without rows goes with its heading"


LOOKS = """squares => squares.map(one => {
  const {width, height} = one.getBoundingClientRect(), {color, backgroundColor} = getComputedStyle(one);
  return [Math.min(width, height), color, backgroundColor];
})"""


@pytest.mark.parametrize("theme", browsing.THEMES)
def test_a_square_is_as_large_as_a_finger_needs_and_its_symbol_stands_out(page, theme):
    """WCAG 2.5.8 and 1.4.3."""
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    found = page.eval_on_selector_all(".squares a", LOOKS)
    assert len(found) == len(rows()) and min(side for side, *_ in found) >= 24
    for _, *colours in found:  # color(srgb r g b) of what is mixed
        parts = [
            map(float, re.fullmatch(r"color\(srgb (\S+) (\S+) (\S+)\)", each).groups()) for each in colours
        ]
        symbol, ground = ("#" + "".join(f"{round(255 * part):02x}" for part in each) for each in parts)
        assert inks.contrast(symbol, ground) >= 4.5


def test_a_finger_reads_a_square_before_it_opens_its_page(browser, page_file):
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
    phone = context.new_page()
    phone.goto(page_file.as_uri())
    square, other = (phone.locator(".squares a").nth(place) for place in (3, 1))
    for each in (square, other, square):
        each.tap()
        assert phone.inner_text(".waffle-said") == each.get_attribute("data-said")
        assert phone.url == page_file.as_uri()
    with phone.expect_navigation():
        square.tap()
    assert "#claim-" in phone.url
    context.close()


def test_the_keyboard_reaches_and_works_the_search(page):
    page.locator(".waffle-legend a").last.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "find"
    page.keyboard.type("dice")
    page.keyboard.press("Enter")
    # Of the page itself: the driver hears of a replaced address later.
    assert page.evaluate("location.href").endswith("scoreboard.html#find=dice"), "Enter sends no form"
    page.keyboard.press("Tab")
    page.keyboard.type("W")
    assert page.evaluate("document.activeElement.value") == "encyclopedia"


def test_the_waffle_is_one_stop_with_arrows_and_tells_each_square(page):
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('href')")
    assert first != second and ".html#claim-" in second
    said = page.inner_text(".waffle-said")
    assert said == page.evaluate("document.activeElement.dataset.said") and "claim" in said
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getBoundingClientRect().y") > 20
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('.squares')"), "one stop for the Tab key"
    page.focus(f".squares a[href='{second}']")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{second}")


def test_a_pointer_tells_a_square_and_a_click_goes_to_its_page(page):
    square = page.locator(".squares a").nth(5)
    square.hover()
    assert page.inner_text(".waffle-said") == square.get_attribute("data-said")
    square.click()
    page.wait_for_url("**/*.html#claim-*")
    opened = page.evaluate("[...document.querySelectorAll('details[open]')].map(row => '#' + row.id)")
    assert opened == [page.evaluate("location.hash")], "a link to a claim opens its row, and no other"


def test_a_legend_entry_filters_the_board_of_its_own_page(page):
    page.click(".waffle-legend a:has-text('mixed')")
    page.wait_for_function("document.querySelector('.board-count').textContent.startsWith('1 of')")
    assert ids(page) == ["claim-claim-6"]


def test_without_scripts_every_row_and_square_is_there(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("li.claim:visible").count() == len(rows())
    assert not page.locator(".board-form").is_visible()
    assert page.locator(".squares a[title][href]").count() == len(rows())
    assert page.locator(".claim svg.forest").count() == len(rows())
    context.close()
