"""Rows of the ledger, made up: one for each kind of verdict and test."""

from __future__ import annotations

from typing import Any

from bookpress.site import verdicts


def row(name: str, verdict: str = "reproduced", **changes: Any) -> dict[str, Any]:
    """A claim about accuracies: 5 seeds, a mean of 0.13 beyond the threshold of 0.1."""
    found = dict(
        effect=dict(number=0.13, unit="points", words="13 points higher with batch norm"),
        interval=dict(low=0.11, high=0.15, words="11 to 15"),
        n=5,
        verdict=verdict,
    )
    asked = dict(kind="difference", a="acc.batch", b="acc.none", side="greater", threshold=0.1)
    test = dict(role="whole", says="", asks="more than 10 points higher with batch norm", test=asked)
    test |= dict(holds=True, values=[0.12, 0.14, 0.13, 0.11, 0.15], side=5, p=0.001, sign_p=0.06, kept=True)
    source = dict(key="santurkar2018", version="v1, NeurIPS", where="Figure 1")
    says = f"With $\\gamma < 1$ claim {name} is <true>."
    made = dict(id=name, chapter="part/coin", was="", says=says, source=source, kind="measurement")
    made |= dict(words=verdict, scope="laptop · n = 5", profile="laptop", combine="all", rungs=False, of="")
    made |= dict(rests_on=[], figure="shares", remark="", exploratory="", locked="", changed=[])
    return made | found | dict(other_margins=["reproduced", "open"], tests=[test | found]) | changes


def rows() -> list[dict[str, Any]]:
    """One of each verdict; of two sources and kinds; one exploratory."""
    made = [row(f"claim-{k}", verdict) for k, verdict in enumerate(verdicts.LOOKS)]
    for each in made:
        each["kind"] = "question" if each["verdict"] in ("yes", "no") else "measurement"
    made[1]["source"] = {"key": "encyclopedia", "version": "English Wikipedia", "where": "Inference"}
    made[2]["source"] = {"key": "santurkar2018", "version": "v1", "where": "Figure 7"}
    made[3]["exploratory"] = "test changed after its data"
    made[4] |= {"chapter": "part/dice", "profile": "paper", "kind": "statement"}
    return made
