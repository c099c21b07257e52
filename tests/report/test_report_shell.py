"""`bnbook measure` from a shell: somebody else's files are read as their owner's programs would be."""

from __future__ import annotations

import argparse
import json
import os
import sys

import matplotlib
import numpy as np
import pytest
import torch
from torch import nn

from bnbook import cli, data
from bnbook.errors import BnbookError
from bnbook.report import command, foreign

HEAD = "import torch\nfrom torch import nn\n"
MAKE = "def make(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"


def run(*words, show=lambda _: None, quick=("--no-eigenvalues",)):
    parser = argparse.ArgumentParser()
    cli.add_measure_arguments(parser)
    return command.report(parser.parse_args([*words, *quick]), show)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(said, *words):
    with pytest.raises(BnbookError, match=said) as caught:
        run(*words)
    assert "\n" not in str(caught.value)


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('INIT', '__init__')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)


DIGITS = ("--data", "digits-standin", "--batch", "16")


def test_neighbours_packages_and_modules(here):
    write(here, parts=MAKE, nets="from parts import make\n")
    write(here / "kit", INIT="from .layers import make\n", layers=MAKE, relative="from .layers import make\n")
    write(here / "my-kit", INIT="from .layers import make\n", layers=MAKE)
    write(here / "loose", layers=MAKE, relative="from .layers import make\n", base=MAKE)
    write(here / "loose" / "models", one="from ..base import make\n")
    write(here / "deep", helper="WIDTH = 10\n")
    write(here / "deep" / "models", one=f"from helper import WIDTH\n{MAKE}")
    before = list(sys.path), set(sys.modules)
    losses = {
        run(f"{name}:make", *DIGITS).loss
        for name in (
            "nets.py", "nets", "kit/__init__.py", "kit", "kit/relative.py", "kit.layers", "loose/relative.py",
            "deep/models/one.py", "loose/models/one.py", "my-kit/__init__.py",
        )
    }  # fmt: skip
    assert len(losses) == 1  # one seed, one network
    assert sys.path == before[0]
    assert not {"parts", "nets", "kit", "kit.layers", "helper", "one"} & set(sys.modules)


def test_a_class_an_instance_and_a_module_that_is_registered(here):
    text = (
        f"{MAKE}class Net(nn.Sequential):\n    def __init__(self): super().__init__(*make())\nnet = make()\n"
    )
    text += "import dataclasses, sys\n@dataclasses.dataclass\nclass Out:\n    logits: 'torch.Tensor'\n"
    text += "class Wrapped(Net):\n    def forward(self, x): return Out(super().forward(x))\n"
    text += "assert sys.modules[__name__].Out is Out and sys.argv[1:] == []\n"
    write(here, nets=text)
    assert run("nets.py:Net", *DIGITS).loss == run("nets.py:make", *DIGITS).loss
    assert run("nets.py:net", *DIGITS).effective_smoothness > 0
    assert run("nets.py:Wrapped", *DIGITS, "--output", "logits").loss == run("nets.py:Net", *DIGITS).loss
    refused("gives, a Out.*output=", "nets.py:Wrapped", *DIGITS)


def test_two_factories_of_one_name_are_told_apart(here):
    for folder in ("a", "b"):
        parts = f"def last(): return nn.Linear(64, 10, bias={folder == 'a'})\n"
        write(
            here / folder,
            parts=parts,
            net="from parts import last\ndef make(): return nn.Sequential(nn.Flatten(), last())\n",
        )
    report = run("a/net.py:make", "--beside", "b/net.py:make", *DIGITS)
    assert (report.name, report.beside.name) == ("a/net.py:make", "b/net.py:make")
    assert report.loss != report.beside.loss  # each has its own neighbour
    assert run("a/net.py:make", "--beside", "a/net.py:make", *DIGITS).beside.name == "a/net.py:make (2)"


