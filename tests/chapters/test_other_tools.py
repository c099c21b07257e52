"""What other tools measure: the dense matrices against differences, the Fisher information by hand, what has changed is
found."""

from __future__ import annotations

import math

import pytest
import torch

from bnbook.chapters import other_tools
from bnbook.chapters.other_tools import network


@pytest.mark.parametrize("statistics", other_tools.STATISTICS)
def test_the_dense_hessian_is_that_of_differences_of_the_gradient(statistics):
    x, t = network.batch()
    net, v, h = network.with_statistics(network.network(), x, statistics), network.vector().double(), 1e-5
    parameters = list(net.parameters())

    def gradient(shift):
        parts = v.split([p.numel() for p in parameters])
        with torch.no_grad():
            for p, part in zip(parameters, parts, strict=True):
                p.add_(shift * part.view_as(p))
        loss = torch.nn.functional.cross_entropy(net(x.double()), t)
        return torch.cat([g.ravel() for g in torch.autograd.grad(loss, parameters)])

    product = (gradient(h) - gradient(-2 * h)) / (2 * h)
    torch.testing.assert_close(network.reference(statistics)["hessian"] @ v, product, rtol=1e-5, atol=1e-7)


def test_the_three_statistics_give_three_answers_apart():
    largest = [network.by_kind(network.reference(s)["hessian"], "largest") for s in other_tools.STATISTICS]
    products = [network.by_kind(network.reference(s)["hessian"], "product") for s in other_tools.STATISTICS]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert abs(largest[a] / largest[b] - 1) > 3 * other_tools.EQUAL
        assert (products[a] - products[b]).norm() > 3 * other_tools.EQUAL * products[b].norm()
    torch.testing.assert_close(network.reference("batch")["loss"], network.reference("detached")["loss"])


def test_what_a_tool_changes_is_named():
    def meddle(net, x, t):
        net(x).sum().backward()
        net[0].eval()
        net[1].weight.requires_grad_(False).add_(1)
        net[3].register_forward_hook(print)
        net.register_buffer("total", torch.zeros(1))
        return {}

    assert network.one(meddle, "training")["changed"] == [
        *network.state(network.network()),
        "earlier gradients",
    ]
    assert network.one(lambda net, x, t: {}, "partly")["changed"] == []
    cleared = network.one(lambda net, x, t: net.zero_grad() or {}, "training")["changed"]
    assert cleared == ["earlier gradients"]  # that were there before
    assert network.one(lambda net, x, t: 1 / 0, "training")["error"].startswith("ZeroDivisionError")


def test_autograd_is_right_and_measure_leaves_the_network_alone():
    answers, missing = other_tools.ask(other_tools.HERE)
    assert not missing
    found = other_tools.judged(answers)
    assert max(found[key][name] for key in ("batch", "evaluation") for name in other_tools.HERE) < 1e-4
    assert math.isnan(found["batch"]["pyhessian"])  # which a claim names and nobody asked
    assert found["moved"]["bnbook"] == found["left"]["bnbook"] == 0
    assert "| bnbook.measure, largest eigenvalue | the batch's," in other_tools.table(answers, {}).data


def test_shares_are_the_examples_gradients_squared_where_no_example_meets_another():
    """With one example a batch and the batch's statistics of no layer, by hand: the last dense layer, behind all norms."""
    net, (x, t) = network.network(), network.batch()
    held = network.with_statistics(net, x, "batch")
    z = held[:8](x.double()).detach()
    slopes = (held[8](z).softmax(1) - torch.nn.functional.one_hot(t, 3)).detach()
    weights = torch.einsum("bo,bi->boi", slopes, z).pow(2).mean(0).ravel()
    found = network.fisher_of_shares(net, x, t)
    torch.testing.assert_close(found[96:], torch.cat([weights, slopes.pow(2).mean(0)]))
    # the shares add up to the gradient of the sum, which is all that two groups of layers can agree on
    assert found[:96].min() >= 0 and found[:96].sum() > 0


def test_a_layer_says_by_what_it_normalizes():
    net = network.network()
    plain = network.normalizes_by(net)
    assert all(layer["depends_on_batch"] > 1 and layer["moves"] for layer in plain.values())

    class Frozen(torch.nn.BatchNorm2d):
        def train(self, mode=True):
            return super().train(False)

    net[1].__class__ = Frozen
    found = network.normalizes_by(net)
    assert found["2d"] == {"depends_on_batch": 0.0, "moves": False} and found["1d"]["moves"]
