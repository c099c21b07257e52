"""What people ask: each question has its six parts, and each sentence that it quotes is what `measure` says of a
network that has the fault."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import ROOT
from test_report_diagnosis import batch, network, said
from torch import nn
from torch.utils.data import TensorDataset

from bookpress.book import chapter_names

PAGE = (ROOT / "book" / "asked.md").read_text(encoding="utf-8")
QUESTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"^## ", PAGE, flags=re.M)[1:]
}
QUOTED = {title: re.findall("“([^”]+)”", body) for title, body in QUESTIONS.items()}


def found(title: str, *reports) -> None:
    """Every sentence that is quoted under a question, its gaps filled by anything, stands in a report."""
    told = [text for report in reports for text in (*(s.says for s in report.diagnosis), *report.warnings)]
    for sentence in QUOTED[title]:
        pattern = ".+".join(re.escape(part.strip()) for part in sentence.split("…"))
        assert any(re.search(pattern, text) for text in told), (sentence, told)


def test_no_measured_number_is_typed():
    """What stands outside tokens, links, code and formulas are settings, names and counts of words."""
    text = re.sub(r"^```(python$.*?^```)?", "", PAGE, flags=re.M | re.S)
    bare = re.sub(r"\{\{.*?\}\}|\]\([^)]*\)|`[^`]*`|\$[^$]*\$|\[[^\]]*#\d+", " ", text)
    settings = set("0 1 2 4 5 8 10 32 0.1 0.5 0.9".split())
    assert set(re.findall(r"(?<![\w.])\d[\d.,]*\d|(?<![\w.])\d", bare)) <= settings


def test_every_question_has_its_parts_and_names_a_chapter():
    assert len(QUESTIONS) == 7 and all(title.endswith("?") for title in QUESTIONS)
    chapters = chapter_names()
    for title, body in QUESTIONS.items():
        for part in ("What people see.", "What to do.", "How it is found.", "Where it is shown."):
            assert body.count(f"**{part}**") == 1, (title, part)
        shown = body.partition("**Where it is shown.**")[2]
        assert any(f"(/{name}.ipynb)" in shown for name in chapters), title
        assert re.search(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", body), title


def test_two_modes():
    found("Why is it good in training and bad in evaluation?", said(network(seen=2)))


def test_small_batches():
    x, y = batch()
    found("What if only a small batch fits?", said(network(), (x[:8], y[:8])))


def test_blowing_up():
    deep = said(network(depth=12, width=24))
    found("Why does it blow up without batch norm?", said(network(), learning_rate=50.0), deep)


def test_decay_and_freezing():
    model = network()
    every = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4)
    still = said(network().eval())
    found("Should γ and β decay? And is a frozen layer frozen?", said(model, optimizer=every), still)


@pytest.mark.parametrize("still", [False, True])
def test_what_is_frozen_by_gradient_only_moves(still):
    """As the page says: the averages move in training mode, whether or not a gradient is asked for."""
    layer, x = nn.BatchNorm1d(6).double().requires_grad_(False), batch()[0]
    layer.train(not still)
    before, alone = layer.running_mean.clone(), layer(x[:8])
    assert torch.equal(before, layer.running_mean) == still
    assert torch.allclose(alone, layer(x)[:8]) == still, "in training it still looks at the batch"


def test_settings():
    model = network(momentum=0.9)
    with torch.no_grad():
        model[0].weight.mul_(1e-3)
    for _ in range(200):
        model(batch()[0])
    found("Before or after the ReLU? Which momentum, which ε?", said(model, learning_rate=1e-9))


def test_the_code_runs_and_does_what_is_said(capsys):
    """The blocks, in their order, on a small network in place of the reader's."""
    torch.manual_seed(0)
    convolution = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()]
    model = nn.Sequential(*convolution, nn.Linear(8 * 900, 32), nn.BatchNorm1d(32), nn.Linear(32, 10))
    data = TensorDataset(3 * torch.randn(1100, 3, 32, 32), torch.randint(10, (1100,)))
    images, targets = data[:2]
    room = {"torch": torch, "nn": nn, "model": model, "training_set": data, "loss": nn.CrossEntropyLoss()}
    room |= {"images": images, "targets": targets, "optimizer": torch.optim.SGD(model.parameters(), lr=0.5)}
    blocks = {
        title: re.search("^```python\n(.*?)^```", body, re.M | re.S)[1] for title, body in QUESTIONS.items()
    }
    for title, block in blocks.items():
        exec(compile(block, title, "exec"), room)
        if "update_bn" in block:
            assert model[1].num_batches_tracked == 31
        if "GroupNorm" in block:
            assert re.findall(r"(\d+) values", capsys.readouterr().out) == ["1800", "2"]
            assert isinstance(model[5], nn.GroupNorm)
        if "deepcopy" in block:
            assert room["optimizer"].param_groups[0]["lr"] == 0.05
            before, after = map(float, capsys.readouterr().out.split("->"))
            assert after < before and room["last"] is not model[6]
    assert [len(group["params"]) for group in room["groups"]] == [8, 2]
    assert not model[1].training and model.training and not model[1].weight.requires_grad
    assert all(float(number) > 0 for number in capsys.readouterr().out.split())