def test_weights_in_other_boxes_under_other_words(here):
    write(here, nets=MAKE)
    torch.manual_seed(5)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    wanted = model.state_dict()
    backbone = {f"backbone.{key}": value for key, value in wanted.items()}
    inputs, labels = command.read_batch("digits-standin", 16)
    loss = float(nn.functional.cross_entropy(model(inputs), labels).detach())
    average = {key: value + 1.0 for key, value in wanted.items()}
    other = {"teacher.1.weight": wanted["1.weight"], "teacher.1.bias": wanted["1.bias"]}
    for content in (
        wanted,
        {"epoch": 3, "params": wanted},
        {"model": wanted, "ema": average},
        {"state_dict": {**backbone, "of_the_loss": torch.ones(2)}},
    ):
        torch.save(content, "weights.pt", _use_new_zipfile_serialization=content is not wanted)
        found = run("nets.py:make", *DIGITS, "--weights", "weights.pt")
        assert found.loss == pytest.approx(loss)
    before = {key: value.clone() for key, value in wanted.items()}
    for content, words in (
        ({"one": wanted, "other": wanted}, "several sets of weights that fit .one, other."),
        ({**other, **backbone}, "several sets"),
        (model, "other objects than tensors .*torch.save.model.state_dict"),
        ({**wanted, "1.bias": torch.ones(5)}, r"1.bias of shape \(5,\) where the network has \(10,\)"),
        ({**wanted, "2.bias": torch.ones(5)}, "has 2.bias"),
        ({"1.weight": wanted["1.weight"]}, "lacks 1.bias"),
        (torch.ones(3), "expected a state dict"),
        ("epoch 3: see the log", "weights.pt is no file that torch.save wrote"),
        (None, "cannot"),
    ):
        if isinstance(content, str):
            (here / "weights.pt").write_text(content)
        else:
            torch.save(content, "weights.pt")
        file = "weights.pt" if content is not None else "no.pt"
        with pytest.raises(BnbookError, match=words) as caught:
            foreign.load_weights(model, file)
        assert "\n" not in str(caught.value)
        assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


NETS = f"""{MAKE}
def normed(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 10))
def small(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 5))
def flat(): return nn.Linear(64, 10)
def one(): return nn.Linear(64, 1)
def broken(): return nn.Linear("a", 1)
def own(outputs, targets): return (outputs ** 2).mean()
class Own(nn.Module):
    def forward(self, outputs, targets): return own(outputs, targets)
class Bye(nn.Sequential):
    def __init__(self): super().__init__(flat())
    def forward(self, x): raise SystemExit(0)
def bye(outputs, targets): raise SystemExit(3)
"""


def test_a_network_beside_another_with_its_table_and_its_figure(here):
    write(here, nets=NETS)
    words = ("nets.py:normed", "--beside", "nets.py:make", "--data", "digits-standin", "--batch", "32")
    with matplotlib.rc_context({"text.usetex": True, "svg.fonttype": "none"}):  # a user's own style
        report = run(*words, "--json", "r.json", "--figure", "r.svg", quick=())
    assert report.examples == 32 and report.name == "normed" and report.beside.name == "make"
    assert json.loads((here / "r.json").read_text())["loss"] == report.loss and report.eigenvalues.batch > 0
    drawn = (here / "r.svg").read_text()
    assert drawn.startswith("<?xml") and "<text" not in drawn
    torch.save({"inputs": torch.randn(20, 64), "targets": torch.arange(20) % 10}, "batch.pt")
    again = run("nets.py:make", "--data", "batch.pt")
    assert again.examples == 20 and again.eigenvalues is None


def test_several_batches_of_a_data_set_and_of_ones_own_loader_and_a_page(here):
    pairs = "def pairs(): return [(torch.ones(8, 1, 8, 8) * k, torch.arange(8) % 10) for k in (1.0, 2.0)]\n"
    endless = "def endless():\n    while True: yield from pairs()\n"
    write(here, nets=f"{MAKE}{pairs}{endless}rest = pairs()\n")
    (here / "page").mkdir()
    report = run("nets.py:make", *DIGITS, "--batches", "3", "--html", "page/r.html")
    assert len(report.batches.losses) == 3 and report.examples == 16
    assert "noise scale" in (here / "page" / "r.html").read_text()
    for name in ("pairs", "rest"):
        own = run("nets.py:make", "--data", f"nets.py:{name}")
        assert own.examples == 8 and len(own.batches.losses) == 2
    for words, count in (((), 16), (("--batches", "3"), 3)):
        found = run("nets.py:make", "--data", "nets.py:endless", *words)
        assert len(found.batches.losses) == count


