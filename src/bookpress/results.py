"""The results file: every measured number of a chapter, recorded once, read by prose, tables, claims and
pages."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, create_model

from bookpress import atomic, paths, texts
from bookpress.book import command_name
from bookpress.errors import PressError
from bookpress.profiles import HIGHEST_FIRST
from bookpress.schema import mistake
from bookpress.stamp import digest

SCHEMA = 1
NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
#: What a page takes for markup.
MARKS = re.compile(r"[\[\]{}<>`$|\\*&!\n]")
#: Significant digits kept in the file: float32 measurements carry seven, exact float64 checks need their
#: exponent.
DIGITS = 9


@dataclass
class Results(Mapping):
    """The recorded results of one run: `results[name]` is an array (S, ...), first axis the seeds."""

    header: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    draws: tuple[Results, ...] = ()  # of a published run: what earlier ones gave, the oldest first
    #: What claims.draws has found of it already.
    counting: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.entries:
            known = ", ".join(sorted(self.entries)) or "none"
            raise KeyError(f"no result {name!r} recorded; recorded: {known}")
        return np.asarray(
            self.entries[name]["values"], dtype=np.float64
        )  # which reads "nan", "inf" and "-inf"

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def unit(self, name: str) -> str:
        return self.entries[name]["unit"]

    @property
    def profile(self) -> str:
        return self.header.get("profile", "smoke")

    def table(self) -> Any:
        """One row a number, as a pandas frame; PressError where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            words = "pandas is not installed; install it, or use `bookpress.results.as_csv`"
            raise PressError(words) from None
        return pandas.DataFrame(rows(self), columns=list(COLUMNS))


_session = Results()
_first_seed = 0
_texts: dict[str, tuple[dict[str, Any], str]] = {}  # each entry of the session, and its JSON


def number_seeds_from(first: int) -> None:
    """Say that what is recorded from here on is of the seeds `first`, `first` + 1, … where it names none."""
    global _first_seed
    _first_seed = int(first)


def record(
    name: str,
    values: Any,
    *,
    unit: str = "",
    seeds: Sequence[int] | None = None,
    note: str = "",
    digits: int = DIGITS,
) -> None:
    """Record one result, its first axis the seeds (S, ...); under the command `run` on disk when this returns.

    unit: as pages print it; note: a remark; digits: significant ones that are kept, fewer for what is only
    drawn. Raises PressError for a malformed name or unit, a name recorded already in this run, a value without a
    seed axis, or a seed list of another length.
    """
    path, array = _path(), as_array(values, name)
    if not NAME.fullmatch(name):
        raise PressError(f"result name {name!r} is malformed; expected lower-case words joined by _ and .")
    if MARKS.search(unit):
        raise PressError(f"result {name!r} has the unit {unit!r}; expected plain words")
    if name in _session.entries and path is not None:
        words = "was recorded already in this run; give the second one its own name"
        raise PressError(f"result {name!r} {words}")
    if array.ndim == 0 or not len(array):
        raise PressError(f"result {name!r} has no seed axis; expected one value per seed, shape (S, ...)")
    listed = range(_first_seed, _first_seed + len(array)) if seeds is None else map(int, seeds)
    listed = list(listed)
    if len(listed) != len(array):
        raise PressError(f"result {name!r} has {len(array)} values but {len(listed)} seeds")
    if len(set(listed)) != len(listed):
        raise PressError(f"result {name!r} has a seed twice: {listed}; expected every seed once")
    _session.entries[name] = {"values": encode(array, digits), "unit": unit, "seeds": listed, "note": note}
    _save(path)


def record_table(values: Mapping[Any, Any], *, unit: str = "", note: str = "", digits: int = DIGITS) -> None:
    """Record several results that share unit and note: {"error": {("deep", "batch"): x}} as error.deep.batch.

    A key is a part of the name, or a tuple of parts; arrays as in `record`.
    """
    for name, array in _flat(values):
        record(name, array, unit=unit, note=note, digits=digits)


