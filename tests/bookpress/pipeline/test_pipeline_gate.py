"""The gate: every way in which a run can be no evidence is refused, each by its own line."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import tiny_book
import torch
from locked_coin import claims_file, coin, edit, edit_results, laptop_run, stamped

from bnbook.errors import BnbookError
from bookpress import paths, results
from bookpress.claims import load_claims
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, gate, pictures, prose, publishing
from bookpress.pipeline.gate import passed_run
from bookpress.runs import store
from bookpress.site import pages


def edit_notebook(change):
    run = laptop_run()
    notebook = nbformat.read(run.notebook_path, as_version=4)
    change(chapter_runs.ran_cells(notebook))
    nbformat.write(notebook, run.notebook_path)
    edit_results(lambda content: content.update(files=laptop_run().files()))


def edit_text(old, new):
    edit(laptop_run().chapter.path, old, new)


def refused():
    return " | ".join(gate.problems(laptop_run()))


def last(change):
    """A change of the last code cell."""
    return lambda: edit_notebook(lambda cells: change(cells[-1]))


def shows(kind, **more):
    return last(lambda cell: cell.outputs.append(nbformat.v4.new_output(kind, **more)))


def prints(text, name="stdout"):
    return shows("stream", name=name, text=text)


def has(change):
    return lambda: edit_results(change)


def older(content):
    content["fingerprint"]["package"] = "0"
    content["provenance"]["commit"] = "0123456789abcdef"


ALT = next(line for line in tiny_book.CHAPTER.splitlines() if line.startswith(":alt:"))
WARNING = "/tmp/ipykernel_7/8.py:15: UserWarning: Converting a tensor\n  float(x)\n"
MNIST = dict(name="mnist", train=60000, test=10000, shape=[1, 28, 28], sha256="0" * 64, exact=True)
JPEG = dict(name="cifar10-jpeg75", train=50000, test=10000, shape=[3, 32, 32], sha256="0", exact=True)


def data(*rows, **parameters):
    return has(lambda content: content.update(data=rows, parameters=content["parameters"] | parameters))


def hide():
    figures = laptop_run().figures_folder
    (figures / "shares.svg").rename(figures / "other.svg")


def asks(token):
    return lambda: edit_text("{{ verdicts }}", f"{{{{ verdicts }}}} $\\frac{{{{a}}}}{{{{b}}}}$ {token}")


def smoke_for_laptop():
    smoke = chapter_runs.fresh_run(laptop_run().chapter, "smoke")
    for name in ("notebook_path", "results_path"):
        getattr(laptop_run(), name).write_bytes(getattr(smoke, name).read_bytes())


def says(part, name, words):
    return has(lambda content: content[part].update({name: words}))


#: Each change is refused in these words; a cell that is not completed would build green (traps 1 and 3).
REFUSED = [
    *((last(lambda c, s=s: c.metadata.papermill.update(status=s)), f"code cell 2 is {s or 'not run'}, expected completed")
      for s in ("pending", "running", None)),
    *((shows("display_data", data={kind: "<script>alert(1)</script>", "text/plain": "1"}), f"shows {kind}")
      for kind in ("text/html", "application/javascript", "image/svg+xml")),
    *((shows("display_data", data={"text/markdown": f"{text}\nword", "text/plain": "1"}), f"shows {shown!r}; expected words")
      for text, shown in {
          "<b>": "<b", "[a](b.txt)": "](", "![a][b]\n\n[b]: https://x.org/p.png": "]:", "{download}`a`": "}`",
          "```{raw} html\n:file: /etc/hostname\n```": "```{", "> ::: {include} ../a": "::: {", "~~~{eval-rst}": "~~~{"
      }.items()),
    *((shows("display_data", data={kind: f"$x {tex}{{y}}$", "text/plain": "1"}), f"shows {tex!r}; expected words")
      for kind in ("text/markdown", "text/latex") for tex in (r"\href", r"\style", r"\def", r"\require", r"\htmlId")),
    (says("provenance", "kernels", r"$\url{x}$"), "has markup; expected plain words"),
    (says("provenance", "platform", "<img src=x onerror=alert(1)>"), "has markup; expected plain words"),
    (says("provenance", "kernels", "[a](b)"), "has markup; expected plain words"),
    (says("fingerprint", "{download}`a`", "0"), "has markup; expected plain words"),
    (has(lambda content: content["judged"]["coin-fair"].update(verdict="![a](b)")), "has markup; expected plain words"),
    (says("provenance", "platform", "/home/ann/x"), "coin.json carries a local path (/home/a"),
    (has(lambda content: content["provenance"]["versions"].update({"<b>torch": "1"})), "has markup; expected plain words"),
    (has(lambda content: content["data"].append({"name": "</td><script>"})), "has markup; expected plain words"),
    (has(lambda content: content["results"]["heads"].update(note="<i>")), "has markup; expected plain words"),
    (shows("error", ename="ValueError", evalue="no", traceback=[]), "code cell 2 raised ValueError: no"),
    (shows("display_data", data={"image/png": "AAAA"}), "code cell 2 shows a picture lacks an alternative text"),
    (prints("read /home/ann/x.py"), "carries a local path"),
    (prints("read C:\\Users\\ann"), "carries a local path"),
    (prints(WARNING, "stderr"), "a cell prints a warning, mend what it is about: UserWarning: Converting a tensor"),
    (prints("by ann.b@mail.example.org"), "carries a mail address (…@mail.example.org)"),
    (prints("10%\r20%\r"), "progress frames"),
    (has(lambda content: content["results"].pop("heads")), "result 'heads' is missing"),
    (has(lambda content: content["results"]["heads"]["values"].pop()), "result 'heads' has 4 rows for 5 seeds"),
    (has(lambda content: content["results"]["heads"].update(seeds=[0, 0, 1, 2, 3])), "'heads' has 5 rows for 4 seeds"),
    (has(lambda content: content.update(chapter="part/other")), "the results are those of chapter part/other"),
    (has(older), "changed since the run (git diff 0123456789 -- src/bnbook); run it again"),
    (lambda: edit_text(ALT, ":alt: shares"), "figure coin.figures/shares.svg lacks an alternative text"),
    (lambda: edit_text("rate) / tosses", "rate) / tosses + 0"), "the chapter's code cells changed"),
    (lambda: edit_text("tosses: 400", "tosses: 500"), "the laptop parameters changed"),
    (data(MNIST), "data mnist: sha256 is 000", "not what the chapter declares"),
    (data(MNIST | dict(train=59_999, test=9_999)), "mnist: train is 59999, expected 60000", "test is 9999"),
    (data(MNIST | dict(name="digits-standin", train=1437, test=360)), "stand-ins; the laptop profile needs real data"),
    (data(MNIST | dict(name="pictures")), "no set that the book knows"),
    (lambda: edit_text("data: none", "data: [mnist]"), "the run names no data set"),
    (data(JPEG, data="cifar10"), "asked for data cifar10 and rests on cifar10-jpeg75"),
    (data(JPEG, data="cifar10-auto"), "exact is True, expected False", "sha256 is 0"),
    (hide, "nothing draws it", "figure other is drawn but the text does not show it"),
    (smoke_for_laptop, "a smoke run lies among the laptop runs"),
    *((asks(token), f"{token} is not a token") for token in ("{{ mode:heads }}", "{{ 7*7 }}", "{{ Heads }}", "{{mode:heads}}")),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), [(change, words) for change, *words in REFUSED])
def test_each_change_is_refused_in_its_own_words(ran, change, words):
    change()
    found = refused()
    assert [each for each in words if each not in found] == [] and "frac" not in found, found


def a_picture():
    shows("display_data", data={"image/png": "AAAA"})()
    words = {"image": {"alt": "A red line that rises from left to right."}}
    last(lambda cell: cell.metadata.update(mystnb=words))()


def other_words():
    edit_text("Is it fair?", "Is this coin fair?")
    edit_text("use_style()", "use_style()  # the book's look")
    edit_text("seeds = 3  # runs", "seeds = 3  # how many runs")


FORMULAS = r"| $\left(a_{i}\right) \leq \text{x}$ | *b* |" "\n|:---|---:|\n| $x[1]$ | `c` |"
TABLE = shows("display_data", data={"text/markdown": FORMULAS})


@pytest.mark.parametrize("change", [lambda: None, TABLE, a_picture, other_words])
def test_what_may_stand_in_a_run_and_what_may_change_after_it(ran, change):
    change()
    assert gate.problems(laptop_run()) == []


def test_a_figure_that_no_function_draws_is_refused(ran, monkeypatch):
    monkeypatch.setattr(pictures, "told", lambda _: set())
    with pytest.raises(
        BnbookError, match="coin.figures/shares.svg is drawn by a cell alone; expected a function"
    ):
        publishing.publish(coin(), "laptop")


LEAKS = "/Users/ann/x /tmp/x /srv/book/a /data/ann/x /scratch/ann /mnt/d/x /usr/lib/python3/x /Volumes/d/x".split()
LEAKS += "/workspace/x file:///etc/passwd D:/Users/ann C:\\\\Windows\\\\x (/home/a)".split()
FREE = "https://x.org/home/ann [a](/theory/minima.ipynb) a/tmp/b $T:\\\\mathbb_R$ n/data/m 1/2".split()


def test_what_is_a_local_path_and_what_an_address():
    def leak(text):
        return any(pattern.search(text) for pattern in gate.LOCAL_PATHS)

    assert [text for text in LEAKS if not leak(f"read {text}")] == []
    assert [text for text in FREE if leak(text)] == []
    products = ["g = w@x.to(device)", "a@b.T", "w @ x.mean(0)", "a@b.mT[0]", "@functools.cache"]
    assert [text for text in products if gate.ADDRESS.search(text)] == []
    assert gate.ADDRESS.search("<bo@b-c.co.uk>") and gate.ADDRESS.search("a+b@x.io.")


def test_a_number_edited_by_hand(ran):
    run = laptop_run()
    edit(run.notebook_path, "# A coin", "# Another coin")
    assert "coin.ipynb is not the file that the run wrote" in refused()
    whole = json.loads(run.results_path.read_text())
    heads = whole["results"] | {"heads": whole["results"]["heads"] | {"unit": "heads"}}
    parts = ({part: dict.fromkeys(whole[part], "0")} for part in ("claims", "parameters"))
    for edited in ({"results": heads}, *parts):
        run.results_path.write_text(json.dumps(whole | edited))
        assert "coin.json is not the file that the run wrote" in refused()


def test_a_file_that_is_not_whole_is_one_line_of_its_chapter(ran):
    run = laptop_run()
    whole = run.notebook_path.read_text()
    broken = [whole[: len(whole) // 2], "[]", "{}", '{"cells": [1], "metadata": {}}', "[" * 10**5]
    for old, new in (
        ('"outputs": ', '"outs": '),
        ('"tags": [', '"tags": 5, "x": ['),
        ('"papermill": {', '"papermill": [], "x": {'),
    ):
        broken.append(whole.replace(old, new))
    for content in broken:
        run.notebook_path.write_text(content)
        assert refused() == "coin.ipynb is not a whole notebook; run the chapter again"
    run.results_path.write_text("{")
    assert refused() == "laptop/part/coin.json is not a whole results file; run the chapter again"
    paths.executed_folder().mkdir()
    for content, words in (
        ("[", "rewritten.json is no JSON"),
        ('{"a": 1}', "rewritten.json: a is 1; expected a text"),
    ):
        paths.rewritten().write_text(content)
        with pytest.raises(BnbookError, match=words):
            laptop_run().files()
    run.notebook_path.unlink()
    assert refused() == "notebook or results file is missing"


def test_a_claim_that_cannot_be_judged_fails_the_run_that_has_just_ended(ran):
    edit(claims_file(ran), "a: heads", "a: wide")
    wide = {"values": [[1, 2]] * 5, "seeds": [0, 1, 2, 3, 4], "unit": "", "note": ""}
    edit_results(lambda content: content["results"].update(wide=wide))
    found = " ".join(gate.problems(laptop_run(), fresh=True))
    assert "result wide has shape (5, 2); expected one number per seed" in found


def test_what_the_gate_refuses_is_neither_shown_nor_rendered(ran, tmp_path):
    chapter = laptop_run().chapter
    published = publishing.publish(chapter, "laptop")
    assert passed_run(chapter) == published
    # such as a run with --seeds 1, copied there
    stamped(published, lambda content: content.update(default_parameters=False))
    words = "made with other parameters than the profile's"
    assert words in publishing.executed_problems([chapter])["laptop/part/coin"]
    assert passed_run(chapter) is None
    edit_notebook(lambda cells: cells[-1].metadata.papermill.update(status="failed"))
    with pytest.raises(
        BnbookError, match="laptop run of part/coin does not pass the gate: code cell 2 is failed"
    ):
        pages.stage(tmp_path / "a", "laptop")


def test_the_gate_is_asked_again_when_anything_that_it_reads_has_changed(ran, monkeypatch):
    """Among that the lists of the package, such as of known data sets, and the home folder, whose path no run may carry."""
    chapter = laptop_run().chapter
    publishing.publish(chapter, "laptop")
    assert not [*(ran / "executed").rglob("*.svg")], "what a function draws is not published"
    package, asked, problems = ran / "package", [], gate.problems
    package.mkdir()
    monkeypatch.setenv("BNBOOK_CACHE", str(ran / "cache"))
    monkeypatch.setattr(gate, "folders", lambda: {"package": package})
    monkeypatch.setattr(gate, "problems", lambda evidence: asked.append(1) or problems(evidence))

    def is_asked():
        count = len(asked)
        gate.code_here.cache_clear()
        passed_run(coin())
        return len(asked) > count

    assert is_asked() and not is_asked() and passed_run(chapter)
    part, held = ran / "book" / "part", chapter_runs.published(chapter, "laptop")
    files = [
        part / "coin.md",
        part / "coin.claims.yml",
        part / "_settings.yml",
        package / "known.yml",
        package / "a.py",
    ]
    for path in (*files, held.notebook_path):
        path.write_text((path.read_text() if path.exists() else "") + "\n")
        assert is_asked() and not is_asked(), path
    assert passed_run(chapter) is None, "the notebook is not the one that the run wrote"
    edit(held.results_path, '"unit": "share"', '"unit": "shares"')
    assert is_asked()
    (package / "notes.txt").write_text("x")
    assert not is_asked()
    monkeypatch.setenv("HOME", str(ran))
    assert is_asked()
    gate.code_here.cache_clear()


@pytest.mark.parametrize("judged", ["laptop", "paper"])
def test_a_smoke_run_records_what_only_the_laptop_is_judged_by(ran, judged):
    smoke = lambda: gate.problems(chapter_runs.fresh_run(coin(), "smoke"))
    assert smoke() == []
    also = "- id: coin-draws\n  source: everywhere\n  says: It is drawn.\n  figure: shares\n"
    also += f"  evidence: [{judged}]\n  test: {{kind: level, a: tries, expected: 0.5, tolerance: 9.0}}\n"
    claims_file(ran).write_text(claims_file(ran).read_text() + also)
    missing = "result 'tries' is missing; the text or a claim needs it"
    assert (missing in smoke()) == (judged == "laptop")
    assert not any("tries" in line for line in gate.problems(laptop_run())) or judged == "laptop"


UNFIT = [
    (lambda content: content["provenance"].update(dirty=True), "made from uncommitted code"),
    (lambda content: content.update(default_parameters=False), "its own parameters"),
    (lambda content: content.update(results={}), "does not pass the gate: result 'heads' is missing"),
]


def test_publish_takes_only_passed_default_laptop_or_paper_runs(ran):
    chapter = coin()
    published = publishing.publish(chapter, "laptop")
    assert published.exists and gate.problems(published) == []
    assert publishing.executed_problems([chapter]) == {"laptop/part/coin": []}
    with pytest.raises(BnbookError, match="no paper run"):
        publishing.publish(chapter, "paper")
    before, whole = published.results_path.read_bytes(), laptop_run().results_path.read_bytes()
    for change, words in UNFIT:
        laptop_run().results_path.write_bytes(whole)
        edit_results(change)
        with pytest.raises(BnbookError, match=words):
            publishing.publish(chapter, "laptop")
    assert published.results_path.read_bytes() == before
    (published.folder / "stray.txt").write_text("x")
    stray = ["laptop/stray.txt belongs to no chapter; remove it"]
    assert publishing.executed_problems([chapter])["executed"] == stray


def test_trainings_that_a_run_keeps_are_published_with_it(ran, monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "store"))
    chapter, about = laptop_run().chapter, {"arm": {"norm": "batch"}, "seed": 0, "code": "c"}
    names = [store.key(about | {"seed": seed}) for seed in (0, 1)]
    edit_results(lambda content: content["provenance"].update(store={"kept": names[:1]}))
    with pytest.raises(BnbookError, match="not in the results store"):
        publishing.publish(chapter, "laptop")
    store.write(names[0], {"loss": np.ones(2)}, seconds=1.0, about=about | {"seed": 1})
    with pytest.raises(BnbookError, match="not what its name says"):
        publishing.publish(chapter, "laptop")
    for seed, name in enumerate(names):
        store.write(name, {"loss": np.ones(2)}, seconds=1.0, about=about | {"seed": seed})
    publishing.publish(chapter, "laptop")
    assert publishing.executed_problems([chapter]) == {"laptop/part/coin": []}
    kept = paths.trainings_folder() / f"{names[0]}.npz"
    (kept.parent / f"{names[1]}.npz").write_bytes(kept.read_bytes())
    assert "belongs to no published run" in publishing.executed_problems([chapter])["trainings"][0]
    publishing.publish(chapter, "laptop")  # tidies up
    kept.write_bytes(kept.read_bytes()[:-9])
    assert "no whole training" in publishing.executed_problems([chapter])["trainings"][0]
    kept.unlink()
    assert "missing" in publishing.executed_problems([chapter])["trainings"][0]


def test_published_results_that_cannot_be_read_are_one_problem_among_others(ran, monkeypatch, capsys):
    publishing.publish(laptop_run().chapter, "laptop")
    results_file = paths.executed_folder() / "laptop" / "part" / "coin.json"
    whole = results_file.read_bytes()
    (paths.executed_folder() / "stray").touch()
    results_file.write_bytes(whole[: len(whole) // 2])
    training = paths.trainings_folder() / f"{'0' * 64}.npz"
    training.parent.mkdir(exist_ok=True)
    training.touch()
    assert main(["check"]) == 1
    said = capsys.readouterr().out
    assert "BAD laptop/part/coin\n      laptop/part/coin.json is not a whole results file" in said
    assert "stray belongs to no chapter" in said and "ok  1 errata" in said
    assert "BAD trainings\n      which of them are kept cannot be told: laptop/part/coin.json" in said
    publishing.tidy()
    assert training.exists()
    results_file.write_bytes(whole)
    publishing.tidy()
    assert not training.exists()


def test_runs_made_with_other_versions_than_the_lock_are_noticed(ran, capsys):
    publishing.publish(laptop_run().chapter, "laptop")
    lock = ran / "requirements.lock"
    made = laptop_run().results.header["provenance"]["versions"]
    lock.write_text(f"numpy=={made['numpy']}\ntorch=={made['torch']}+cpu ; sys_platform == 'linux'\n")
    assert main(["check"]) == 0 and "note" not in capsys.readouterr().out
    lock.write_text("numpy==1.0.0 ; python_version < '3'\nnumpy==1.0.1\nnumpydoc==1.8\n")
    assert main(["check"]) == 0
    words = f"numpy {made['numpy']} (locked: 1.0.0, 1.0.1)"
    assert f"note laptop/part/coin was made with {words}" in capsys.readouterr().out
    pages.stage(ran / "pages", "laptop")
    assert f"| Not as locked | {words} |" in (ran / "pages" / "provenance.md").read_text()


TAILS = "{{ mean:part/coin#tails }}"
ASKING = [("errata.yml", TAILS), ("index.md", TAILS), ("part/coin.md", "{{ verdict:coin-unfair }}"),
          ("part/coin.md", "{{ times:heads / draws | .2q }}")]  # fmt: skip


@pytest.mark.parametrize(("name", "token"), ASKING)
def test_a_page_that_asks_for_what_does_not_exist_is_found(ran, capsys, name, token):
    publishing.publish(laptop_run().chapter, "laptop")
    assert main(["check"]) == 0 and "pages beside the chapters" in capsys.readouterr().out
    path = ran / "book" / name
    asked, text = f"Fell {token} times.", path.read_text()
    path.write_text(re.sub("why: .*", f"why: {asked}", text) if "why: " in text else f"{text}\n{asked}\n")
    assert main(["check"]) == 1
    assert f"BAD pages\n      token {token} on page" in capsys.readouterr().out


def test_what_a_run_with_other_parameters_lacks_is_said_on_its_page(ran):
    """The site of one's own runs is built all the same; a default run without it fails."""
    text = "{{ ci:heads | .1% }}; {{ times:heads / draws }}; {{ n:draws }}"

    def filled():
        pages = prose.Pages({"part/coin": laptop_run()}, load_claims())
        return prose.fill(text, "part/coin", pages)

    edit_results(lambda content: content["results"].pop("heads"))
    with pytest.raises(BnbookError, match="recorded no result 'heads'"):
        filled()
    edit_results(lambda content: content.update(default_parameters=False))
    assert filled() == "(not in this run); (not in this run); 5"


