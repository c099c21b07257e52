"""What the site shows of made-up claims, as one golden file, `golden_site.txt`; `python tests/golden_site.py` writes it
anew, and `git diff` says what changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import tiny_book
import yaml
from site_rows import row, rows

from bookpress import claims
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.ledger import rung_table, turned
from bookpress.pipeline.chapters import Chapter, select
from bookpress.pipeline.prose import Pages
from bookpress.site import citing, pages, shell, verdicts

FILE = Path(__file__).with_suffix(".txt")
CHAPTERS = [Chapter("part/coin", None, "A coin & a <die>"), Chapter("part/dice", None, "Dice")]


def part(**changes) -> dict:
    """A test of a claim with several."""
    return row("a")["tests"][0] | {"role": "part"} | changes


def effect(number: float | None, low: float, high: float, values: list, **test) -> dict:
    words = dict(number=number, unit="", words=f"{number} <times>")
    return part(test=test, effect=words, interval=dict(low=low, high=high, words="a to <b>"), values=values)


RATIO = dict(kind="ratio", a="a", b="b", side="greater", threshold=1.0)
#: Tests whose plots differ: exact; a seed that diverged; one far out; factors, wide and near; each side and kind.
PLOTTED = {
    "exact": part(test=dict(kind="identity", tolerance=1e-9)),
    "nothing": None,
    "diverged": part(values=[None, 0.12, 0.14]),
    "far": part(values=[0.11, 0.12, 0.13, 2.0]),
    "two": part(values=[0.1, 2.0]),
    "decades": effect(10.0, 5.0, 100.0, [10.0], **RATIO),
    "near": effect(1.5, 1.2, 2.0, [1.5], **RATIO),
    "less": effect(0.5, 0.2, 0.7, [0.4, 0.5, 0.6], **RATIO | dict(side="less", threshold=2.0)),
    "equal": effect(0.0, 0.0, 0.0, [], kind="equivalence", a="x", b="y", margin=0.03),
    "rate": effect(-0.5, -0.51, -0.49, [-0.5], kind="rate", a="x", expected=-0.5, tolerance=0.05),
    "agreement": effect(0.01, -0.2, 0.2, [0.0], kind="agreement", a="x", b="y", tolerance=0.1),
    "ordering": part(holds=None, test=dict(kind="ordering", results=["a", "b"])),
    "sign": part(holds=False, test=dict(kind="sign", a="x", b="y", side="greater")),
    "untested": part(verdict=NOT_TESTED),
}
MISSING = dict(verdict=NOT_TESTED, holds=None, n=0, values=[], interval=None, p=None)
SEVERAL = [
    part(says="l1 $x$.", effect=dict(number=1.0, unit="", words="<more>")),
    part(says="b", p=0.0, sign_p=0.22, n=6, kept=False),
]
UNDECIDED = [part(kept=False, holds=None, n=20, sign_p=0.9)]
LEMMA = dict(key="santurkar2018", version="v1", where="v1 Lemma 3.3")
OURS = "The book's own question: is <it>; we read, by 2 $< 3$?"
HELD = dict(words="holds if $n < 3$ and `a`", exploratory='made "late"', rests_on=["x", "y"])
#: Claims beside those of `site_rows`.
ODD = [
    row("parts", combine="any", tests=SEVERAL),
    row("corrected", tests=[part(role="printed", holds=False), part(says="if `a<b`", role="corrected")]),
    row("sizes", rungs=True, of="claim-1", tests=[part(says="An eighth."), part(says="Whole.", **MISSING)]),
    row("five", tests=[part(sign_p=0.2)]),
    row("open", "open", tests=UNDECIDED, other_margins=["open", "open"]),
    row("untested", NOT_TESTED, tests=[part(verdict=NOT_TESTED, holds=False)]),
    row("nothing", "not run", tests=[], effect=None, interval=None, other_margins=None, profile=None),
    row("ours", says=OURS, kind="question", remark="it <turned>", changed=["<why>"]),
    row("place", source=LEMMA, was="l2 <was>"),
    row("if", "holds if …", **HELD),
]
ODD = {each["id"]: each for each in ODD}
INSTRUMENTS = [
    SimpleNamespace(id=name, name="The <scale>", anchor=f"instrument-{name}", mark="by <x>", line=line)
    for name, line in (("x", "to $2$"), ("y", ""))
]


def blocks() -> Iterator[tuple[str, str]]:
    """Name and text of all that is shown."""
    every = [*rows(), *ODD.values()]
    for name, test in PLOTTED.items():
        yield f"plot {name}", verdicts.plot(test)
    for one in ODD.values():
        known = verdicts.beside(one, every, INSTRUMENTS, "../")
        told = (["laptop: <open>"], "coin-<x>") if one["id"] in ("ours", "if") else ([], "")
        shown = verdicts.folded(
            one | {"locked": "2026-11-20" * bool(told[0])}, known, ["by <x>"], *told, "../"
        )
        yield f"row {one['id']}", PLOT.sub("", shown)
        yield f"words {one['id']}", verdicts.in_words(one, "../")
    listed = [ODD[name] for name in ("parts", "sizes", "untested", "nothing", "ours", "place", "if")]
    yield "board", PLOT.sub("", verdicts.board([*rows()[3:5], *listed], CHAPTERS))
    yield "waffle", verdicts.waffle([*rows()[:5], ODD["ours"], ODD["sizes"], ODD["if"]])
    ledger = SimpleNamespace(rows={each["id"]: each for each in every})
    yield "squares", pages.of_all([], ledger)["squares"](None)
    several = [row(f"n{n}", n=n) for n in (9, 2, 4, 3, 200)]
    yield "trust", pages.trust(several, Pages({}, [])) + "\n" + pages.trust(every, Pages({}, []))
    for options in ("", "log", "factor", "percent"):
        yield f"dots {options}", pages.with_dots(DOTS.format(options), drawn("laptop", VALUES), "index.md")
    yield "dots of a short run", pages.with_dots(DOTS.format(""), drawn("smoke", {"b": [4.0]}), "index.md")
    yield "not run", pages.unanswered(UNANSWERED, "part/coin")
    beginnings = [*map(verdicts.brief, SAID), *(verdicts.brief(SAID[1], most) for most in (12, 17))]
    yield "brief", "\n".join(beginnings)
    for pair in (SAID[1:3], SAID[2:4]):
        yield "told apart", "\n".join(verdicts.told_apart([*pair, "It ends."]))
    for copies in (0, 1, 2):
        siblings = [ODD["sizes"] | {"id": f"sizes-{k}"} for k in range(copies)]
        yield (
            f"beside {copies}",
            verdicts.beside(row("claim-1"), [row("claim-1"), *siblings], INSTRUMENTS, "../"),
        )
    yield from of_sources()
    yield "tags", verdicts.macro("foot.html.j2", "tags")('A "title"', "said <so>", "a.png", "data:,")
    yield "ways", verdicts.macro("foot.html.j2", "ways")("../a.csv", "what <it> draws", "book run <x>")


#: A forest plot, which stands by itself above.
PLOT = re.compile(r'<svg class="forest.*?</svg>', re.S)
UNANSWERED = """Before {{ mean:x }}.
:::{admonition} In short
:class: answer

