"""One-off: enter into book/locks.jsonl what the history of the repository says of the time before the locks.

Run once, from the root, on a full clone: `python enter_history.py`. For each claim of today:

* **proven**: the tree of the commit that the first published run was made from, which that run's own header
  names, holds the claim with today's test (kinds, results, numbers, how parts combine). "First" is the first
  published run with which one of its tests could be computed. Three first runs name commits of a branch that
  was merged by other hashes; for them the commit counts that their results were given later, unchanged
  (84a82ea).
* **after its data**: that tree lacks the claim, or has another test; or the file of claims itself says that
  the test was written after a look at such data (LOOKED).
* **more seeds**: the first run had fewer than today's.
* **measured otherwise**: on the same seeds a later run gave other numbers than an earlier one (beyond
  rounding: 0.2 % of the largest value, a thousandth of an identity's tolerance, one trial of a count).

A lock has the date of the commit in which its test first stood, a publication that of the commit that
brought it. Hashes of tests are today's; code and settings are those of today's evidence, for the
numbers are the same. The wording is today's. Claims that were listed and are no longer get a lock and a
line that withdraws them.
"""

import collections
import datetime
import json
import subprocess

import numpy as np
import yaml

from bnbook import claims, results
from bnbook.claims import locks
from bnbook.claims.locks.chain import FIXED, ranges, short
from bnbook.claims.locks.standing import measure
from bnbook.fingerprint import digest
from bnbook.pipeline import chapters
from bnbook.pipeline.locking import says
from bnbook.profiles import PUBLISHED

#: What the files of claims say of themselves.
LOOKED = {
    "conv-first-layer": "written after a first run had shown the gap",
    "rate-readout": "written after a comparison by hand",
}
REMAPPED = {"84a82eae"}


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, check=True, text=True).stdout


