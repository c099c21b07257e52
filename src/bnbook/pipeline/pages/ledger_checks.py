"""What `bnbook check` says of the ledger beside its runs: errata, coverage, instruments, locks, pages that
quote it."""

from __future__ import annotations

from bnbook import claims
from bnbook.claims import locks
from bnbook.claims.judging import HOLDS, HOLDS_IF
from bnbook.claims.locks import short
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import verdicts
from bnbook.pipeline.chapters.chapters import Chapter, discover
from bnbook.pipeline.chapters.evidence import Evidence, published
from bnbook.pipeline.gate.passed import passed_run
from bnbook.pipeline.pages import pages
from bnbook.pipeline.prose import tokens
from bnbook.profiles import PUBLISHED


def ledger(chapters: list[Chapter], runs: bool) -> tuple[list[str], bool]:
    """Lines to print, and whether all is well; fresh runs (`runs`) are tried before their claims are
    locked."""
    found = {
        "errata": lambda: f"{len(claims.load_errata())} errata",
        "coverage": _coverage,
        "instruments": _instruments,
        "locks": lambda: _locks([] if runs else chapters),
    }
    if not runs:  # of those a site is built next
        found["pages"] = _pages
    lines, well = [], True
    for part, look in found.items():  # each is looked at, whatever is wrong with the others
        try:
            lines.append(f"ok  {look()}")
        except BnbookError as error:
            lines.append(f"BAD {part}\n      {error}")
            well = False
    return lines, well


def _coverage() -> str:
    counted = claims.count_sentences(claims.load_coverage())
    return f"{counted.sentences} sentences of the sources, {counted.judged} judged"


def _instruments() -> str:
    known, listed = claims.load_instruments(), claims.load_claims()
    if known and (amiss := claims.unmeasured(listed, known)):
        raise BnbookError("\n      ".join(amiss))
    return f"{len(known)} instruments under {sum(not claim.statement for claim in listed)} measured claims"


def _pages() -> str:
    """Every page can be filled in: the chapters, the front page, the errata and the others."""
    chapters = discover()
    shown = tokens.Pages({each.name: passed_run(each) for each in chapters}, claims.load_claims())
    if at_odds := [row.id for row in claims.load_errata() if _is_too_hard(row, shown)]:
        raise BnbookError(f"{', '.join(at_odds)} in errata.yml: wrong is what the ledger calls holding")
    for chapter in chapters:
        for cell in chapter.notebook.cells:
            if cell.cell_type == "markdown":
                pages.filled(cell.source, chapter, shown)
    return f"{len(pages.texts(chapters, shown))} pages beside the chapters"


def _is_too_hard(row: claims.Erratum, shown: tokens.Pages) -> bool:
    """Whether an erratum says wrong of what holds by its claim, if only on a condition (incomplete)."""
    return row.kind == "wrong" and bool(row.claim) and shown.rows[row.claim]["verdict"] in (HOLDS, HOLDS_IF)


def _locks(chapters: list[Chapter]) -> str:
    chain = locks.read()
    if wrong := [*locks.misdated(), *unlocked(chapters)] if chapters else []:
        raise BnbookError("\n      ".join(wrong))
    return f"{sum(line.tests for line in chain.lines)} locks in {len(chain.lines)} lines"


def turned(chapters: list[Chapter]) -> list[str]:
    """Published runs with verdicts that are others than when they ran, one line each."""
    lines = []
    for evidence in (published(chapter, profile) for chapter in chapters for profile in PUBLISHED):
        rows = verdicts.chapter_verdicts(evidence) if evidence.exists else []
        words = ", ".join(f"{row.claim.id} {row.words}" for row in rows if "when it ran" in row.remark)
        if words:
            lines.append(f"{evidence.name}: verdicts that turned since the run: {words}")
    return lines


def unlocked(found: list[Chapter]) -> list[str]:
    """What forbids trusting the locks: a claim without one, a published run that is not the last in them."""
    chain, lines = locks.read(), []
    listed = {claim.id: claim for claim in claims.load_claims()}
    for claim in listed.values():
        tests = {line["test"] for line in chain.of_claim(claim.id) if line.tests}
        if short(claim.test_hash) not in tests:
            state = "another test than its locks have" if tests else "no lock"
            lines.append(f"claim {claim.id} has {state}: bnbook lock {claim.chapter}")
    for name in dict.fromkeys(line["claim"] for line in chain.lines if line.tests):
        if name not in listed and chain.of_claim(name)[-1].event != "withdrawn":
            lines.append(f"claim {name} is gone without a word: bnbook lock writes that it is withdrawn")
    for chapter in found:
        for profile in PUBLISHED:
            evidence = published(chapter, profile)
            if evidence.results_path.is_file():
                lines += _unknown(evidence, profile, chain)
    return lines


def _unknown(evidence: Evidence, profile: str, chain: locks.Chain) -> list[str]:
    header, name = evidence.results.header, evidence.chapter.name
    last = [
        line for line in chain.of_chapter(name) if line.event == "published" and line["profile"] == profile
    ]
    if not last or last[-1]["content"] != short(header.get("content", "")):
        return [
            f"{profile}/{name} is not the run that was published last; bnbook publish {name} writes it down"
        ]
    if "locks" in header and chain.position(name, header["locks"]) is None:
        return [f"{profile}/{name} began under a lock that is not in the file"]
    return []
