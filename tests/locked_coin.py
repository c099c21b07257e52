"""What tests of locks, draws, the gate and publications share: a claim with its lock, runs that never ran, the tiny book's
coin."""

from __future__ import annotations

import json

from bookpress import results, stamp
from bookpress.claims import Claim, Source, Test, locks
from bookpress.pipeline import chapter_runs, chapters, gate
from bookpress.results import Results

COIN = "part/coin"
MEASURED = {"code": "c", "package": "p", "data": "d"}
CLAIM = Claim(
    "fair", COIN, Source("k", "v", "w"), "says", "f", Test("level", a="x", side="greater", threshold=0.0)
)


def parameters(n=3, **more):
    return {"profile": "laptop", "seeds": n, "width": 8, **more}


def lock(claim=CLAIM, seen=None, why="", n=3, code=MEASURED, **more):
    """A line that fixes a claim's test, with `more` among the parameters that are planned."""
    content = {"event": "lock", "chapter": claim.chapter, "tests": {claim.id: locks.short(claim.test_hash)}}
    content |= {"measure": stamp.measure(code), "seen": seen or {}}
    content |= {"planned": {"laptop": locks.plan(parameters(n, **more))}}
    return content | ({"why": why} if why else {})


def as_before(line):
    """The same as lines of one claim had it until November 2026."""
    ((claim, test),) = line["tests"].items()
    kept = {key: value for key, value in line.items() if key != "tests"}
    return kept | {"event": "locked", "claim": claim, "test": test, "says": "", "stop": "fixed n"}


def run(columns, seeds, code=MEASURED, head="", **more):
    """A run at the laptop profile: name -> values of these seeds."""
    seeds = list(seeds)
    made = {"date": "2026-01-01", "commit": "c0ffee", "device": "cpu"}
    header = {"chapter": COIN, "profile": "laptop", "fingerprint": code, "locks": head, "provenance": made}
    header |= {"parameters": parameters(len(seeds), **more), "content": repr((columns, seeds))}
    return Results(
        header, {n: {"values": list(v), "unit": "", "seeds": seeds, "note": ""} for n, v in columns.items()}
    )


def coin():
    return chapters.select([COIN])[0]


def claims_file(root):
    return root / "book" / "part" / "coin.claims.yml"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def laptop_run():
    return chapter_runs.fresh_run(coin(), "laptop")


def edit_results(change):
    """The laptop run that waits to be published, with other results and hashes that fit."""
    stamped(laptop_run(), change)


def stamped(held, change):
    """A run whose results were changed and whose hashes were made to fit."""
    content = json.loads(held.results_path.read_text())
    change(content)
    held.results_path.write_text(json.dumps(content))
    content["content"] = gate.content_digest(results.read(held.results_path))
    held.results_path.write_text(json.dumps(content))