COMMITS = [line.split() for line in git("log", "--topo-order", "--reverse", "--format=%H %ct").splitlines()]
PLACE = {commit: k for k, (commit, _) in enumerate(COMMITS)}
DATE = {
    commit: datetime.datetime.fromtimestamp(int(t), datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
    for commit, t in COMMITS
}
_blobs, HOME = {}, {}


def blob(name, read):
    if name not in _blobs:
        _blobs[name] = read(git("cat-file", "-p", name))
    return _blobs[name]


def files(commit, folder):
    listed = git("ls-tree", "-r", "--format=%(objectname) %(path)", commit, folder).splitlines()
    return [line.split(" ", 1) for line in listed]


def number(value):
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value


def canonical(entry):
    def test(content):
        return {key: number(value) for key, value in sorted((content or {}).items())}

    parts = [test(part.get("test")) for part in entry.get("parts") or []]
    both = [test(entry.get(key)) for key in ("test", "corrected")]
    return json.dumps([parts, both, entry.get("combine", "all")])


def tests_of(commit):
    found = {}
    for name, path in files(commit, "book"):
        if path.endswith("claims.yml"):
            content = blob(name, lambda text: yaml.load(text, yaml.CSafeLoader))
            for entry in content["claims"] if isinstance(content, dict) else content:
                found[entry["id"]] = canonical(entry)
                HOME[entry["id"]] = entry.get("chapter") or path[len("book/") : -len(".claims.yml")]
    return found


def read_results(text):
    content = json.loads(text)
    return results.Results(content, content.pop("results"))


def published_runs():
    runs, last = collections.defaultdict(list), {}
    for commit, _ in COMMITS:
        for name, path in files(commit, "executed"):
            if path.endswith(".json") and path.startswith("executed/laptop/"):
                chapter = path.removeprefix("executed/laptop/").removesuffix(".json")
                if last.get(chapter) != name and name not in {each for _, each in runs[chapter]}:
                    runs[chapter].append((commit, name))
                    last[chapter] = name
    return {name: [(commit, blob(b, read_results)) for commit, b in each] for name, each in runs.items()}


def same(claim, a, b):
    for name in claim.result_names():
        if name not in a or name not in b:
            continue
        tests = [test for test in claim.tests if name in test.result_names()]
        rows = [a.entries[name]["seeds"], b.entries[name]["seeds"]]
        common = [seed for seed in rows[0] if seed in rows[1]]
        x, y = (run[name][[seeds.index(s) for s in common]] for run, seeds in zip((a, b), rows, strict=True))
        if x.shape != y.shape:
            return False
        slack = max(1e-3 * (t.tolerance or 0) if t.kind == "identity" else 0 for t in tests)
        if all(t.kind == "inequality" for t in tests):
            slack = 1.0
        finite = np.abs(x[np.isfinite(x)])
        slack = max(slack, 2e-3 * finite.max() if finite.size else 0)
        if not np.allclose(x, y, rtol=0, atol=slack, equal_nan=True):
            return False
    return True


def grown(claim, first, last):
    """Numbers of seeds of a result that had fewer at first."""
    for name in claim.result_names():
        if (
            name in first
            and name in last
            and len(first.entries[name]["seeds"]) < len(last.entries[name]["seeds"])
        ):
            return tuple(len(run.entries[name]["seeds"]) for run in (first, last))
    return ()


def seeds_planned(claim, run, plan):
    """Today's plan with the numbers of seeds that a run had."""
    return {k: run.header["parameters"].get(k, v) if k != "settings" else v for k, v in plan.items()}


def main():
    known = {commit: tests_of(commit) for commit, _ in COMMITS}
    runs, today = published_runs(), known[COMMITS[-1][0]]
    counts, events = collections.Counter(), []
    for chapter in chapters.discover():
        own = runs[chapter.name]
        last = own[-1][1]
        plans = {p: locks.plan(chapter.parameters(p)) for p in PUBLISHED if chapter.has(p)}
        now, plans["laptop"] = measure(last.header["fingerprint"]), locks.plan(last.header["parameters"])
        for commit, run in own:
            seeds = {seed for entry in run.entries.values() for seed in entry["seeds"]}
            content = short(run.header.get("content") or digest(results.as_content(run)))
            event = {"event": "published", "chapter": chapter.name, "profile": "laptop"}
            event |= {"content": content, "seeds": ranges(seeds), "commit": commit[:10], "date": DATE[commit]}
            events.append((PLACE[commit] + 0.5, event))
        for claim in claims.chapter_claims(chapter.name):
            versions = []
            for commit, _ in COMMITS:
                test = known[commit].get(claim.id)
                if test and (not versions or test != versions[-1][1]):
                    versions.append((commit, test))
            usable = [
                k
                for k, (_, run) in enumerate(own)
                if any(set(t.result_names()) <= set(run) for t in claim.tests)
            ]
            standing = history(claim, versions, own, usable, known, today)
            counts[standing[0]] += 1
            events += list(lines(claim, chapter.name, versions, own, usable, standing, now, plans))
    for name in HOME.keys() - today.keys():
        there = [commit for commit, _ in COMMITS if name in known[commit]]
        gone = COMMITS[PLACE[there[-1]] + 1][0]
        about = {"chapter": HOME[name], "claim": name}
        event = {"event": "locked", **about, "test": short(digest(known[there[-1]][name])), "says": ""}
        event |= {"measure": "", "planned": {}, "stop": FIXED, "seen": {}}
        events.append((PLACE[there[0]], event | {"commit": there[0][:10], "date": DATE[there[0]]}))
        event = {"event": "withdrawn", **about, "why": "no longer listed", "commit": gone[:10]}
        events.append((PLACE[gone], event | {"date": DATE[gone]}))
        counts["withdrawn"] += 1
    locks.append([event for _, event in sorted(events, key=lambda each: each[0])])
    print(dict(counts), len(events), "lines")


def history(claim, versions, own, usable, known, today):
    """(kind, index of the run from which on the numbers are today's)."""
    if not usable:
        return "no data yet", 0
    first = own[usable[0]][1]
    made = first.header["provenance"]["commit"]
    if made not in known:  # a hash of a branch: the same results were given this history's commit
        commit, again = own[usable[0] + 1]
        assert commit[:8] in REMAPPED, commit
        made = again.header["provenance"]["commit"]
    if claim.id in LOOKED:
        return "after a look", usable[0]
    if known[made].get(claim.id) != today[claim.id]:
        return ("changed after its data" if claim.id in known[made] else "written after its data"), usable[0]
    whole = [k for k in usable if set(claim.result_names()) <= set(own[k][1])]
    differ = [k for k in whole if not same(claim, own[k][1], own[-1][1])]
    if differ:
        return "measured otherwise after its data", differ[-1] + 1
    if grown(claim, own[usable[0]][1], own[-1][1]):
        return "more seeds after its data", usable[0]
    return "proven", usable[0]


def lines(claim, chapter, versions, own, usable, standing, now, plans):
    kind, k = standing
    first = own[usable[0]][1] if usable else None
    mine = next(commit for commit, test in versions if test == versions[-1][1])
    about = {"chapter": chapter, "claim": claim.id, "test": short(claim.test_hash), "says": says(claim)}
    plain = {"measure": now, "planned": plans, "stop": FIXED, "seen": {}}
    event = "locked"
    for commit, test in versions[: [test for _, test in versions].index(versions[-1][1])]:
        old = {**about, "test": short(digest(test)), **plain, "commit": commit[:10], "date": DATE[commit]}
        yield PLACE[commit], {"event": event, **old}
        event = "changed"
    stamp = {"commit": mine[:10], "date": DATE[mine]}
    if kind in ("proven", "no data yet"):
        why = {"why": "test changed before its data"} if event == "changed" else {}
        yield PLACE[mine], {"event": event, **about, **plain, **why, **stamp}
        return
    seen = {"seen": {"laptop": ranges(locks.seeds_used(claim, first))}}
    if kind in ("after a look", "written after its data", "changed after its data"):
        words = LOOKED.get(claim.id, f"test {kind}")
        yield PLACE[mine], {"event": event, **about, **plain, **seen, "why": words, **stamp}
        return
    planned = plans | {"laptop": seeds_planned(claim, first, plans["laptop"])}
    then = {"planned": planned}
    if kind.startswith("measured"):
        then["measure"] = measure(first.header["fingerprint"])
    yield PLACE[mine], {"event": event, **about, **plain, **then, **stamp}
    seeds = grown(claim, first, own[-1][1])
    whole = next((n for n in range(k, len(own)) if not grown(claim, own[n][1], own[-1][1])), k)
    commit = own[max(k, whole)][0]
    words = [f"{seeds[0]} to {seeds[1]} seeds"] if seeds else []
    words = ["measured otherwise"] * kind.startswith("measured") + words
    later = {
        **seen,
        "why": f"{' and '.join(words)} after its data",
        "commit": commit[:10],
        "date": DATE[commit],
    }
    yield PLACE[commit], {"event": "changed", **about, **plain, **later}


if __name__ == "__main__":
    main()
