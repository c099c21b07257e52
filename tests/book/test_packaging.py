"""What a fresh clone installs: lock, environment.yml, pyproject.toml agree; so do the files around."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
import torchvision
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from bookpress.site import citing

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK_TEXT = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LOCK = [Requirement(line) for line in LOCK_TEXT.splitlines() if line and not line.startswith("#")]
EXTRAS = PROJECT["optional-dependencies"]
#: Every direct dependency, the optional ones included.
DECLARED = list(map(Requirement, sum(EXTRAS.values(), PROJECT["dependencies"])))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def locked(python: str, system: str = "linux") -> dict[str, Version]:
    """Name and version of what the lock installs there."""
    names = {"linux": ("posix", "Linux"), "darwin": ("posix", "Darwin"), "win32": ("nt", "Windows")}
    place = default_environment() | dict(zip(("os_name", "platform_system"), names[system]))
    place |= {"python_version": python, "python_full_version": f"{python}.1"}
    place |= {"sys_platform": system, "implementation_name": "cpython"}
    chosen = [line for line in LOCK if line.marker is None or line.marker.evaluate(place)]
    return {canonicalize_name(line.name): Version(str(line.specifier).removeprefix("==")) for line in chosen}


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_every_dependency_at_a_version_in_its_range(python, system):
    versions = locked(python, system)
    for wanted in DECLARED:
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), f"{wanted} is not locked"


def test_the_lock_is_of_exact_versions_without_a_gpus_and_is_what_is_installed():
    for line in LOCK:
        assert re.fullmatch(r"==[0-9][\w.]*", str(line.specifier)) and line.url is None, line
        assert not line.name.startswith(("nvidia", "cuda", "triton"))
    versions = locked(f"{sys.version_info.major}.{sys.version_info.minor}", sys.platform)
    for name in (canonicalize_name(wanted.name) for wanted in DECLARED):
        installed = Version(importlib.metadata.version(name)).public  # without "+cpu"
        assert installed == str(versions[name]), f"{name} {installed} is installed; run make install"
    boxes = torchvision.ops.nms(torch.ones(2, 4), torch.ones(2), 0.5)  # absent beside another build's torch
    assert boxes.shape == (2,)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a shell script")
@pytest.mark.parametrize(
    "given, tried, why",
    [
        ("TORCH_INDEX=cpu", "uv", "no torch could be had from TORCH_INDEX=cpu"),
        ("TORCH_INDEX=cpu INSTALLER=pip", "", "INSTALLER=pip takes an address as TORCH_INDEX"),
        ("TORCH_INDEX=http://127.0.0.1:9/simple", "uv pip", "had from TORCH_INDEX=http://127.0.0.1:9/simple"),
    ],
)
def test_where_torchs_index_cannot_be_reached_the_plain_one_is_taken(tmp_path, given, tried, why):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    fails = 'case "$*" in *--torch-backend*|*--index-url*) exit 1;; esac'
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n{fails}\n')
    python.chmod(0o755)
    command = ["make", "-s", "install", f"VENV={tmp_path}", *given.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, *rest = done.stdout.splitlines()  # where it happens, and at the end of a long log
    assert why in first and "it comes from the plain index" in first and rest == [first]
    index = given.split()[0].removeprefix("TORCH_INDEX=")
    assert (tmp_path / "torch-index").read_text() == f"plain index instead of {index}\n"
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == f"{first}\n"
    log = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[1] for line in log if "torch==" in line] == tried.split()
    assert any("install" in line and "-r requirements.lock" in line for line in log)


def test_the_same_pythons_everywhere():
    supported = Requirement(f"python{PROJECT['requires-python']}").specifier
    minors = tuple(f"3.{minor}" for minor in range(8, 20) if supported.contains(f"3.{minor}.5"))
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    assert minors == PYTHONS == tuple(tests["jobs"]["test"]["strategy"]["matrix"]["python"])
    assert "not (3, 11) <= sys.version_info[:2] <= (3, 13)" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_import_of_the_package_is_declared():
    lines = [*PROJECT["dependencies"], *EXTRAS["coursework"], *EXTRAS["tables"]]
    wanted = {canonicalize_name(Requirement(line).name) for line in lines}
    owners = importlib.metadata.packages_distributions()
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.parent.name in ("libraries", "other_tools") and not path.name.startswith("__"):
            continue  # runs in environments of its own, which the chapter's table says
        nodes = [*ast.walk(ast.parse(path.read_bytes()))]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
        ours = {"bnbook", "bookpress"} | sys.stdlib_module_names
        for name in {name.split(".")[0] for name in names} - ours:
            found = {canonicalize_name(owner) for owner in owners.get(name, [])}
            assert found & wanted, f"{path.relative_to(ROOT)} imports {name}; pyproject.toml does not name it"


#: In this order, in one process: what no import before or of itself brings along.
LIGHT = {
    "bnbook": "torch numpy matplotlib scipy yaml nbformat jinja2",
    "bnbook.meanfield": "torch scipy",
    "bnbook.claims": "torch scipy",
    "bnbook.data": "torch torchvision sklearn PIL",
}


def test_parts_are_imported_without_what_they_do_not_need():
    seen = "print(sorted(set({!r}.split()) & set(sys.modules)))"
    lines = [f"import sys, {part}; {seen.format(heavy)}" for part, heavy in LIGHT.items()]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"] * len(LIGHT)


def test_workflows_pass_the_linter_and_end_some_time():
    linter = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    command = [linter, "--offline", "--no-progress", "--strict-collection", ".github/workflows"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in WORKFLOWS:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"permissions", "concurrency", True} <= set(content), "YAML reads the key `on` as true"
        assert all(job["timeout-minutes"] > 0 for job in content["jobs"].values()), path


def test_the_citation_is_of_the_one_place_that_names_authors_version_and_day(monkeypatch):
    monkeypatch.setenv("BNBOOK_ROOT", str(ROOT))
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert text == citing.cff(), "python -m bookpress.site.citing writes it anew"
    citation = yaml.safe_load(text)
    assert citation["version"] == importlib.metadata.version("bnbook")
    assert set(citation["license"]) == {"MIT", "CC-BY-4.0"} and PROJECT["license"] == "MIT"


def test_no_committed_text_names_a_home_folder():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    some_home = re.compile(r"(?<![\w.])/(home|Users|root)/[\w.]+/|[A-Z]:\\\\?Users\\\\?\w")
    own = re.compile("|".join(re.escape(f"{folder}{os.sep}") for folder in (Path.home(), ROOT)))
    for name in filter(None, listed.split("\0")):
        home = own if name.startswith("tests/") else some_home  # tests make up homes to see them refused
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes())[:8192]:
            found = home.search(content.decode("utf-8", errors="replace"))
            assert not found, f"{name} names {found.group()!r}"
