"""Downloads from a server on this machine that cuts, lies, trickles and fails."""

from __future__ import annotations

import errno
import hashlib
import http.server
import os
import threading
import time

import numpy as np
import pytest
import tiny_data
from filelock import FileLock

from bnbook import data
from bnbook.data import download
from bnbook.data.progress import ProgressLine
from bnbook.errors import BnbookError

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT at /file; `cut`: bytes after which a connection breaks; `asked`: Range headers seen."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"/file": CONTENT}
        self.cut, self.ranges, self.status, self.trickle = 10**9, True, 200, 0.0
        self.asked: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/file"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of the test."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        if server.status != 200 or self.path not in server.files:
            self.send_error(server.status if server.status != 200 else 404)
            return
        content = server.files[self.path]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if server.trickle:
            for byte in content[start:]:
                time.sleep(server.trickle)
                self.wfile.write(bytes([byte]))
        self.wfile.write(content[start : start + server.cut])

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "PATIENCE", 1.0)
    monkeypatch.setattr(download, "TIMEOUT", 0.5)
    monkeypatch.delenv("BNBOOK_RESULTS", raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()


def failed(server: Server, target, *words: str, urls: list[str] | None = None) -> None:
    begun = time.monotonic()
    with pytest.raises(BnbookError) as caught:
        download.download(urls or [server.url], target, MD5)
    assert time.monotonic() - begun < 5, "it all but hung"
    assert not target.exists()
    for word in (target.name, *words):
        assert word in str(caught.value)


def test_cut_connections_are_resumed_where_they_broke(server, tmp_path):
    server.cut = 100_000
    target = download.download([server.url], tmp_path / "deep" / "file", MD5)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]
    assert sorted(path.name for path in target.parent.iterdir()) == ["file", "file.lock"]
    download.download([server.url], target, MD5)
    assert len(server.asked) == 3  # it is there: nobody is asked


def test_two_processes_do_not_fetch_one_file_at_once(server, tmp_path):
    """One waits for the other as long as that gets something, and takes what it got."""
    lock = FileLock(tmp_path / "file.lock", thread_local=False)

    def other() -> None:
        for end in range(0, 300_001, 50_000):  # 1.4 s, longer than anyone waits for nothing
            (tmp_path / "file.part").write_bytes(CONTENT[:end])
            time.sleep(0.2)
        (tmp_path / "file.part").replace(tmp_path / "file")
        lock.release()

    lock.acquire()
    thread = threading.Thread(target=other)
    thread.start()
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT
    thread.join()
    assert server.asked == []


def test_one_that_gets_nothing_is_not_waited_for(server, tmp_path):
    with FileLock(tmp_path / "file.lock"):
        failed(server, tmp_path / "file", "another process is downloading", "run again when it is done")
    assert server.asked == []
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT


def test_the_next_run_goes_on_where_this_one_gave_up(server, tmp_path):
    target = tmp_path / "file"
    server.cut, server.status = 0, 503
    (tmp_path / "file.part").write_bytes(CONTENT[:123_456])
    failed(server, target, "503", "123456 bytes are kept", "run again", "BNBOOK_DATA")
    server.cut, server.status = 10**9, 200
    assert download.download([server.url], target, MD5).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=123456-"


def test_a_server_without_ranges_starts_over(server, tmp_path, monkeypatch):
    server.ranges = False
    shown = []
    monkeypatch.setattr(ProgressLine, "show", lambda self, have, total: shown.append((have, total)))
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT
    assert shown[-1] == (300_000, 300_000)


def test_a_server_without_ranges_may_be_slow_after_a_cut(server, tmp_path, monkeypatch):
    """What came before the cut does not count against it: three times longer than nothing is borne."""

    def get(handler: Handler) -> None:
        handler.server.asked.append(None)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(CONTENT)))
        handler.end_headers()
        if len(server.asked) == 1:
            handler.wfile.write(CONTENT[:290_000])
            return
        for start in range(0, len(CONTENT), 20_000):
            handler.wfile.write(CONTENT[start : start + 20_000])
            time.sleep(0.2)

    monkeypatch.setattr(Handler, "do_GET", get)
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_server_without_ranges_that_always_cuts_is_given_up(server, tmp_path, monkeypatch):
    server.ranges, server.cut = False, 200_000
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    failed(server, tmp_path / "file", "cut 5 times")
    assert len(server.asked) == 6


@pytest.mark.parametrize("leftover", [b"something else", CONTENT + b"x", CONTENT])
def test_a_wrong_or_whole_leftover_is_no_obstacle(server, tmp_path, leftover):
    (tmp_path / "file.part").write_bytes(leftover)
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT[:-1])
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT


def test_wrong_content_is_refused(server, tmp_path):
    server.files["/file"] = CONTENT[:-1] + b"?"
    failed(server, tmp_path / "file", "another MD5 sum", MD5)
    assert not (tmp_path / "file.part").exists()


