"""Decoded sets are kept between runs by the files they come from and `cache.SCHEMA`: what older code has made
of the same files would be read back. So whoever changes that code raises SCHEMA."""

from __future__ import annotations

import ast

import pytest

from bnbook.data import cache
from bnbook.fingerprint import digest
from bnbook.fingerprint.dumping import Writer
from bnbook.fingerprint.sources import Binding, Module, Sources, Whole

#: What makes the identity, the statistics and the arrays that are kept, and the form in which they are.
STORED = """
data:_check data.dataset:pixel_statistics
data.identity:describe data.identity:Description data.identity:DataIdentity data.identity:Arrays
data.identity:SPLITS
data.idx:STEMS data.idx:path_of data.idx:read_idx data.idx:IdxFiles.paths data.idx:IdxFiles.read
data.batch_files:BatchFiles.read data.batch_files:BatchFiles._from_folder
data.batch_files:BatchFiles._from_archive data.batch_files:BatchFiles._unpack
data.folders:SUFFIXES data.folders:ClassFolders.entries data.folders:ClassFolders.read
data.folders:ClassFolders._decode_all data.folders:ClassFolders._decode
data.sources:Download.read data.cache:store data.cache:fetch
""".split()
#: `cache.SCHEMA` and the code that it stands for, without comments, docstrings, hints and words of errors.
PINNED = 1, "c7c11adab4a1b679f34357f950a2dd2d452afcfe7d11ef9e83809c29b6810f26"


class Written(Writer):
    """Definitions one by one; what they mention stands by its name."""

    def __init__(self) -> None:
        self.sources = Sources()

    def follow(self, binding: Binding) -> str:
        name = binding.module if isinstance(binding, Whole) else binding.name
        return f"<{name.removeprefix('bnbook:')}>"

    def note_import(self, module: Module) -> None:
        pass

    def text(self, name: str, source: str | None = None) -> str:
        """Of "module:name" or "module:class.method"; source: that of the module, where it is another."""
        within, _, path = name.partition(":")
        module = self.sources.module(f"bnbook.{within}")
        body = module.definitions[path.split(".")[0]] if source is None else ast.parse(source).body
        for part in path.split("."):
            (node,) = (each for each in body if part in _names(each))
            body = getattr(node, "body", [])
        return self.dump(node, module, ())


def _names(node: ast.stmt) -> set[str]:
    targets = getattr(node, "targets", [getattr(node, "target", node)])
    return {getattr(each, "id", getattr(each, "name", "")) for each in targets}


def test_what_the_cache_keeps_is_made_by_the_code_that_its_schema_stands_for():
    written = Written()
    found = digest([written.text(name) for name in STORED])
    assert (cache.SCHEMA, found) == PINNED, "raise SCHEMA and pin anew"


STATISTICS = "data.dataset:pixel_statistics"
DECODED = "data.folders:ClassFolders._decode"


@pytest.mark.parametrize(
    "name, old, new, same",
    [
        (STATISTICS, "dtype=np.float64) / 255", "dtype=np.float64) / 256", False),
        (STATISTICS, "np.sqrt(", "float(", False),
        (STATISTICS, "so every platform gets", "and so everyone gets", True),
        (STATISTICS, "# bincount widens", "# it widens", True),
        (DECODED, '"RGB"', '"YCbCr"', False),
        (DECODED, "transpose(2, 0, 1)", "transpose(2, 1, 0)", False),
        (DECODED, "expected a whole image", "expected an image", True),
        ("data.identity:describe", "sorted(range(len(digests))", "list(range(len(digests))", False),
        ("data:_check", "pixel_statistics(arrays.train_images)", "pixel_statistics(arrays[2])", False),
        ("data.identity:SPLITS", '("train", "test")', '("test", "train")', False),
    ],
)
def test_a_change_of_that_code_is_seen_and_one_of_its_words_is_not(name, old, new, same):
    written = Written()
    source = written.sources.path(f"bnbook.{name.split(':')[0]}").read_text(encoding="utf-8")
    assert old in source
    changed = written.text(name, source.replace(old, new))
    assert (changed == written.text(name, source) == written.text(name)) is same
    assert written.text(name, source) == written.text(name)
