"""The settings of a chapter at each profile: its own, those of all evidence, and those that it shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bnbook.errors import BnbookError
from bnbook.texts import read_yaml

#: In place of a profile: every profile whose runs are evidence, that is all but smoke.
EVIDENCE = "evidence"

Layer = tuple[str, Mapping[str, Mapping[str, Any]]]  # where it stands, profile -> settings


def by_profile(
    chapter: str, path: Path, about: Mapping, profiles: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Profile -> settings of a chapter, for each of `profiles`.

    path: the chapter's file; about: its front matter, in which `profiles:` holds its own settings by profile
    and `settings: {FILE: [GROUP, …]}` names groups of a file beside it, each again settings by profile.
    BnbookError, one line, for an unknown profile, file or group and for a setting that is given twice.
    """
    layers: list[Layer] = [("its header", _checked(chapter, "its header", about.get("profiles"), profiles))]
    layers += _shared(chapter, path, about.get("settings", {}), profiles)
    return {profile: _one(chapter, profile, layers) for profile in profiles}


def _one(chapter: str, profile: str, layers: Sequence[Layer]) -> dict[str, Any]:
    """The settings at one profile."""
    found: dict[str, tuple[str, Any]] = {}
    for where, layer in layers:
        for part in (EVIDENCE, profile) if profile != "smoke" else (profile,):
            for name, value in layer.get(part, {}).items():
                if name in found:
                    raise BnbookError(
                        f"{chapter}: {name} at profile {profile} is given twice, in {found[name][0]} and in "
                        f"{where} ({part}); expected it once"
                    )
                found[name] = (f"{where} ({part})", value)
    return {name: value for name, (_, value) in found.items()}


def _shared(chapter: str, path: Path, named: Any, profiles: Sequence[str]) -> Iterator[Layer]:
    """The groups that a chapter takes from files beside it."""
    lists = isinstance(named, dict) and all(isinstance(groups, list) for groups in named.values())
    if not lists or not all(isinstance(text, str) for pair in named.items() for text in (pair[0], *pair[1])):
        raise BnbookError(f"{chapter}: settings {named!r}; expected {{FILE: [GROUP, …]}}, a file beside it")
    for file, groups in named.items():
        if not (path.parent / file).is_file():
            raise BnbookError(f"{chapter}: no settings file {file}; expected it beside the chapter")
        content = read_yaml(path.parent / file, f"{chapter}: {file}")
        for group in groups:
            if not isinstance(content, dict) or group not in content:
                known = ", ".join(map(str, content)) if isinstance(content, dict) else "none"
                raise BnbookError(f"{chapter}: {file} has no group {group!r}; it has: {known}")
            where = f"{file}, {group}"
            yield where, _checked(chapter, where, content[group], profiles)


def _checked(chapter: str, where: str, content: Any, profiles: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Settings by profile; BnbookError for what is none."""
    content = content or {}
    allowed = (*profiles, EVIDENCE)
    if not isinstance(content, dict) or set(content) - set(allowed):
        raise BnbookError(
            f"{chapter}: profiles {sorted(map(str, content))} in {where}; expected {', '.join(allowed)}"
        )
    for profile, values in content.items():
        if not isinstance(values, (dict, type(None))):
            raise BnbookError(f"{chapter}: {profile} in {where} is {values!r}; expected name: value lines")
    return {profile: values or {} for profile, values in content.items()}
