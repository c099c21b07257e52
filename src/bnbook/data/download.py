"""Downloads that resume, are checked, show how far they are, and give up rather than hang.

By hand, for neither the standard library nor torchvision resumes, or gives up on a line that only trickles.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bnbook.data.cache import cache_folder, disk_error
from bnbook.data.progress import ProgressLine
from bnbook.errors import BnbookError

TIMEOUT = 30.0  # seconds without a byte after which a connection is given up
PATIENCE = 120.0  # seconds in which at least LEAST bytes must arrive, over all connections
LEAST = 64 * 1024
PIECE = 64 * 1024
LOOK = 0.5  # seconds between two looks at what another process downloads
TRIES = 5  # connections that a server may begin anew, for want of ranges


def download_mnist() -> Path:
    """The folder MNIST/raw under the cache folder, its four files fetched where they are missing."""
    from torchvision.datasets import MNIST

    folder = cache_folder() / "downloads" / "MNIST" / "raw"
    for filename, md5 in MNIST.resources:
        download([mirror + filename for mirror in MNIST.mirrors], folder / filename, md5)
    return folder


def download_cifar10() -> Path:
    """The archive of CIFAR-10 under the cache folder, fetched where it is missing."""
    from torchvision.datasets import CIFAR10

    return download([CIFAR10.url], cache_folder() / "downloads" / CIFAR10.filename, CIFAR10.tgz_md5)


def download(urls: Sequence[str], target: Path, md5: str) -> Path:
    """Fetch `target` from the first of `urls` that gives it whole; what has arrived waits in `target.part`.

    A connection that breaks is resumed where it broke, in this run or in the next one. `target` appears only
    when its MD5 sum is right. BnbookError when every address fails or too little arrives in PATIENCE seconds.
    """
    part = target.with_name(target.name + ".part")
    reasons = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if _whole(target, md5):
            return target
        with _alone(target):
            if _whole(target, md5):  # another process was quicker
                return target
            for url in urls:
                reason = _fetch(url, part, md5)
                if reason is None:
                    os.replace(part, target)
                    return target
                reasons.append(f"{url}: {reason}")
            kept = part.stat().st_size if part.is_file() else 0
    except OSError as error:
        raise disk_error(error, target) from None
    raise BnbookError(
        f"cannot download {target.name} ({'; '.join(reasons)}); expected the file with the MD5 sum {md5}; "
        f"{kept} bytes are kept: run again to go on from there, or set BNBOOK_DATA to a folder with the set"
    )


def _fetch(url: str, part: Path, md5: str) -> str | None:
    """Fill `part` from one address over as many connections as it takes; the reason where that fails."""
    progress = ProgressLine(url.rsplit("/", 1)[-1])
    reached, reached_at, pause, reason, wrong, anew = 0, time.monotonic(), 0.5, "", 0, 0
    try:
        while time.monotonic() - reached_at < PATIENCE:
            try:
                for have in _receive(url, part, progress):
                    if have < reached:
                        reached, anew = 0, anew + 1
                        if anew == TRIES:
                            return f"cut {TRIES} times, and the server cannot go on where it was"
                    if have >= reached + LEAST:
                        reached, reached_at, pause = have, time.monotonic(), 0.5
                    elif time.monotonic() - reached_at >= PATIENCE:
                        raise TimeoutError("the server only trickles")
                if _whole(part, md5):
                    return None
                part.unlink()  # the beginning may be the leftover of another file, so start over, once
                reached, wrong = 0, wrong + 1
                if wrong == 2:
                    return "what arrives has another MD5 sum"
                continue
            except urllib.error.HTTPError as error:
                reason = f"the server answers {error.code} {error.reason}"
                if error.code < 500 and error.code not in (408, 429):
                    return reason
            except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
                reason = str(getattr(error, "reason", error)) or type(error).__name__
            time.sleep(min(pause, PATIENCE / 4))
            pause = min(2 * pause, 15.0)
        return f"less than {LEAST // 1024} KiB in {PATIENCE:.0f} s, {reason}"
    finally:
        progress.close()


def _receive(url: str, part: Path, progress: ProgressLine) -> Iterator[int]:
    """One connection: append to `part` from where it ends, yielding its length after every piece."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "bnbook"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if have and error.code == 416:  # nothing is missing, or `part` is too long: its MD5 sum tells
            return
        raise
    with response:
        resumed = response.status == 206 and (response.headers.get("Content-Range") or "").startswith(
            f"bytes {have}-"
        )
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with open(part, "ab" if resumed else "wb") as file:
            while piece := _piece(response):
                file.write(piece)
                have += len(piece)
                progress.show(have, total)
                yield have
    if total is not None and have < total:
        raise ConnectionError("the connection was cut")


def _piece(response: http.client.HTTPResponse) -> bytes:
    """What has arrived, at once (read1): a trickle cannot hold us. A broken line is never a disk's fault."""
    try:
        return response.read1(PIECE)
    except OSError as error:
        raise ConnectionError(str(error)) from None


def _whole(path: Path, md5: str) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == md5


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Let one process at a time fill a `.part` file; others wait as long as it grows. The lock dies with the
    process that holds it."""
    lock, part = (target.with_name(target.name + ending) for ending in (".lock", ".part"))
    lock, size, changed_at = FileLock(lock), -1, time.monotonic()
    while True:
        try:
            lock.acquire(timeout=LOOK)
            break
        except Timeout:
            before, size = size, part.stat().st_size if part.is_file() else -1
            changed_at = time.monotonic() if size != before else changed_at
            if time.monotonic() - changed_at >= PATIENCE:
                raise BnbookError(
                    f"another process is downloading {target.name} and gets nothing; expected more within "
                    f"{PATIENCE:.0f} s; run again when it is done"
                ) from None
        except (OSError, NotImplementedError):
            break  # a file system without locks
    try:
        yield
    finally:
        lock.release()
