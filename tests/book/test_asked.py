"""What people ask: each sentence that the page quotes is what `measure` says of a network that has the fault, and its code
runs and does what is said."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import ROOT
from test_report_diagnosis import batch, network, said
from torch import nn
from torch.utils.data import TensorDataset

PAGE = (ROOT / "book" / "asked.md").read_text(encoding="utf-8")
QUESTIONS = dict(
    part.partition("\n")[::2] for part in re.split(r"^## (?=.*\?$)", PAGE, flags=re.MULTILINE)[1:]
)


def unsettled():
    """Averages that are young, of a first layer that is nearly nothing."""
    model = network(momentum=0.9)
    with torch.no_grad():
        model[0].weight.mul_(1e-3)
    for _ in range(200):
        model(batch()[0])
    return said(model, learning_rate=1e-9)


def decaying():
    model = network()
    return said(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4))


REPORTS = {
    "Why is it good in training and bad in evaluation?": [lambda: said(network(seen=2))],
    "What if only a small batch fits?": [lambda: said(network(), tuple(each[:8] for each in batch()))],
    "Why does it blow up without batch norm?": [
        lambda: said(network(), learning_rate=50.0),
        lambda: said(network(depth=12, width=24)),
    ],
    "Should γ and β decay? And is a frozen layer frozen?": [decaying, lambda: said(network().eval())],
    "Before or after the ReLU? Which momentum, which ε?": [unsettled],
}


@pytest.mark.parametrize("title", REPORTS)
def test_what_the_page_quotes_stands_in_a_report(title):
    reports = [made() for made in REPORTS[title]]
    told = [text for report in reports for text in (*(s.says for s in report.diagnosis), *report.warnings)]
    quoted = re.findall("“([^”]+)”", QUESTIONS[title])
    for sentence in quoted:  # its gaps are filled by anything
        pattern = ".+".join(re.escape(part.strip()) for part in sentence.split("…"))
        assert any(re.search(pattern, text) for text in told), (sentence, told)
    assert quoted


@pytest.mark.parametrize("still", [False, True])
def test_what_is_frozen_by_gradient_only_moves(still):
    """As the page says: the averages move in training mode, whether or not a gradient is asked for."""
    layer, x = nn.BatchNorm1d(6).double().requires_grad_(False), batch()[0]
    layer.train(not still)
    before, alone = layer.running_mean.clone(), layer(x[:8])
    assert torch.equal(before, layer.running_mean) == still
    assert torch.allclose(alone, layer(x)[:8]) == still, "in training it still looks at the batch"


def test_the_code_runs_and_does_what_is_said(capsys):
    """The blocks, in their order, on a small network in place of the reader's."""
    torch.manual_seed(0)
    convolution = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()]
    model = nn.Sequential(*convolution, nn.Linear(8 * 900, 32), nn.BatchNorm1d(32), nn.Linear(32, 10))
    data = TensorDataset(3 * torch.randn(1100, 3, 32, 32), torch.randint(10, (1100,)))
    images, targets = data[:2]
    room = {"torch": torch, "nn": nn, "model": model, "training_set": data, "loss": nn.CrossEntropyLoss()}
    room |= {"images": images, "targets": targets, "optimizer": torch.optim.SGD(model.parameters(), lr=0.5)}
    blocks = re.findall("^```python\n(.*?)^```", PAGE, re.M | re.S)
    assert len(blocks) == len(QUESTIONS) == 7
    for block in blocks:
        exec(compile(block, "asked", "exec"), room)
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
