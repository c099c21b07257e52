"""What a move of the machinery must leave as it is: save it before, compare it after.

    python scripts/net.py save FOLDER [SITE]     rows, page texts, files, fingerprints
    python scripts/net.py compare BEFORE AFTER   every difference, one a line; exit code 1 where there is one

SITE is a built site (default `_build/html`). Page text is what a reader sees, spaces folded, without the build's
time and commit.
"""

from __future__ import annotations

import json
import re
import sys
from difflib import unified_diff
from pathlib import Path

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]
#: What differs between two builds of one book.
CHANGES = re.compile(r"\b[0-9a-f]{10,40}\b|\d{4}-\d\d-\d\d( \d\d:\d\d)?( UTC)?|in \d+ s\b")


def text_of(page: Path) -> str:
    """The visible text of a page, a line a block, with its alternative texts."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    for gone in soup(["script", "style", "head"]):
        gone.decompose()
    for image in soup("img"):
        image.replace_with(f" [{image.get('alt', '')}] ")
    lines = (" ".join(line.split()) for line in soup.get_text("\n").splitlines())
    return CHANGES.sub("…", "\n".join(line for line in lines if line)) + "\n"


def fingerprints() -> dict[str, dict[str, str]]:
    """What the code of each chapter is hashed to, by the parts that hang on code."""
    from bookpress import stamp
    from bookpress.pipeline.chapters import discover

    found = {}
    for chapter in discover():
        hashes = stamp.of_chapter(chapter.code_cells, {}, [])
        found[chapter.name] = {name: hashes[name] for name in ("code", "package")}
    return found


def save(folder: Path, site: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ledger = json.loads((site / "ledger.json").read_text(encoding="utf-8"))
    rows = {row["id"]: row for row in ledger["claims"]}
    pages = {page.relative_to(site).as_posix(): text_of(page) for page in sorted(site.rglob("*.html"))}
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    kinds = {"rows": rows, "pages": pages, "files": files, "fingerprints": fingerprints()}
    for name, what in kinds.items():
        (folder / f"{name}.json").write_text(json.dumps(what, indent=1, sort_keys=True), encoding="utf-8")
    print(
        f"{len(rows)} rows, {len(pages)} pages, {len(files)} files, {len(kinds['fingerprints'])} fingerprints"
    )


def flat(value, path: str = "") -> dict[str, str]:
    """Nested JSON as one line a leaf."""
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        pairs = enumerate(value)
    else:
        return {path: json.dumps(value, ensure_ascii=False)}
    return {key: leaf for name, each in pairs for key, leaf in flat(each, f"{path}/{name}").items()}


def compare(before: Path, after: Path) -> int:
    count = 0
    for name in ("rows", "fingerprints", "files", "pages"):
        one, other = (
            json.loads((each / f"{name}.json").read_text(encoding="utf-8")) for each in (before, after)
        )
        if name == "files":
            one, other = dict.fromkeys(one, ""), dict.fromkeys(other, "")
        elif name != "pages":
            one, other = flat(one), flat(other)
        for key in sorted({*one, *other}):
            old, new = one.get(key), other.get(key)
            if old == new:
                continue
            count += 1
            if old is None or new is None:
                print(f"{name} {'+' if old is None else '-'} {key}")
            elif name == "pages":
                print(f"{name} ≠ {key}")
                lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
                print("\n".join(f"    {line}" for line in list(lines)[2:] if not line.startswith("@@")))
            else:
                print(f"{name} ≠ {key}: {old[:200]} → {new[:200]}")
    print(f"{count} differences")
    return int(count > 0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["save", folder, *site] if len(site) <= 1:
            save(Path(folder), Path(*site) if site else ROOT / "_build" / "html")
        case ["compare", before, after]:
            sys.exit(compare(Path(before), Path(after)))
        case _:
            sys.exit(__doc__)
