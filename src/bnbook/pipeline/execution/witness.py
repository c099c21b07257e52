"""Keeps the source of every module of the package that is imported while another than at the start of a run.

A run copies this file to where each of its Pythons starts (`sitecustomize`), so it stands alone: it imports
nothing of the package.
"""

import hashlib
import os
import sys
from importlib.machinery import SourceFileLoader

PACKAGE = "bnbook"
FOLDER = os.environ.get("BNBOOK_IMPORTED", "")


class Witness(SourceFileLoader):
    """Compiles the source that it has just read, never a cached one, and keeps what it read."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        source = self.get_data(path)
        inside = fullname.split(".")[1:]
        folders = inside if os.path.basename(path) == "__init__.py" else inside[:-1]
        keep(os.path.join(*folders, os.path.basename(path)), source)
        return self.source_to_code(source, path)


class Finder:
    """Finds the package's modules as the others would, and has them loaded by the witness."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] != PACKAGE:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not cls)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Witness(name, spec.loader.path)
        return spec


def keep(place, source):
    """Store a source under other/SHA-256/place unless it is that of the start."""
    try:
        with open(os.path.join(FOLDER, "start", place), "rb") as file:
            if file.read() == source:
                return
    except OSError:
        pass  # there was no such file
    target = os.path.join(FOLDER, "other", hashlib.sha256(source).hexdigest(), place)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(source)


if FOLDER and __name__ == "sitecustomize":
    sys.meta_path.insert(0, Finder)
    if os.environ.get("BNBOOK_TRACES"):  # the tests note what runs: tests/tracing
        __import__("bnbook_tracing")