**Found.** {{ mean:x }} points.

It. {{ stands:a > b = yes }}
:::

After {{ mean:y }}."""
SAID = [
    "l1 normalization trains well.",
    "It trains faster, by far; we read, twice.",
    "It trains faster; we read, twice.",
    "It trains faster; we read, thrice.",
    "The book's own question, for nobody says it: does it end?",
    "It ends (by the loss $L(w_t)$) much lower than all the others of which we know anything at all.",
    "The loss that is left at the end of a long training is a sum of $a + b + c$ and of more.",
    "At most σ_{x_i}.",
]
AUTHORS = [{"name": "Ann & sons"}, {"given-names": "Bob", "family-names": "Coin"}]
CITATION = {"authors": AUTHORS, "subtitle": "a coin", "version": "1.2", "date-released": "2026-01-02"}
ABOUT = dict(source={"key": "folklore", "version": "oral", "where": "On <coins>"}, kind="wrong")
ABOUT |= dict(printed="Heads <b> has $p < 1$.", correct="It has $p = \\frac12$.", why="Tails is a <side>.")
TEST = "tests/test_coin.py::test_toss_s_end"
GOSSIP = dict(ABOUT["source"], key="gossip")
ERRATA = [
    ABOUT | dict(id="edge", source=GOSSIP, kind="unclear", changes="reading", test=TEST),
    ABOUT | dict(id="two-sides", claim="coin-fair"),
    ABOUT | dict(id="again.1", claim="coin-fair", changes="theorem", short="It is <false>.", test=TEST),
]
SENTENCES = [
    dict(where="Verse 1", says="Heads | <i> has $p < 1$.", claims=["coin-fair"], note="One <coin>."),
    dict(where="Verse 2", says="A | B < C.", not_judged="open: toss <it> often"),
    dict(where="Refrain", says="Half, I say.", repeats="Verse 1"),
    dict(where="Verse 3", says="It is wide.", not_judged="scale: no machine is"),
    dict(where="Verse 4", says="It is odd.", claims=["coin-fair", "coin-odd"]),
    dict(where="Coda", says="Heads it is.", errata=["two-sides"]),
    dict(where="Coda 2", says="Both.", claims=["coin-fair"], errata=["edge", "again.1"]),
]
BETA = dict(id="beta", name="Effective <β>", measures="It.", own="$2/η$.", silent="<Else>.", reads=["heads"])


SIZES = {"a": "An eighth, 2 steps.", "b": "The whole, 2 steps.", "c": "An eighth, 9 steps."}
BY_SIZE = dict(RATIO, kind="difference", a="speed.{rung}.batch", b="speed.{rung}.none", threshold=0)
LADDER = {"source": {"key": "santurkar2018", "version": "v1"}, "figure": "speed", "rungs": SIZES}
FASTER = {"id": "faster", "source": "Figure 1", "says": "It is <faster>.", "test": BY_SIZE}
LADDER["claims"] = [FASTER, FASTER | {"id": "narrow", "says": "It is narrow.", "rungs": ["a", "c"]}]
#: Of claims, how each comes out at the three sizes: up, down, open or not reached.
CAME_OUT = ("do- ud- -o- ---", "ud- uo-", "do-", "---", "ddu ud- uoo udu uod", "ddu", "uou")


def of_sizes(folder: str) -> Iterator[tuple[str, str]]:
    """Which claims turn between sizes, and with which of them."""
    path = Path(folder, "part", "scale.claims.yml")
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(LADDER), encoding="utf-8")
    claim, narrow = claims.load_claims(path)
    ways = {"u": [0.5, 0.6, 0.7], "U": [0.5, 0.6, 0.7, 0.7], "d": [-0.5, -0.6, -0.7], "o": [-1.0, 1.0, 0.0]}

    def judged(word: str, claim: claims.Claim = claim) -> claims.Row:
        reached = [(rung, ways[way]) for rung, way in zip(SIZES, word) if way in ways]
        found = {f"speed.{rung}.batch": values for rung, values in reached}
        return claims.judge(
            claim,
            found | {f"speed.{rung}.none": [0, 0, 0.01, 0][: len(of)] for rung, of in reached},
            "laptop",
        )

    for words in CAME_OUT:
        group = [judged(word) for word in words.split()]
        yield f"sizes {words}", turned(group)
    yield "sizes", rung_table([judged(word) for word in ("do-", "ud-", "-o-", "---", "uo-")])
    yield "sizes of some", rung_table([judged("ud-"), judged("Udu", narrow)])


def of_sources() -> Iterator[tuple[str, str]]:
    """The pages of errata, of sentences and of instruments, made up in a tiny book."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"BNBOOK_ROOT": folder}):
        root = Path(folder)
        tiny_book.write(root, FILE.parents[1] / "_config.yml")
        with (root / "book" / "references.bib").open("a") as file:
            file.write("@misc{gossip,\n  title = {Whispers & <more>}\n}\n")
        own = root / "book" / "part" / "coin.claims.yml"
        claimed = yaml.safe_load(own.read_text())
        claimed["claims"].append(claimed["claims"][0] | {"id": "coin-odd"})
        song = {"source": {"key": "folklore", "version": "oral"}, "sentences": SENTENCES}
        config = yaml.safe_load((root / "_config.yml").read_text())
        for name, content in (
            ("book/part/coin.claims.yml", claimed),
            ("book/errata.yml", ERRATA),
            ("book/coverage/song.yml", song),
            ("book/instruments.yml", [BETA]),
            ("_config.yml", config | {"citation": CITATION}),
        ):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(yaml.safe_dump(content, allow_unicode=True))
        (root / "tests").mkdir()
        (root / "tests" / "test_coin.py").write_text("def test_toss_s_end():\n    pass\n")
        fair, odd = row("coin-fair", rests_on=["beta"], says="It is <so>; we read, twice."), row("coin-odd")
        shown = Pages({}, claims.load_claims())
        shown.__dict__["rows"] = {"coin-fair": fair, "coin-odd": odd}
        yield "errata", pages.errata(claims.load_errata(), select(["coin"]), shown)
        yield "coverage", pages.coverage(claims.load_coverage(), shown)
        yield "instruments", pages.instruments(claims.load_instruments(), shown)
        yield from of_sizes(folder)
        for page in ("index", "part/coin", "scoreboard", "errata"):
            yield f"links {page}", shell.nav(HUB, page)
        for hub in ("https://gitlab.org/a/b", "https://code.example/a/b"):
            yield f"links {hub}", shell.nav(hub, "part/coin")
        about = "part/is-it", "https://x.org/p.html", "c0ffee" * 7, "2026-11-27"
        yield "cite", citing.citation("Is <it> & so, by 5 %?", *about)
        (root / "_config.yml").write_text(yaml.safe_dump(config | {"citation": {}}))
        yield "cite the book", citing.citation("A book", "index", "", "", "")


HUB = "https://github.com/someone/a-book"
DOTS = "```{{dots}} {}\none <x> | batch | part/chapter#a\nother | none | part/chapter#b\n```\n"
VALUES = {"a": [1.0, 4.0, np.nan], "b": [4.0]}


def drawn(profile: str, values: dict) -> SimpleNamespace:
    run = SimpleNamespace(
        profile=profile, results=values, column=lambda name, _: ([], np.array(values[name]))
    )
    return SimpleNamespace(evidence={"part/chapter": run})


def text() -> str:
    return "".join(f"=== {name}\n{shown}\n".replace("><", ">\n<") for name, shown in blocks())


if __name__ == "__main__":
    from bnbook import book as _  # noqa: F401 (the press is told of this book)

    FILE.write_text(text(), encoding="utf-8")