def test_a_batch_of_a_data_set_is_of_its_training_images_and_says_how_they_are_scaled(here):
    write(here, nets=MAKE)
    dataset = data.load("digits-standin")
    inputs, labels = command.read_batch("digits-standin", 16)
    assert torch.equal(inputs, data.normalise(dataset.train_images[:16], dataset))
    assert torch.equal(labels, dataset.train_labels[:16])
    report = run("nets.py:make", *DIGITS)
    moments = f"mean {inputs.mean():.3g} and standard deviation {inputs.std(correction=0):.3g}"
    assert "digits-standin as (x / 255 - mean) / std" in report.data
    assert report.data.endswith(f"16 of shape (1, 8, 8), {moments}") and report.data in report.table()
    made = run("nets.py:make", "--input-shape", "1,8,8").data
    assert made.startswith("normal random numbers: 64 of shape (1, 8, 8), mean")


def test_shapes_and_own_losses(here):
    write(here, nets=NETS)
    made = run("nets.py:small", "--input-shape", "3,8,8", "--batch", "16")
    assert made.examples == 16 and made.effective_smoothness > 0
    assert run("nets.py:flat", *DIGITS, "--input-shape", "64").loss > 0
    flat = "nets.py:flat", "--input-shape", "64", "--loss"
    one, other = (run(*flat, f"nets.py:{name}") for name in ("own", "Own"))
    assert one.loss == other.loss > 0


BAD_WORDS = {
    "nets.py:nothing {digits}": "no function 'nothing'",
    "nets.py:broken {digits}": "broken fails: TypeError",
    "missing.py:make {digits}": "no file 'missing.py'",
    "nets.py {digits}": "'nets.py' names no function",
    "nets.py:make --data textures-standin": r"inputs \(64, 3, 32, 32\) of float32.*RuntimeError",
    "nets.py:make {digits} --loss mse": "targets .* expected .* --loss",
    "nets.py:one --data column.npz --loss mse": r"outputs \(8, 1\) and targets \(8,\)",
    "nets.py:make --data words.npz": "words.npz holds no pair of arrays of numbers",
    "nets.py:make --data nowhere.pt": "nowhere.pt cannot be read",
    "nets.py:make --data nowhere.pth": "'nowhere.pth'; expected FILE.pt, FILE.npz, FILE.py:LOADER or one of mnist",
    "nets.py:make --data nets.py:none": "has no .*'none'",
    f"nets.py:make {{digits}} --seed {2**70}": "--seed 1180591620717411303424; exp",
    "nets.py:flat {digits} --input-shape 63": "expected as many numbers",
    "nets.py:flat --input-shape a,b": "expected the shape of one example",
    "nets.py:flat": "neither --data nor --input-shape",
    "nets.py:flat --input-shape 63": "does not take inputs",
    "nets.py:flat {digits} --loss hinge": "or FILE.py:FUNCTION",
    "nets.py:make {digits} --batches 0": "--batches 0; expected 1 to 16",
    "nets.py:make {digits} --batches 17": "--batches 17; expected 1 to 16",
    "nets.py:Bye {digits}": r"the network ends the program in a pass \(sys.exit\(0\)\)",
    "nets.py:Bye --input-shape 64": r"the network ends the program in a pass \(sys.exit\(0\)\)",
    "nets.py:make {digits} --loss nets.py:bye": r"the loss ends the program in a pass \(sys.exit\(3\)\)",
}


def test_bad_words_are_one_clear_line(here):
    write(here, nets=NETS)
    np.savez("column.npz", inputs=np.ones((8, 64), np.float32), targets=np.ones(8, np.float32))
    np.savez("words.npz", inputs=np.array(["a", "b"]), targets=np.array([0, 1]))
    for words, said in BAD_WORDS.items():
        refused(said, *words.format(digits=" ".join(DIGITS)).split())
    assert tuple(command.LOSSES) == cli.LOSSES