def test_the_second_address_helps(server, tmp_path):
    missing = server.url.replace("/file", "/gone")
    assert download.download([missing, server.url], tmp_path / "file", MD5).read_bytes() == CONTENT
    failed(server, tmp_path / "other", "404", urls=[missing])


def test_trickles_and_silence_end(server, tmp_path):
    server.trickle = 0.01  # 100 bytes a second, never silent
    failed(server, tmp_path / "file", "less than 64 KiB in 1 s")
    server.trickle = 60.0  # not one byte, so that a slow machine's clock cannot make it a trickle
    failed(server, tmp_path / "file", "timed out")


def test_no_server(server, tmp_path):
    failed(server, tmp_path / "file", "refused", urls=["http://127.0.0.1:9/file"])


def test_full_disk_keeps_what_has_arrived(server, tmp_path, monkeypatch):
    class Full:
        """A file on a disk that takes 100,000 bytes."""

        def __init__(self, file) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, piece: bytes) -> None:
            if self.file.tell() + len(piece) > 100_000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.file.write(piece)

    def opened(path, mode):
        return Full(open(path, mode)) if str(path).endswith(".part") and "r" not in mode else open(path, mode)

    with monkeypatch.context() as patch:
        patch.setattr(download, "open", opened, raising=False)
        failed(server, tmp_path / "file", "No space left on device", "free some space")
    assert download.download([server.url], tmp_path / "file", MD5).read_bytes() == CONTENT
    assert server.asked[-1] is not None  # it went on, it did not start over


def test_sets_come_from_torchvisions_addresses(server, tmp_path, monkeypatch):
    """mnist and cifar10 without BNBOOK_DATA: fetched, checked, decoded, cached; then no one is asked."""
    from torchvision.datasets import CIFAR10, MNIST

    digits, photographs = (
        tiny_data.make_arrays((1, 28, 28), seed=1),
        tiny_data.make_arrays((3, 32, 32), seed=2),
    )
    tiny_data.make_known(monkeypatch, "mnist", digits, md5=tiny_data.md5_of(digits))
    tiny_data.make_known(monkeypatch, "cifar10", photographs, sha256=None, groups=None)
    raw = tiny_data.write_idx(tmp_path / "origin", digits, zipped=True)
    archive = tiny_data.write_batches(tmp_path / "origin", photographs, monkeypatch, archive=True)
    for path in (*raw.iterdir(), archive):
        server.files[f"/{path.name}"] = path.read_bytes()
    base = server.url.removesuffix("file")
    sums = [(path.name, hashlib.md5(path.read_bytes()).hexdigest()) for path in sorted(raw.iterdir())]
    monkeypatch.setattr(MNIST, "mirrors", [base])
    monkeypatch.setattr(MNIST, "resources", sums)
    monkeypatch.setattr(CIFAR10, "url", base + archive.name)
    monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(archive.read_bytes()).hexdigest())
    monkeypatch.delenv("BNBOOK_DATA", raising=False)
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    assert data.load("mnist-auto").identity == data.known_identity("mnist")
    assert data.load("cifar10-auto").identity.name == "cifar10" and len(server.asked) == 5
    server.status = 500
    assert data.load("mnist").identity.train == data.load("cifar10").identity.train == 30
    (tmp_path / "cache" / "decoded" / "cifar10.bin").unlink()
    assert data.load("cifar10").identity.train == 30 and len(server.asked) == 5  # the archive was kept


def test_progress_is_for_terminals_and_logs_not_for_pages(monkeypatch, capsys):
    def shown(terminal: bool) -> str:
        monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
        progress = ProgressLine("set.tar.gz")
        for have in range(0, 1_000_001, 50_000):
            progress.show(have, 1_000_000)
        progress.close()
        return capsys.readouterr().err

    monkeypatch.delitem(__import__("sys").modules, "ipykernel", raising=False)
    monkeypatch.delenv("BNBOOK_RESULTS", raising=False)
    log = shown(False).splitlines()
    assert len(log) == 11 and log[0].strip() == "downloading set.tar.gz: 0.0 of 1.0 MB" and "left" in log[5]
    assert shown(True).startswith("\rdownloading set.tar.gz")
    monkeypatch.setenv("BNBOOK_RESULTS", "results.json")
    assert shown(False) == ""
    assert shown(True) != ""


def test_time_left():
    progress = ProgressLine("x")
    progress.started = (0.0, 1_000_000)
    assert progress.text(3_000_000, 9_000_000, 60.0) == "downloading x: 3.0 of 9.0 MB, 3 min left"
    assert progress.text(8_000_000, 9_000_000, 70.0) == "downloading x: 8.0 of 9.0 MB, 10 s left"
    assert progress.text(8_000_000, None, 70.0) == "downloading x: 8.0 MB"