def test_what_is_large_or_lies_beside_the_files_of_a_run(tmp_path):
    path = tmp_path / "coin.ipynb"
    for size, lines in ((2 * 2**20, 0), (2 * 2**20 + 1, 1)):
        path.write_bytes(b" " * size)
        assert len(list(gate.size(SimpleNamespace(notebook_path=path)))) == lines
    header = {"files": {"a.ipynb": "1", "b.ipynb": "2", "drawn.figures/c.svg": "2"}}
    recorded = results.Results(header, {})
    header["content"] = gate.content_digest(recorded)
    held = SimpleNamespace(
        results=recorded, files=lambda: {"a.ipynb": "1", "b.ipynb": "3"}, results_path=path, is_published=True
    )
    assert [line.split()[0] for line in gate.unaltered(held)] == ["b.ipynb"], "a drawing may be gone"


def test_evidence_that_is_refused_is_said_and_fails_a_build_and_a_listing(ran, monkeypatch, capsys):
    published = publishing.publish(laptop_run().chapter, "laptop")
    built = []
    monkeypatch.setattr("bookpress.site.build.build", lambda *_: built.append(1) or ran / "index.html")
    for well in (True, False):
        for words in (["claims"], ["claims", "coin"], ["build"]):
            assert main(words) == (0 if well else 1)
            assert main([*words, "--anyway"]) == 0
            said = capsys.readouterr().err
            assert well or said.startswith(
                "BAD laptop/part/coin does not pass the check and is not shown: coin.json is not"
            )
        published.results_path.write_text(published.results_path.read_text().replace('"share"', '"x"'))
    assert len(built) == 3, "what is refused is said before minutes of drawing"
    published.notebook_path.unlink()
    assert main(["claims"]) == 1 and "notebook or results file is missing" in capsys.readouterr().err


def test_a_header_that_jupytext_rewrote_is_named(ran, capsys):
    edit_text("    format_name: myst\n", "    format_name: myst\n    format_version: 0.13\n")
    assert (
        main(["check"]) == 1 and "BAD headers\n      part/coin: jupytext rewrote" in capsys.readouterr().out
    )


def test_the_header_tells_processors_apart_whose_products_round_otherwise(monkeypatch):
    here = gate.kernels()
    assert re.search(r"; products [0-9a-f]{8}(;|$)", here) and gate.kernels() == here
    product = torch.Tensor.__matmul__
    monkeypatch.setattr(
        torch.Tensor, "__matmul__", lambda a, b: torch.nextafter(product(a, b), torch.tensor(9.0).to(a))
    )
    assert gate.kernels() != here


def test_a_page_that_is_made_for_a_stand_in_may_use_it(ran):
    data(MNIST | dict(name="digits-standin", train=1437, test=360))()
    edit_text("data: none", "data: [digits-standin]")
    assert "stand-ins" not in refused()
