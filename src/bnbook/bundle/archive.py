"""What comes back: executed notebooks, results, figures and finished trainings, in archives that check
themselves."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from bnbook import paths
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import chapters
from bnbook.pipeline.chapters.evidence import Evidence, fresh_run
from bnbook.pipeline.gate import header

MANIFEST = "manifest.json"
SCHEMA = 1
#: Names of members: folders and a file below where they are unpacked, on every system.
PLAIN = re.compile(r"[^/\\:]+(/[^/\\:]+)*")


def pack(profile: str, folder: Path, part_mib: float) -> list[Path]:
    """Write bnbook-PROFILE-K.tar, each at most `part_mib` MiB where its largest member allows.

    Each archive stands by itself: a manifest with the SHA-256 of every file, then the files. A chapter's
    notebook, results and figures stay together. Archives of an earlier call are replaced.
    """
    if not part_mib > 0:
        raise BnbookError(f"archives of {part_mib} MiB; expected a size above 0")
    folder.mkdir(parents=True, exist_ok=True)
    parts: list[list[list[tuple[str, Path]]]] = [[]]
    filled = 0.0
    for group in _groups(profile):
        size = sum(path.stat().st_size for _, path in group)
        if filled and filled + size > part_mib * 2**20:
            parts.append([])
            filled = 0.0
        parts[-1].append(group)
        filled += size
    for old in folder.glob(f"bnbook-{profile}-*.tar"):
        old.unlink()
    written = []
    for number, groups in enumerate((part for part in parts if part), start=1):
        written.append(folder / f"bnbook-{profile}-{number}.tar")
        _write(written[-1], profile, [each for group in groups for each in group])
    return written


def _groups(profile: str) -> Iterator[list[tuple[str, Path]]]:
    """What has to stay together: a chapter's files; one training."""
    for chapter in chapters.discover():
        run = fresh_run(chapter, profile)
        if run.exists:
            yield [(f"runs/{path.relative_to(run.folder).as_posix()}", path) for path in _files(run)]
    for path in sorted(paths.store_folder().glob("*.npz")):
        yield [(f"store/{path.name}", path)]


def _files(run: Evidence) -> list[Path]:
    figures = [path for path in sorted(run.figures_folder.rglob("*")) if path.is_file()]
    return [run.notebook_path, run.results_path, *figures]


def _write(target: Path, profile: str, files: list[tuple[str, Path]]) -> None:
    content = {name: path.read_bytes() for name, path in files}
    lock = paths.repository_root() / "requirements.lock"
    manifest = {
        "schema": SCHEMA,
        "profile": profile,
        "commit": header.commit()["commit"],
        "lock": hashlib.sha256(lock.read_bytes()).hexdigest(),
        "files": {name: hashlib.sha256(each).hexdigest() for name, each in content.items()},
    }
    staged = target.with_suffix(".part")
    with tarfile.open(staged, "w") as tar:
        for name, each in {MANIFEST: json.dumps(manifest, indent=1).encode(), **content}.items():
            member = tarfile.TarInfo(name)
            member.size = len(each)
            tar.addfile(member, io.BytesIO(each))
    staged.replace(target)


def read(archive: Path) -> tuple[dict, dict[str, bytes]]:
    """Manifest and files of an archive, each checked; BnbookError where one is not as the manifest says, or
    where another version wrote it."""
    wrong = f"{archive.name or archive} is not a whole archive of a bundle"
    content: dict[str, bytes] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if not member.isfile() or not PLAIN.fullmatch(member.name) or ".." in member.name.split("/"):
                    raise BnbookError(f"{wrong}: it holds {member.name!r}; expected plain files only")
                content[member.name] = tar.extractfile(member).read()
        manifest = json.loads(content.pop(MANIFEST))
        schema, promised = manifest["schema"], dict(manifest["files"])
        assert all(isinstance(manifest[name], str) for name in ("profile", "commit", "lock"))
    except FileNotFoundError:
        raise BnbookError(f"no file {archive}; expected an archive that a bundle's run.sh left") from None
    except (tarfile.TarError, OSError, ValueError, KeyError, TypeError, AssertionError, EOFError):
        raise BnbookError(f"{wrong}; copy it again") from None
    if schema != SCHEMA:
        raise BnbookError(
            f"{archive.name} is an archive of form {schema!r}, this book reads form {SCHEMA}; import it with "
            "the bnbook that made its bundle"
        )
    found = {name: hashlib.sha256(each).hexdigest() for name, each in content.items()}
    if found != promised:
        differ = sorted({*found.items()} ^ {*promised.items()})
        raise BnbookError(f"{wrong}: {differ[0][0]} is not as its manifest says; copy it again")
    return manifest, content


if __name__ == "__main__":
    for path in pack(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])):  # run.sh has checked the words
        print(path)
