"""Batch norm in other libraries: the probes' heads, the questions against torch in float64, torch's own answers."""

from __future__ import annotations

import faulthandler
import importlib
import math
import os
import re
import signal

import numpy as np
import pytest
import torch

from bnbook.chapters import libraries


def loaded(name: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(libraries.FOLDER)
        return importlib.import_module(name)


QUESTIONS, CARRYING = loaded("questions"), loaded("carrying")


def test_each_class_that_is_asked_is_there():
    for each in libraries.LIBRARIES.values():
        text = (libraries.FOLDER / f"{each.module}.py").read_text("utf-8")
        for what in filter(None, (each.layer, each.net)):
            assert re.search(rf"^class {what}[(:]", text, re.MULTILINE), (each.module, what)


def test_torch_answers_as_its_documentation_says():
    asked, missing = libraries.ask(["torch"])
    assert not missing and libraries.epsilon(asked["torch"]) == pytest.approx(1e-5, rel=1e-4)
    answers = asked["torch"]["answers"]
    np.testing.assert_allclose(answers["weights"]["new"], 0.1, atol=1e-5)
    assert answers["variance"]["2d"] == pytest.approx(4 / 3, rel=1e-5)
    assert answers["variance"]["4d"] == pytest.approx(36 / 35, rel=1e-5)
    assert answers["alone"]["2d"]["error"].startswith("ValueError")
    assert math.isnan(answers["spoiled"]["after_51"][0]) and answers["mask"] == {"absent": "it takes no mask"}
    judged = {quantity: of["torch"] for quantity, of in libraries.judged(asked).items()}
    assert judged["accepts"] == 0 and judged["spoiled"] == 1 and judged["carried"] < 1e-5
    assert max(abs(judged[each]) for each in ("epsilon", "root", "unbiased")) < 1e-3
    assert "| torch | 1e-05 under the root |" in libraries.table(asked, ["ε"]).data
    assert len(libraries.row(asked["torch"])) == len(libraries.COLUMNS)
    assert all(values.shape[0] == 1 for values in libraries.numbers(asked).values())


def test_gradient_and_hessian_of_the_questions_are_those_of_torch_in_float64():
    x, w, v = (QUESTIONS.values((6, 3), phase) for phase in (0.0, 1.0, 2.0))
    layer, at = torch.nn.BatchNorm1d(3, eps=1e-3).double(), torch.tensor(x, requires_grad=True)
    y = layer(at)
    first = torch.autograd.grad((torch.tensor(w) * (y + y * y / 2)).sum(), at, create_graph=True)[0]
    product = torch.autograd.grad((first * torch.tensor(v)).sum(), at)[0]
    np.testing.assert_allclose(QUESTIONS.gradient(x, w, 1e-3), first.detach(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(QUESTIONS.hessian(x, w, v, 1e-3), product, rtol=1e-6, atol=1e-7)


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
    seen, made = ("bxyiHW", "bxyO") if last else ("bixyHW", "bOxy")
    y = np.einsum(f"{seen},{kernel.replace('I', 'i')}->{made}", windows, own["conv"]).reshape(5, -1)
    np.testing.assert_allclose(y @ (own["dense1"] if dense == "io" else own["dense1"].T), exact, atol=1e-5)
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
        faulthandler.disable()  # pytest's, which would print where it was
        os.kill(os.getpid(), signal.SIGFPE)

    assert QUESTIONS.in_child(question) == {"error": "the process ends by SIGFPE: no words"}
    assert QUESTIONS.in_child(lambda: 3) == 3
