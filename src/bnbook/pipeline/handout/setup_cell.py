"""The first code cell of a notebook that is handed out: where something is missing, it installs it."""

from __future__ import annotations

from typing import Any

import nbformat

from bnbook import __version__

#: Module -> package of all that a chapter's cells lead to; the site's own packages are not among them, and a
#: hosted notebook keeps the torch that it has.
NEEDED = {
    "IPython": "ipython",
    "PIL": "pillow",
    "cloudpickle": "cloudpickle",
    "distributed": "distributed",
    "filelock": "filelock",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "platformdirs": "platformdirs",
    "psutil": "psutil",
    "scipy": "scipy",
    "torch": "torch",
    "torchvision": "torchvision",
    "tqdm": "tqdm",
    "yaml": "pyyaml",
}
WHEEL = f"bnbook-{__version__}-py3-none-any.whl"
BY_HAND = (
    f"bnbook is not installed: put its wheel, {WHEEL}, beside this notebook and run the cell again, or "
    "pip install . in a copy of the book's repository"
)
SOURCE = """# @title Set-up: installs what is missing; where all is there it does nothing
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

source = {source!r}  # the book's repository
needed = {needed!r}
pip = [sys.executable, "-m", "pip", "install", "--quiet"]
wanted = [[package for module, package in needed.items() if not find_spec(module)]]
if not find_spec("bnbook"):
    book = [*map(str, sorted(Path().glob("bnbook-*.whl"))), *filter(None, [source])]
    if not book:
        raise ModuleNotFoundError({by_hand!r})
    wanted.append(["--no-deps", book[0]])
for packages in filter(None, wanted):
    if subprocess.run([*pip, *packages]).returncode:
        raise RuntimeError("pip could not install " + " ".join(packages) + ": see above; is there a network?")
importlib.invalidate_caches()"""


def setup_cell(address: str) -> Any:
    """The folded cell; `address` of the book's repository, empty while it has none.

    bnbook comes from a wheel beside the notebook, else from the address; with neither the cell says in one
    line what to do. What the chapter's own parameters need is inside the package; real data are fetched by
    the chapter itself when its `data` names them.
    """
    source = f"git+{address}" if address else ""
    cell = nbformat.v4.new_code_cell(SOURCE.format(source=source, needed=NEEDED, by_hand=BY_HAND))
    cell.metadata = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    return cell