def _flat(values: Mapping[Any, Any], *before: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = (*before, *map(str, key if isinstance(key, tuple) else (key,)))
        if isinstance(value, Mapping):
            yield from _flat(value, *name)
        else:
            yield ".".join(name), value


def record_data(identity: Any) -> None:
    """Note the data set that this run's results rest on (name, sizes, SHA-256); called by
    whatever loads a set."""
    row = asdict(identity) if is_dataclass(identity) else dict(identity)
    row["shape"] = list(row.get("shape", ()))
    listed = _session.header.setdefault("data", [])
    if row not in listed:
        listed.append(row)
    _save(_path())


def record_device(device: str, threads: int) -> None:
    """Note what the results were computed on (for example `NVIDIA H100` or `cpu`) and with how many threads a
    run."""
    _session.header["device"] = {"name": str(device), "threads": int(threads)}
    _save(_path())


def record_training(seconds: float, *, reused: bool, kept: str = "") -> None:
    """Book one training's time: `reused` where the results store had it already, made then by whichever
    chapter; `kept` is its name there, if it is published with the chapter."""
    kind = "reused" if reused else "ran"
    store = _session.header.setdefault(
        "store", {"ran": 0, "ran_seconds": 0.0, "reused": 0, "reused_seconds": 0.0}
    )
    store[kind] += 1
    store[f"{kind}_seconds"] = round(store[f"{kind}_seconds"] + float(seconds), 3)
    if kept:
        store.setdefault("kept", []).append(kept)
    _save(_path())


def current() -> Results:
    """What this session has recorded so far."""
    return _session


def read(path: Path) -> Results:
    """Read one results file; PressError when it is missing, truncated or of another schema."""
    name = "/".join(Path(path).parts[-3:])  # PROFILE/PART/CHAPTER.json
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise PressError(f"no results file {name}; run the chapter first ({command_name()} run)") from None
    try:
        header = json.loads(text)
        found = Results(header, header.pop("results"), read_draws(draws_path(path)))
        if _is_new(text):
            if header["schema"] != SCHEMA:
                words = f"schema {header['schema']}, expected {SCHEMA}"
                raise PressError(f"{name}: {words}; run the chapter again")
            File.model_validate({"results": found.entries, **header})
            _ = [*found.values()]
            _whole.add(hashlib.sha256(text).digest())
    except ValidationError as error:
        raise PressError(
            f"{name} is not a whole results file: {mistake(error)}; run the chapter again"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise PressError(f"{name} is not a whole results file; run the chapter again") from None
    return found


_whole: set[bytes] = set()  # SHA-256 of files that were found whole: one command reads them many times


def _is_new(text: bytes) -> bool:
    return hashlib.sha256(text).digest() not in _whole


# ---- What a results file holds; a key may be missing where a file is older than it ----------------------------------


def _keys(of: Mapping[Any, str]) -> type[BaseModel]:
    """Keys of a file by their types; others may stand beside them."""
    kinds = {name: (kind, None) for kind, names in of.items() for name in names.split()}
    return create_model("Keys", __config__=ConfigDict(strict=True), **kinds)


def _words(unit: str) -> str:
    """A unit stands in the tables of pages as it is written."""
    if MARKS.search(unit):
        raise ValueError(f"is {unit!r}; expected plain words")
    return unit


class Result(BaseModel):
    model_config = ConfigDict(strict=True)

    values: list
    unit: Annotated[str, AfterValidator(_words)]
    seeds: list[int]
    note: str = ""


DataSet = _keys({str: "name", int: "train test", list[int]: "shape", str | None: "sha256", bool: "exact"})
Provenance = _keys(
    {
        str: "commit date device kernels platform",
        bool: "dirty",
        int: "threads",
        list[int]: "seeds",
        float: "seconds",
        float | None: "peak_memory_mib",
        dict: "store",
        dict[str, str]: "versions",
    }
)
File = _keys(
    {
        str: "chapter profile locks content",
        dict: "parameters",
        bool: "default_parameters",
        dict[str, str]: "fingerprint claims files",
        dict[str, dict[str, str]]: "judged",
        list[DataSet]: "data",
        Provenance: "provenance",
        dict[str, Result]: "results",
    }
)

#: What a draw is told apart by and shown with.
DRAWN_WITH = {"chapter", "profile", "parameters", "fingerprint", "content", "provenance"}


def draws_path(path: Path) -> Path:
    """Where the draws lie that came before the run of a results file: draws/PROFILE/PART/CHAPTER.json beside
    the profiles' folders."""
    executed = Path(path).parents[2]
    return executed / "draws" / Path(path).relative_to(executed)


def read_draws(path: Path) -> tuple[Results, ...]:
    """The draws that a file keeps, none where there is no file; PressError where it is not whole, or one of them is not
    what was published."""
    try:
        text = path.read_bytes()
        found = tuple(Results(draw["header"], draw["results"]) for draw in json.loads(text)["draws"])
        if _is_new(text):
            for draw in found:
                whole = File.model_validate({**draw.header, "results": draw.entries})
                seeds = all(len(each.values) == len(set(each.seeds)) for each in whole.results.values())
                if draw.header["digest"] != draw_digest(draw) or DRAWN_WITH - draw.header.keys() or not seeds:
                    raise ValueError
            _whole.add(hashlib.sha256(text).digest())
    except FileNotFoundError:
        return ()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        name = "/".join(path.parts[-4:])
        raise PressError(f"{name} is no whole file of draws; git checkout executed puts it back") from None
    return found


def draw_digest(draw: Results) -> str:
    """What a draw's own hash must be."""
    header = {key: value for key, value in draw.header.items() if key != "digest"}
    return digest({"header": header, "results": draw.entries})


def load(chapter: str, profile: str | None = None) -> Results:
    """Published results at `profile`, or the highest that has any; PressError where there are none."""
    for candidate in [profile] if profile else HIGHEST_FIRST:
        path = paths.executed_folder() / candidate / f"{chapter}.json"
        if path.is_file():
            return read(path)
    raise PressError(
        f"no published results of {chapter}; run and publish it ({command_name()} run, {command_name()} publish)"
    )


def as_content(results: Results) -> dict[str, Any]:
    """The content of the results file."""
    return {"schema": SCHEMA, **results.header, "results": results.entries}


def _path() -> Path | None:
    named = os.environ.get("BNBOOK_RESULTS")
    return Path(named) if named else None


def _save(path: Path | None) -> None:
    """An entry is put into JSON once only, for this happens at every record; `run` ends with the file
    for readers."""
    if path is None:
        return
    for name, entry in _session.entries.items():
        if name not in _texts or _texts[name][0] is not entry:
            _texts[name] = entry, f"{json.dumps(name)}: {json.dumps(entry, allow_nan=False)}"
    head = json.dumps({"schema": SCHEMA, **_session.header}, allow_nan=False).removesuffix("}")
    entries = ", ".join(_texts[name][1] for name in _session.entries)
    atomic.write_text(path, f'{head}, "results": {{{entries}}}}}\n')


# ---- Numbers as the file has them, nested lists of JSON numbers, and as a table, one row a number --------------------


def as_array(values: Any, name: str) -> np.ndarray:
    def plain(value: Any) -> Any:
        return value.detach().cpu().numpy() if hasattr(value, "detach") else value

    values = [*map(plain, values)] if isinstance(values, (list, tuple)) else plain(values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PressError(f"result {name!r} is not an array of numbers with one row per seed") from None


def encode(array: np.ndarray, digits: int) -> Any:
    """Nested lists of JSON numbers; what JSON lacks becomes the strings "nan", "inf", "-inf"."""
    if array.ndim:
        return [encode(row, digits) for row in array]
    number = float(array)
    if not math.isfinite(number):
        return str(number)
    return int(number) if number.is_integer() and abs(number) < 2**53 else float(f"{number:.{digits}g}")


COLUMNS = ("name", "seed", "place", "value", "unit")


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """name, seed, place (the index behind the seed's, as "2,5"), value, unit."""
    for name, entry in results.entries.items():
        for (seed, *place), value in np.ndenumerate(results[name]):
            where = ",".join(map(str, place))
            yield dict(zip(COLUMNS, (name, entry["seeds"][seed], where, value, entry["unit"]), strict=True))


def as_csv(results: Results) -> str:
    """The rows, a line each."""
    return texts.as_csv([COLUMNS, *(row.values() for row in rows(results))])