ONE = "w = torch.ones(1, requires_grad=True)\n"
PARSER = "import argparse\np = argparse.ArgumentParser()\n"


@pytest.mark.parametrize(("text", "said"), [
    ("import sys\nsys.exit(0)\n", r"ends the program while it is read.*__main__.*sys.exit\(0\)"),
    (f"{ONE}try: w.sum().backward()\nexcept Exception: pass\n", "trains while it is read; put what runs under"),
    (f"{ONE}w.grad = w.detach()\ntorch.optim.SGD([w], 0.1).step()\n", "trains while it is read"),
    (f"{PARSER}p.add_argument('--data', required=True); p.parse_args()\n", "ends the program while it is read"),
    ("import nowhere_at_all\n", "cannot be read: ModuleNotFoundError"),
    ("class Odd(BaseException): pass\nraise Odd('so')\n", "cannot be read: Odd: so"),
])  # fmt: skip
def test_scripts_are_stopped_with_a_line_that_helps(here, capsys, text, said):
    write(here, script=text + MAKE)
    refused(said, "script.py:make", *DIGITS)
    assert capsys.readouterr().err == ""
    w = torch.ones(1, requires_grad=True)
    w.sum().backward()  # what stops a script is taken back
    torch.optim.SGD([w], 0.1).step()
    assert float(w) == pytest.approx(0.9)


def test_a_file_that_reads_its_words_goes_elsewhere_or_takes_the_output_leaves_all_as_it_was(here, capsys):
    (here / "away").mkdir()
    away = "import os, sys\nos.chdir('away'); sys.stdout = open(os.devnull, 'w')\n"
    write(here, nets=f"{PARSER}p.add_argument('--lr', default=0.1); opt = p.parse_args()\n{away}{MAKE}")
    argv = list(sys.argv)
    assert cli.main(["measure", "nets.py:make", *DIGITS, "--no-eigenvalues", "--json", "r.json"]) == 0
    assert "loss of the batch" in capsys.readouterr().out
    assert (here / "r.json").is_file() and os.getcwd() == str(here) and sys.argv == argv


def test_neither_file_nor_table_nor_figure_costs_the_others(here, monkeypatch):
    write(here, nets=MAKE)
    words = ("nets.py:make", *DIGITS, "--json", "r.json")

    def fails(error):
        def fail(*_):
            raise error

        return fail

    shown = []
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(command.atomic, "write_bytes", fails(OSError("full")))
        run(*words, show=shown.append)
    assert len(shown) == 1
    with pytest.raises(BrokenPipeError):
        run(*words, show=fails(BrokenPipeError()))
    assert json.loads((here / "r.json").read_text())["loss"] == shown[0].loss
    (here / "r.json").unlink()
    monkeypatch.setattr(command, "_draw", fails(BnbookError("no ink")))
    with pytest.raises(BnbookError, match="no ink"):
        run(*words, "--figure", "r.svg", show=shown.append)
    assert json.loads((here / "r.json").read_text())["loss"] == shown[1].loss


def test_places_are_found_before(here, monkeypatch):
    write(here, nets=MAKE)
    (here / "taken").mkdir()
    monkeypatch.setattr(command, "measure", lambda *_, **__: pytest.fail("measured"))
    os.mkfifo("pipe")
    for words, said in (
        ("--json taken", "cannot be written"),
        ("--figure nets.py/r.svg", "cannot be written"),
        ("--json pipe", "cannot be written"),
        ("--json no/folder/r.json", "no/folder/r.json cannot be written: there is no folder"),
        ("--figure x.gif", "expected .svg"),
        ("--json r.svg --figure ./r.svg", "both name 'r.svg'"),
    ):
        refused(said, "nets.py:make", *DIGITS, *words.split())
    assert not (here / "no").exists()


def test_interrupted_it_promises_nothing(here, capsys):
    write(here, nets="def make(): raise KeyboardInterrupt\n")
    assert cli.main(["measure", "nets.py:make", *DIGITS]) == 130
    assert capsys.readouterr().err == "\nbnbook: interrupted\n"
