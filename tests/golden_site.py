"""What the site shows of made-up claims, as one golden file, `golden_site.txt`; `python tests/golden_site.py` writes it
anew, and `git diff` says what changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from site_rows import row, rows

from bookpress.claims.judging import NOT_TESTED
from bookpress.pipeline.chapters import Chapter
from bookpress.pipeline.prose import Pages
from bookpress.site import board, claim_pages, front, pages, rendering, shell
from bookpress.site.claim_pages import Context, claim_page

FILE = Path(__file__).with_suffix(".txt")
CHAPTERS = [Chapter("part/coin", None, "A coin & a <die>"), Chapter("part/dice", None, "Dice")]


def part(says: str, **changes) -> dict:
    """A test of a claim with several."""
    return row("a")["tests"][0] | {"role": "part", "says": says} | changes


def effect(number: float | None, low: float, high: float, values: list, **test) -> dict:
    words = {"number": number, "unit": "", "words": f"{number} <times>"}
    return part(
        "", test=test, effect=words, interval={"low": low, "high": high, "words": "a to <b>"}, values=values
    )


RATIO = {"kind": "ratio", "a": "a", "b": "b", "side": "greater", "threshold": 1.0}
#: Tests whose plots differ: exact; a seed that diverged; one far out; factors, wide and near; each side and kind.
PLOTTED = {
    "exact": part("", test={"kind": "identity", "tolerance": 1e-9}),
    "nothing": None,
    "diverged": part("", values=[None, 0.12, 0.14]),
    "far": part("", values=[0.11, 0.12, 0.13, 2.0]),
    "two": part("", values=[0.1, 2.0]),
    "decades": effect(10.0, 5.0, 100.0, [10.0], **RATIO),
    "near": effect(1.5, 1.2, 2.0, [1.5], **RATIO),
    "less": effect(0.5, 0.2, 0.7, [0.4, 0.5, 0.6], **RATIO | {"side": "less", "threshold": 2.0}),
    "equal": effect(0.0, 0.0, 0.0, [], kind="equivalence", a="x", b="y", margin=0.03),
    "rate": effect(-0.5, -0.51, -0.49, [-0.5], kind="rate", a="x", expected=-0.5, tolerance=0.05),
    "agreement": effect(0.01, -0.2, 0.2, [0.0], kind="agreement", a="x", b="y", tolerance=0.1),
    "ordering": part("", holds=None, test={"kind": "ordering", "results": ["a", "b"]}),
    "sign": part("", holds=False, test={"kind": "sign", "a": "x", "b": "y", "side": "greater"}),
    "untested": part("", verdict=NOT_TESTED),
}
MISSING = {"verdict": NOT_TESTED, "holds": None, "n": 0, "values": [], "interval": None, "p": None}
#: Claims beside those of `site_rows`.
ODD = {
    "parts": row(
        "parts",
        combine="any",
        tests=[
            part("l1 $x$.", effect={"number": 1.0, "unit": "", "words": "<more>"}),
            part("b", p=0.0, sign_p=0.22, n=6, kept=False),
        ],
    ),
    "corrected": row(
        "corrected", tests=[part("", role="printed", holds=False), part("if `a<b`", role="corrected")]
    ),
    "sizes": row("sizes", rungs=True, of="claim-1", tests=[part("An eighth."), part("Whole.", **MISSING)]),
    "one size": row("one-size", rungs=True, tests=[part("An eighth.")]),
    "five": row("five", tests=[part("", sign_p=0.2)]),
    "open": row(
        "open",
        "open",
        tests=[part("", kept=False, holds=None, n=20, sign_p=0.9)],
        other_margins=["open", "open"],
    ),
    "untested": row("untested", NOT_TESTED, tests=[part("", verdict=NOT_TESTED, holds=False)]),
    "nothing": row(
        "nothing", "not run", tests=[], effect=None, interval=None, other_margins=None, profile=None
    ),
    "ours": row("ours", says="The book's own question: is <it>?", kind="question", remark="it <turned>"),
    "asked": row(
        "asked", says="Is it; we read, by 2 $< 3$.", kind="question", power=list("abcd"), changed=["<why>"]
    ),
    "place": row(
        "place", source={"key": "santurkar2018", "version": "v1", "where": "v1 Lemma 3.3"}, was="l2 <was>"
    ),
    "if": row(
        "if", "holds if …", words="holds if $n < 3$ and `a`", exploratory='made "late"', rests_on=["x", "y"]
    ),
}
INSTRUMENTS = [
    SimpleNamespace(id=name, name="The <scale>", anchor=f"instrument-{name}", mark="by <x>", line=line)
    for name, line in (("x", "to $2$"), ("y", ""))
]


def blocks() -> Iterator[tuple[str, str]]:
    """Name and text of all that is shown."""
    few, every = [row("a"), *ODD.values()], [*rows(), *ODD.values()]
    for name, test in PLOTTED.items():
        yield f"plot {name}", board.plot(test)
    for one in few:
        yield f"item {one['id']}", board.item(one)
        yield f"line {one['id']}", board.in_line(one, "../")
        yield f"words {one['id']}", board.in_words(one, "../")
    drawn = {"date": "<day>", "seeds": [[0, 2], [5, 5]], "device": "<cpu>", "left_out": "<seen>"}
    drawn |= {name: row("a")[name] for name in ("effect", "interval", "verdict")}
    full = {
        "figure": rendering.Markup("<img>"),
        "anchor": "coin-<x>",
        "caption": rendering.Markup("<em>caption</em>"),
        "places": ["v1, Figure 1: it <says> so."],
        "runs": [("laptop", row("a")), ("paper", row("a", "not reproduced", effect=None))],
        "drawn": [drawn, drawn | {"left_out": "", "effect": None, "interval": None}],
        "before": "b-<f>",
        "after": "a-f",
    }
    evidence = SimpleNamespace(
        results=SimpleNamespace(header={"provenance": {"date": "<2026>", "commit": "c0ffee"}})
    )
    for one in every[:1]:
        yield "whole page", claim_page(one, Context("A <coin>", None))
    for one in ODD.values():
        known = claim_pages.beside(one, every, INSTRUMENTS)
        yield f"page {one['id']}", body_of(claim_page(one, Context("A coin", None, known=known)))
    for one in (ODD["asked"], ODD["if"]):
        about = Context("A coin", evidence, repository=HUB, **full)
        yield f"full page {one['id']}", body_of(claim_page(one | {"locked": "2026-11-20"}, about))
    yield "marks", claim_pages.marks(INSTRUMENTS, "../")(ODD["if"])
    yield "board", board.board(rows()[:5], CHAPTERS)
    yield "waffle", board.waffle(every)
    ledger = SimpleNamespace(rows={each["id"]: each for each in every})
    yield "scoreboard", pages.scoreboard([], ledger).partition("````")[0]
    yield "tally", str({kind: front.tally(every, kind) for kind in ("claims", "questions")})
    several = [row(f"n{n}", n=n) for n in (9, 2, 4, 3, 200)]
    yield "trust", front.trust(several, Pages({}, [])) + "\n" + front.trust(every, Pages({}, []))
    for options in ("", "log", "factor", "percent"):
        yield f"dots {options}", front.pictures(DOTS.format(options), DRAWN, "index.md")
    yield (
        "cite",
        shell.citation("A 5 % <coin>", "https://x.org/a.html", "c0ffee" * 7, "2026-01-02", "part/coin"),
    )
    yield (
        "links",
        shell.nav(HUB, "index") + shell.at_commit("", "", "a<b") + shell.at_commit("", "c0ffee", "a<b"),
    )
    yield "tags", rendering.macro("foot.html.j2", "tags")('A "title"', "said <so>")
    yield "ways", rendering.macro("foot.html.j2", "ways")("../a.csv", "what <it> draws", "book run <x>")


HUB = "https://github.com/someone/a-book"
DOTS = "```{{dots}} {}\none <x> | batch | part/chapter#a\nother | none | part/chapter#b\n```\n"
VALUES = {"a": [1.0, 4.0, np.nan], "b": [4.0]}
RUN = SimpleNamespace(per_seed=lambda name, _: np.array(VALUES[name]))
DRAWN = SimpleNamespace(evidence={"part/chapter": RUN})


def body_of(page: str) -> str:
    return page.partition("</nav>")[2]


def text() -> str:
    return "".join(f"=== {name}\n{shown}\n".replace("><", ">\n<") for name, shown in blocks())


if __name__ == "__main__":
    from bnbook import book as _  # noqa: F401 (the press is told of this book)

    FILE.write_text(text(), encoding="utf-8")
