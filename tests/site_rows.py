"""Rows of the ledger, made up: one for each kind of verdict and test."""

from __future__ import annotations

from typing import Any

from bookpress.site import verdicts


def row(name: str, verdict: str = "reproduced", **changes: Any) -> dict[str, Any]:
    """A claim about accuracies: 5 seeds, a mean of 0.13 beyond the threshold of 0.1."""
    effect = {"number": 0.13, "unit": "points", "words": "13 points higher with batch norm"}
    interval = {"low": 0.11, "high": 0.15, "words": "11 to 15"}
    test = {
        "role": "whole",
        "says": "",
        "asks": "more than 10 points higher with batch norm",
        "test": {
            "kind": "difference",
            "a": "acc.batch",
            "b": "acc.none",
            "side": "greater",
            "threshold": 0.1,
        },
        "verdict": verdict,
        "holds": True,
        "effect": effect,
        "interval": interval,
        "n": 5,
        "values": [0.12, 0.14, 0.13, 0.11, 0.15],
        "side": 5,
        "p": 0.001,
        "sign_p": 0.06,
        "kept": True,
    }
    made = {
        "id": name,
        "chapter": "part/coin",
        "was": "",
        "says": f"With $\\gamma < 1$ claim {name} is <true>.",
        "source": {"key": "santurkar2018", "version": "v1, NeurIPS", "where": "Figure 1"},
        "kind": "measurement",
        "verdict": verdict,
        "words": verdict,
        "effect": effect,
        "interval": interval,
        "n": 5,
        "scope": "laptop · n = 5",
        "profile": "laptop",
        "combine": "all",
        "rungs": False,
        "of": "",
        "rests_on": [],
        "figure": "shares",
        "remark": "",
        "exploratory": "",
        "locked": "",
        "changed": [],
        "other_margins": ["reproduced", "open"],
        "tests": [test],
    }
    return made | changes


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
