"""Batch norm in other libraries: the probes' heads, the questions against torch in float64, torch's own answers."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from bnbook.chapters import asked, libraries
from bnbook.errors import BnbookError

ROOT = Path(__file__).resolve().parents[2]
MODULES = {path.stem for path in libraries.FOLDER.glob("in_*.py")}


def loaded(name: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(libraries.FOLDER)
        return importlib.import_module(name)


QUESTIONS = loaded("questions")


def test_each_module_is_asked_and_each_class_that_is_asked_is_there():
    named = {(each.module, what) for each in libraries.LIBRARIES.values() for what in (each.layer, each.net)}
    assert {module for module, _ in named} == MODULES - {"in_keras"}  # a base
    for module, what in named:
        text = (libraries.FOLDER / f"{module}.py").read_text("utf-8")
        assert not what or re.search(rf"^class {what}[(:]", text, re.MULTILINE), (module, what)
    assert len(libraries.CARRIED) >= 8 and len(libraries.LIBRARIES) >= 18
    assert set(libraries.BY_NAME) < set(libraries.LIBRARIES)


@pytest.fixture(scope="module")
def torch_answers():
    answers, missing = libraries.ask(["torch"])
    assert not missing
    return answers


def test_torch_answers_as_its_documentation_says(torch_answers):
    answers = torch_answers["torch"]["answers"]
    assert libraries.epsilon(torch_answers["torch"]) == pytest.approx(1e-5, rel=1e-4)
    np.testing.assert_allclose(answers["weights"]["new"], 0.1, atol=1e-5)
    assert answers["variance"]["2d"] == pytest.approx(4 / 3, rel=1e-5)
    assert answers["variance"]["4d"] == pytest.approx(36 / 35, rel=1e-5)
    assert answers["alone"]["2d"]["error"].startswith("ValueError")
    assert math.isnan(answers["spoiled"]["after_51"][0]) and answers["mask"] == {"absent": "it takes no mask"}
    judged = {quantity: of["torch"] for quantity, of in libraries.judged(torch_answers).items()}
    assert judged["accepts"] == 0 and judged["spoiled"] == 1 and judged["carried"] < 1e-5
    assert max(abs(judged[each]) for each in ("epsilon", "root", "unbiased")) < 1e-3
    assert len(libraries.row(torch_answers["torch"])) == len(libraries.COLUMNS)
    assert "| torch | 1e-05 under the root |" in libraries.table(torch_answers, ["ε"]).data
    assert all(values.shape[0] == 1 for values in libraries.numbers(torch_answers).values())


def test_gradient_and_hessian_of_the_questions_are_those_of_torch_in_float64():
    x, w, v = (QUESTIONS.values((6, 3), phase) for phase in (0.0, 1.0, 2.0))
    layer, at = torch.nn.BatchNorm1d(3, eps=1e-3).double(), torch.tensor(x, requires_grad=True)
    y = layer(at)
    first = torch.autograd.grad((torch.tensor(w) * (y + y * y / 2)).sum(), at, create_graph=True)[0]
    product = torch.autograd.grad((first * torch.tensor(v)).sum(), at)[0]
    np.testing.assert_allclose(QUESTIONS.gradient(x, w, 1e-3), first.detach(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(QUESTIONS.hessian(x, w, v, 1e-3), product, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("source, target", [(1e-5, 1e-3), (1e-3, 1e-5), (2e-5, 1e-5)])
def test_the_scale_that_carries_a_layer_over_is_exact(source, target):
    x, var = torch.tensor(QUESTIONS.values((8, 4))), torch.tensor([1e-6, 1e-4, 1e-2, 1.0]).double()
    layers = [torch.nn.BatchNorm1d(4, eps=eps).double().eval() for eps in (source, target)]
    for layer in layers:
        layer.running_var.copy_(var)
        torch.nn.init.uniform_(layer.weight, 0.5, 2)
    layers[1].weight.data = layers[0].weight * ((var + target) / (var + source)).sqrt()
    torch.testing.assert_close(layers[1](x), layers[0](x), rtol=1e-12, atol=1e-12)


CARRYING = loaded("carrying")


@pytest.mark.parametrize(
    "last, kernel, dense", [(True, "HWIO", "io"), (True, "OHWI", "oi"), (False, "OIHW", "io")]
)
def test_arrays_in_another_order_are_the_same_layers_in_numpy(last, kernel, dense):
    net = CARRYING.Carried()
    net.last, net.kernel, net.dense = last, kernel, dense
    weights, x = CARRYING.first(1), CARRYING.images(5, 2)[0]
    maps = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weights["conv"]))
    exact = maps.flatten(1) @ torch.tensor(weights["dense1"]).T
    own = {key: net.to_own(key, a) for key, a in weights.items()}
    windows = np.lib.stride_tricks.sliding_window_view(net.hand(x), (3, 3), (1, 2) if last else (2, 3))
    y = np.einsum(
        f"{'bxyiHW' if last else 'bixyHW'},{kernel.replace('I', 'i')}->{'bxyO' if last else 'bOxy'}",
        windows,
        own["conv"],
    )
    np.testing.assert_allclose(
        y.reshape(5, -1) @ (own["dense1"] if dense == "io" else own["dense1"].T), exact, atol=1e-5
    )
    for key, a in weights.items():
        np.testing.assert_array_equal(net.from_own(key, own[key]), a)


def test_a_network_of_torch_is_carried_to_torch_with_another_epsilon(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(libraries.FOLDER)
    monkeypatch.setattr(CARRYING, "STEPS", 5)
    net, carrying = loaded("in_torch").Net, CARRYING
    carrying.train(net, "torch", tmp_path)
    source = dict(np.load(tmp_path / "torch.npz"))
    monkeypatch.setattr(net, "defaults", (1e-1, 0.1))
    monkeypatch.setattr(
        net, "__init__", lambda self, eps=0.1, _made=net.__init__, **own: _made(self, eps=eps, **own)
    )
    found = carrying.carry(net, source)
    assert found["as_is"] > 1e-3 and max(found["epsilon_set"], found["scaled"]) < 1e-5
    assert max(found["mean_after"], found["variance_after"]) < 1e-5
    monkeypatch.setattr(net, "unbiased", False)  # a library that says so and does not is found out
    assert carrying.carry(net, source)["by_formula_after"] > 1e-3


def test_the_worst_of_the_other_seven_counts_and_a_missing_one_is_no_number():
    row = dict.fromkeys(libraries.CELL, 0.0)
    carried = {
        t: {"found": {s: row | {"as_is": 2.0 if s == t else 1.0} for s in libraries.CARRIED}}
        for t in libraries.CARRIED
    }
    assert set(libraries.carried_for_claims(carried)["carry_as_is"].values()) == {1.0}
    del carried["mlx"]
    assert math.isnan(libraries.carried_for_claims(carried)["carry_set"]["torch"])


def test_a_library_that_ends_its_process_is_said_to():
    def question():
        os.kill(os.getpid(), signal.SIGFPE)

    assert QUESTIONS.in_child(question) == {"error": "the process ends by SIGFPE: no words"}
    assert QUESTIONS.in_child(lambda: 3) == 3


def test_a_wrong_name_and_a_missing_uv_are_one_line_each(monkeypatch):
    with pytest.raises(BnbookError, match="no probe of"):
        libraries.ask(["torhc"])
    monkeypatch.setattr(asked.shutil, "which", lambda name: None)
    monkeypatch.setattr(asked.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BnbookError, match="uv is not installed"):
        asked.uv()


def test_the_short_table_of_the_page_says_what_the_long_one_measured():
    """Each library stands in one row of it, whose words are those of the library's own row in the published run."""
    run = json.loads((ROOT / "executed/laptop/practice/libraries.ipynb").read_text("utf-8"))
    tables = [
        "".join(output["data"]["text/markdown"])
        for cell in run["cells"]
        for output in cell.get("outputs", [])
        if "text/markdown" in output.get("data", {})
    ]
    long = {row[0]: row[1:] for row in _rows(tables[0]) if len(row[1]) < 40 and row[0] != "library"}
    page = (ROOT / "book/practice/libraries.md").read_text("utf-8")
    short = [
        row
        for row in _rows(page.partition('<div class="alike">')[2].partition("</div>")[0])
        if row[0] != "libraries"
    ]
    words = {"refuses": "error: [A-Z]\\w+", "1, then 0.01": "1, 0.01, 0.01", "torch.ao": "torch.ao, ConvBn2d"}
    words |= {"onnx reference": "onnx, reference", "torchvision frozen": "torchvision, frozen"}
    words |= {"on torch": "keras on torch", "on tensorflow": "keras on tensorflow"}
    named = []
    for names, *cells in short:
        kept = names in long or names == "flax nnx"
        for name in [names] if kept else names.split(", "):
            said = long[words.get(name, name)]
            named.append(words.get(name, name))
            for cell, own in zip(cells, said, strict=True):
                plain = re.sub(r"mean |variance | under the root|, of two| \(batch 1, 2, 10\)", "", own)
                assert re.fullmatch(words[cell] if cell in words else re.escape(cell), plain), (
                    name,
                    cell,
                    own,
                )
    assert sorted(named) == sorted(long)


def _rows(table):
    found = [line.strip().strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in found if not row[0].startswith("--")]
