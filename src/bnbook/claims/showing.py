"""The last cell of a notebook: this run's numbers and verdicts beside the book's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bnbook import results as session
from bnbook.claims import locks
from bnbook.claims.carried import Carried, carried
from bnbook.claims.carried import settings as carried_settings
from bnbook.claims.effects import format_effect
from bnbook.claims.judging import judge
from bnbook.claims.reading import load_claims
from bnbook.claims.scope import other_settings
from bnbook.claims.tables import must_hold, row
from bnbook.errors import BnbookError

HEAD = (
    "| the source says | this run | its verdict | the book's run | its verdict |\n|:---|:---|:---|:---|:---|"
)
ABSENT = "–"


def show_verdicts(chapter: str, profile: str, *, exact: bool = False) -> None:
    """Show, below the last cell of a notebook, what the book's claims say of the numbers that it recorded.

    Under `bnbook run` it stays silent: there the page shows the verdicts. The claims and the book's verdicts
    are those that the notebook carries, else those of the book around it; where there is neither, and for
    what this run has not recorded, it says so.
    """
    if os.environ.get("BNBOOK_RESULTS"):
        return
    from IPython.display import Markdown, display

    try:
        rows = carried(chapter) or of_the_book(chapter, exact=exact)
        found = session.current()
        found.header |= of_a_notebook(chapter, found, sys._getframe(1).f_globals)
        text = comparison(rows, found, profile, exact=exact)
    except BnbookError as error:
        text = f"No verdicts: {error}"
    display(Markdown(text))


def of_a_notebook(chapter: str, found: session.Results, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a notebook's results rest on, for its verdicts: they count where its parameters and data are those of
    the book's run at that profile."""
    theirs = carried_settings.get(chapter)
    if theirs is None:
        try:
            theirs = session.load(chapter, values.get("profile")).header["parameters"]
        except BnbookError:
            theirs = {}
    if theirs.get("profile") != values.get("profile"):
        return {"default_parameters": False, "other_settings": "settings that no run of the book has"}
    other = other_settings(values, theirs, found.header.get("data", []))
    mine = {name: values[name] for name in theirs if name in values}
    return {"default_parameters": False, "other_settings": other, "parameters": mine}


def comparison(
    rows: list[Carried], results: Mapping[str, np.ndarray], profile: str, *, exact: bool = False
) -> str:
    """A Markdown table: a row per claim, this run's effect and verdict, then the book's."""
    lines = [HEAD]
    for carried_row in rows:
        claim = carried_row.claim
        notes = [claim.source.where] + ([must_hold(claim.test, claim.effect)] if claim.test else [])
        try:
            found = judge(claim, results, profile, exact=exact)
            effect, verdict = format_effect(found), f"**{found.words}**"
            notes += [found.detail] if claim.parts else []
        except BnbookError as missing:
            effect, verdict = ABSENT, f"not judged: {missing}"
        lines.append(row(claim.says, notes, effect, verdict, carried_row.effect, carried_row.verdict))
    return "\n".join(lines)


def of_the_book(chapter: str, *, exact: bool = False) -> list[Carried]:
    """The chapter's claims from the book around this notebook, with the verdicts of its committed run."""
    mine = [claim for claim in load_claims() if claim.chapter == chapter]
    if not mine:
        raise BnbookError(
            f"the book has no claims for {chapter!r}; expected PART/CHAPTER, such as theory/minima"
        )
    try:
        committed = session.load(chapter)
        found = [judge(claim, committed, committed.profile, exact=exact) for claim in mine]
    except BnbookError:
        return [Carried(claim, ABSENT, "no committed run") for claim in mine]
    chain = locks.read()
    late = [locks.standing(one.claim, committed, chain).exploratory for one in found]
    marked = [replace(one, exploratory=why).marked for one, why in zip(found, late, strict=True)]
    return [Carried(one.claim, format_effect(one), word) for one, word in zip(found, marked, strict=True)]
