"""`bnbook.measure`: the instruments' own numbers, on any network, which stays as it was to the last bit."""

from __future__ import annotations

import json
import subprocess
import sys
from html import escape

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torchvision
import zoo
from torch import nn

import bnbook
from bnbook.errors import BnbookError
from bnbook.probes import covariate_shift, fisher, landscape
from bnbook.report import finding
from bnbook.report.instruments import lanczos
from bnbook.report.subject import Subject

B, K = 12, 4


def dense(norm=nn.BatchNorm1d, width=8):
    torch.manual_seed(0)
    front = nn.Linear(6, width), norm(width), nn.ReLU(), nn.Dropout(0.2)
    return nn.Sequential(
        *front, nn.Linear(width, width), norm(width), nn.Tanh(), nn.Linear(width, K)
    ).double()


def batch(shape=(6,)):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(B, *shape, generator=generator).double(), torch.arange(B) % K


def measured(model=None, loss=F.cross_entropy, data=None, **more):
    return bnbook.measure(model or dense(), loss, data or batch(), progress=False, **more)


def test_numbers_are_those_of_the_instruments_also_in_the_table_and_the_drawing():
    model, data = dense(), batch()
    report = measured(model, learning_rate=0.2)
    steps = [0.2 * k for k in (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4)]
    seen = landscape.along_gradient(model, F.cross_entropy, data, steps)
    assert torch.equal(report.landscape.loss, seen.loss)
    shift = covariate_shift.measure(model, F.cross_entropy, data, 0.2)
    assert torch.equal(report.shift.cosine, shift.cosine)
    rows, near = dict(report.summary()), pytest.approx
    assert rows["range of the loss along the gradient"] == float(max(seen.loss) - min(seen.loss))
    assert rows["largest change of the gradient"] == float(max(seen.gradient_distance))
    for name, values in (("cosine", shift.cosine), ("‖G − G'‖", shift.distance)):
        assert rows[f"covariate shift, {name} (mean over layers)"] == near(float(sum(values[1:]) / 2))
    place = report.moments.names.index("1")  # what the first normalizer gets
    assert report.moments.mean[place] == near(float(model[0](data[0]).detach().mean(0).abs().mean()))
    smooth = json.loads(report.to_json())["landscape"]["effective_smoothness"]
    assert smooth == report.effective_smoothness == float(max(seen.smoothness))
    loss, change, _, _ = report.figure().axes
    assert loss.lines[0].get_xdata() == near([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4])
    assert change.lines[0].get_ydata() == near((seen.gradient_distance / seen.start_norm).numpy())
    model[3].p = 0.0
    again = measured(model).eigenvalues
    wanted = fisher.largest_eigenvalue(model, data[0], "all", "all", "detached", tolerance=1e-3)
    assert again.constant == near(float(wanted), rel=1e-4)
    assert again.batch < again.constant  # less gradient along 1 and x-hat


def test_moments_against_an_update_by_torch():
    model, data = dense(), batch()
    model[3].p = 0.0
    found = measured(model, learning_rate=0.3, eigenvalues=False).moments
    place = found.names.index("4"), "input of a weight layer"
    assert found.places[place[0]] == place[1]
    before = model[:4](data[0]).detach()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    F.cross_entropy(model(data[0]), data[1]).backward()
    optimizer.step()
    after = model[:4](data[0]).detach()
    m, n, v, w = before.mean(0), after.mean(0), before.var(0, correction=0), after.var(0, correction=0)
    alive = (v + w) > 0
    shift = torch.where(alive, (n - m).abs() / ((v + w) / 2 + (n - m) ** 2 / 4).sqrt(), 0.0).mean()
    spread = torch.where(alive, 2 * (w - v).abs() / (v + w), 0.0).mean()
    assert found.mean[place[0]] == pytest.approx(float(m.abs().mean()))
    assert found.mean_change[place[0]] == pytest.approx(float(shift))
    assert found.variance_change[place[0]] == pytest.approx(float(spread))


def found_in(model, shape):
    subject = Subject(model, F.cross_entropy, (torch.randn(B, *shape), torch.arange(B) % K))
    return finding.inspect(subject).normalizers


def test_known_and_unknown_normalizers():
    resnet = found_in(torchvision.models.resnet18(num_classes=K), (3, 33, 33))
    assert len(resnet) == 20 and all(f.over_batch for f in resnet)
    groups = nn.Sequential(
        nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.Identity(), nn.Flatten(), nn.Linear(36, K)
    )
    found = found_in(groups, (4, 3, 3))
    assert [f.kind for f in found] == ["GroupNorm", "InstanceNorm2d"] and not any(f.over_batch for f in found)


def test_report_as_table_json_and_figure():
    report = measured(beside=dense(lambda w: nn.Identity()), names=("with", "without"))
    table = report.table()
    assert "with" in table.splitlines()[0] and "without" in table.splitlines()[0]
    assert "normalizers: 2 BatchNorm1d" in table and "normalizers: none" in table
    none = "no batch norm (no layer takes statistics of the batch); measured: the loss, its landscape, "
    rest = "covariate shift, moments, gradients by layer, λ_max; nothing to know was found"
    assert f"\nwithout: {none}{rest}" in table and "with: what to know" in table and none in report.to_html()
    assert "no batch norm" not in measured(dense().eval(), eigenvalues=False).table()
    content = json.loads(report.to_json())
    assert content["landscape"]["loss"] == report.landscape.loss.tolist()
    assert content["beside"]["eigenvalues"]["batch"] == report.beside.eigenvalues.batch
    figure = report.figure()
    assert len(figure.axes) == 4 and len(figure.axes[2].lines) == 2


def test_several_batches_are_taken_by_hand_again_and_a_page_is_written():
    draw = torch.Generator().manual_seed(5)
    data = torch.utils.data.TensorDataset(torch.randn(60, 6, generator=draw).double(), torch.arange(60) % K)
    loader = torch.utils.data.DataLoader(data, B, shuffle=True, generator=torch.Generator().manual_seed(2))
    model, before = dense(), loader.generator.get_state()
    model[3].p = 0.0
    report = measured(model, data=loader, eigenvalues=False)
    assert torch.equal(loader.generator.get_state(), before)
    losses, gradients = [], []
    for x, y in loader:
        value = F.cross_entropy(model(x), y)
        slopes = torch.autograd.grad(value, list(model.parameters()))
        losses.append(float(value.detach()))
        gradients.append(torch.cat([slope.flatten() for slope in slopes]))
    g = torch.stack(gradients)
    noise = float(g.var(0).sum())
    size = float(g.mean(0).square().sum()) - noise / len(g)
    assert report.loss == pytest.approx(losses[0]) and report.batches.losses == pytest.approx(losses)
    assert report.batches.noise == pytest.approx(noise**0.5)
    scale = B * noise / size if size > 0 else float("nan")
    assert report.batches.examples == pytest.approx(scale, nan_ok=True)
    rows = dict(report.summary())
    assert rows["loss, standard deviation over batches"] == pytest.approx(np.std(losses, ddof=1))
    assert measured(model, data=[batch()], eigenvalues=False).batches is None
    page = report.to_html()
    assert page.count("<svg") == 1 and "effective β" in page and "src=" not in page
    assert all(escape(each.says) in page for each in report.diagnosis)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"optimizer": 0.1}, "an optimizer of type float"),
        ({"data": (batch()[0] * float("nan"), batch()[1])}, "expected a finite number"),
        ({"data": (batch()[0].to_sparse(), batch()[1])}, "sparse or nested"),
        *(({"learning_rate": a}, "expected a finite number above 0") for a in (float("inf"), 10**400)),
        ({"learning_rate": "0.1"}, "learning rate 0.1; expected"),
        ({"lengths": (0.5, -1)}, "lengths .0.5, -1.; expected"),
        ({"lengths": 1.0}, "lengths 1.0; expected"),
        ({"beside": 3}, "a model of type int"),
        ({"names": ()}, "names .*; expected 1"),
        ({"data": iter(())}, "no batch; expected"),
        ({"data": [(*batch(), batch()[1])]}, "a batch of 3 parts; expected a pair of tensors"),
        ({"data": (each for each in [batch(), {}])}, "a batch of type dict"),
        ({"output": 0}, "output 0 of a tensor .*expected none"),
    ],
)
def test_bad_input_is_one_clear_line(change, words):
    with pytest.raises(BnbookError, match=words):
        measured(**change)


def test_a_rate_of_numpy_is_a_number_of_the_report():
    report = measured(learning_rate=np.float32(0.5), eigenvalues=False)
    assert json.loads(report.to_json())["learning_rate"] == 0.5


def test_the_package_is_imported_without_torch():
    words = (
        "import bnbook, sys; assert 'torch' not in sys.modules; bnbook.measure; assert 'torch' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", words]).returncode == 0


def test_the_range_of_the_loss_where_it_is_lowest_on_the_way():
    """Along the gradient of ½ w² from 1 at a rate of 1: lowest after one length, not after the first."""
    model = nn.Linear(1, 1, bias=False).double()
    with torch.no_grad():
        model.weight.fill_(1.0)
    data = torch.ones(8, 1).double(), torch.zeros(8, 1).double()
    half = lambda outputs, targets: 0.5 * (outputs - targets).square().mean()
    report = measured(model, half, data, learning_rate=1.0, eigenvalues=False)
    assert dict(report.summary())["range of the loss along the gradient"] == pytest.approx(0.5 * 9)


APART = torch.cat([torch.linspace(0, 1, 199), torch.tensor([3.0])])  # one stands out
NEAR = 606.05 - torch.arange(200) ** 1.3  # the second is 1 below, as those of several outputs are
TWO = torch.cat([torch.ones(199), torch.tensor([1.01])])  # a space of two, and rounding


@pytest.mark.parametrize(("values", "fewest", "most"), [(APART, 12, 12), (NEAR, 20, 100), (TWO, 2, 3)])
def test_the_digits_of_the_largest_eigenvalue_stand(values, fewest, most):
    values, products = values.double(), []
    found = lanczos(lambda q: products.append(1) or values * q, torch.ones(200, dtype=torch.float64))
    assert f"{found:.3g}" == f"{values.max():.3g}" and found <= float(values.max()) * (1 + 1e-12)
    assert fewest <= len(products) <= most


@pytest.mark.parametrize(
    ("layer", "axis"),
    [
        (nn.LayerNorm(4), 2),
        (nn.Linear(4, 4), 2),
        (nn.BatchNorm1d(3), 1),
        (zoo.Net(lambda _s, x: F.layer_norm(x, x.shape[-1:])), 2),
        (zoo.Channels(3), 1),
    ],
)
def test_units_lie_where_a_layer_works(layer, axis):
    data = (torch.arange(24.0).view(2, 3, 4).square() + 1, torch.zeros(2))
    model = nn.Sequential(nn.Identity(), layer, nn.Flatten(), nn.Linear(12, 1))
    found = finding.inspect(Subject(model, lambda y, _t: y.mean(), data))
    assert {each.axis for each in (*found.normalizers, *found.layers) if each.name == "1"} == {axis}
