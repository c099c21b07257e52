"""The architectures: shapes, names that agree between arms, paired starts, moments of the initialisations."""

from __future__ import annotations

import functools

import page_cells
import pytest
import torch
from torch import nn

from bnbook.errors import BnbookError
from bnbook.models import activation_points, cnn, deep_linear, mlp, resnet, vgg, vgg16
from bnbook.normalizers import make_normalizer

NORMS = ("none", "batch", "noisy", "noise", "l1", "l2", "linf", "layer")
BUILD = {  # architecture, shape of its inputs, how many nonlinearities it has
    "vgg": (functools.partial(vgg, width=0.0625), (4, 3, 32, 32), 10),
    "mlp": (functools.partial(mlp, widths=(12, 9, 8, 5)), (4, 3, 2, 2), 2),
    "deep_linear": (functools.partial(deep_linear, depth=4, width=6), (4, 6), 3),
    "cnn": (functools.partial(cnn, (2, 11, 15), (5, 6)), (4, 2, 11, 15), 2),
    "resnet": (functools.partial(resnet, width=0.0625), (4, 3, 32, 32), 17),
    "vgg16": (functools.partial(vgg16, width=0.0625), (4, 3, 32, 32), 15),
}
ARMS = [(name, norm) for name in BUILD for norm in (*NORMS, *(["weight"] if name != "resnet" else []))]


def weights(model: nn.Module) -> list[torch.Tensor]:
    """Weights and biases of the linear and convolutional layers, in order."""
    layers = [layer for layer in model.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]
    tensors = [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
    return [tensor.detach() for tensor in tensors if tensor is not None]


@pytest.mark.parametrize("width, first, last", [(0.125, 8, 64), (0.01, 4, 5), (0.3, 19, 154)])
def test_width_factor_rounds_and_keeps_at_least_four(width, first, last):
    model = vgg(width, image_size=64, channels=1, classes=7)
    assert model(torch.randn(2, 1, 64, 64)).shape == (2, 7)
    assert (model.conv1.out_channels, model.conv8.out_channels) == (first, last)
    assert model.linear10.out_features == last


def test_the_cnn_has_the_papers_maps():
    model = cnn()
    x, maps = torch.zeros(2, 3, 32, 32), []
    for layer in model:
        x = layer(x)
        maps += [tuple(x.shape[1:])] if isinstance(layer, nn.Conv2d) else []
    assert maps == [(30, 15, 15), (60, 7, 7), (90, 3, 3)]
    assert (model.linear4.in_features, model.linear4.out_features) == (810, 10)
    with pytest.raises(BnbookError, match="3×3 does not fit a map of 2×2"):
        cnn((1, 28, 28), (4, 4, 4, 4))


def test_the_deep_networks_have_their_usual_numbers_of_parameters_and_vgg_a_its_order():
    count = lambda model: sum(parameter.numel() for parameter in model.parameters())
    # 9,231,114 and 14,728,266 are VGG-A (VGG-11) and VGG-16 with one readout of 512 inputs; here two layers of 512
    # units with batch norm stand before it.
    before = 2 * (512 * 512 + 512 + 2 * 512)
    assert (count(vgg(norm="batch")), count(vgg16())) == (9_231_114 + before, 14_728_266 + before)
    names = [name for name, _ in vgg(0.1).named_children()]
    assert names[:8] == ["conv1", "norm1", "relu1", "pool1", "conv2", "norm2", "relu2", "pool2"]
    assert names[-8:] == ["flatten", "linear9", "norm9", "relu9", "linear10", "norm10", "relu10", "linear11"]
    assert [i for i, name in enumerate(names) if name.startswith("pool")] == [3, 7, 14, 21, 28]
    # 11,171,146 without the batch norm behind the last block, which He et al. have.
    assert count(resnet()) == 11_171_146 + 2 * 512


def test_a_residual_block_by_hand():
    torch.manual_seed(1)
    model = resnet(0.0625, norm="batch").double().eval()
    x = model.conv1(torch.randn(2, 3, 8, 8, dtype=torch.float64))
    assert x.shape == (2, 4, 8, 8) and (model.norm1.weight == 1).all()
    plain, changing = model.stage1.block1, model.stage2.block1
    ready = plain.norm1(x).clamp(min=0)
    torch.testing.assert_close(plain(x), x + plain.conv2(plain.norm2(plain.conv1(ready)).clamp(min=0)))
    ready = changing.norm1(x).clamp(min=0)
    expected = changing.shortcut(ready) + changing.conv2(changing.norm2(changing.conv1(ready)).clamp(min=0))
    torch.testing.assert_close(changing(x), expected)
    assert expected.shape == (2, 8, 4, 4)


@pytest.mark.parametrize("name, norm", ARMS)
def test_every_arm_runs_forward_and_backward_and_has_its_nonlinearities_in_the_same_places(name, norm):
    make, shape, count = BUILD[name]
    model, options = make(norm=norm, gamma=0.5), {"n_mu": 0.2} if norm == "noisy" else {}
    out = model(torch.randn(shape))
    out.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model.eval()(torch.randn(shape)[:1]).shape == out[:1].shape
    points, children = activation_points(model), list(model.named_children())
    assert points == activation_points(make()) and len(points) == count
    for index, (child, _) in enumerate(children):
        if child in points and name != "resnet":  # where norms stand before the convolutions
            assert isinstance(children[index - 1][1], (nn.Linear, nn.Conv2d))
            assert isinstance(children[index + 1][1], nn.Linear if name == "deep_linear" else nn.ReLU)
    for layer in map(model.get_submodule, points):
        assert getattr(layer, "weight", None) is None or (layer.weight == 0.5).all()
    for point in points if options else ():
        assert make(norm=norm, **options).get_submodule(point).noise.n_mu == 0.2


@pytest.mark.parametrize("init", ["glorot", "meanfield"])
@pytest.mark.parametrize("name", ["vgg", "mlp", "deep_linear", "cnn", "resnet"])
def test_arms_of_one_seed_start_from_the_same_weights_and_random_state(name, init):
    make, starts = BUILD[name][0], []
    factory = lambda features, dim: make_normalizer("batch", features, dim)
    for norm in NORMS if name == "resnet" else (*NORMS, "weight", factory):
        torch.manual_seed(7)
        starts.append((norm, weights(make(norm=norm, init=init)), torch.get_rng_state()))
    for norm, own, state in starts:
        assert torch.equal(state, starts[0][2])
        for ours, theirs in zip(own, starts[0][1], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6 if norm == "weight" else 0, atol=0)
    assert not torch.equal(weights(make(init=init))[0], starts[0][1][0])  # of another random state


def test_glorot_and_meanfield_moments():
    def check(sample: torch.Tensor, variance: float, kurtosis: float) -> None:
        sample = sample.detach().double().flatten().numpy()
        n = len(sample)
        assert abs(sample.mean()) < 4.5 * (variance / n) ** 0.5
        assert abs(sample.var() / variance - 1) < 4.5 * ((kurtosis - 1) / n) ** 0.5

    torch.manual_seed(9)
    glorot, normal, meanfield = (vgg(0.25, init=init) for init in ("glorot", "glorot-normal", "meanfield"))
    check(glorot.conv5.weight, 2 / (9 * (64 + 128)), 1.8)
    check(normal.conv5.weight, 2 / (9 * (64 + 128)), 3)
    check(meanfield.conv5.weight, 2.0 / (9 * 64), 3)
    check(meanfield.linear9.weight, 2.0 / 128, 3)
    assert glorot.conv5.weight.abs().max() <= (6 / (9 * (64 + 128))) ** 0.5 < normal.conv5.weight.abs().max()
    assert all((bias == 0).all() for model in (glorot, normal) for bias in weights(model)[1::2])
    network = mlp((300, 400, 500, 10), norm="batch", init="meanfield", sigma_w2=3.0, sigma_b2=0.7, gamma=0.25)
    check(network.linear1.weight, 3.0 / 300, 3)
    check(network.linear2.weight, 3.0 / 400, 3)
    check(torch.cat([network.linear1.bias, network.linear2.bias]), 0.7, 3)
    for point in activation_points(network):
        layer = network.get_submodule(point)
        assert (layer.weight == 0.25).all() and (layer.bias == 0).all()


def test_deep_linear_is_the_product_of_its_matrices():
    torch.manual_seed(11)
    model, x = deep_linear().double(), torch.randn(5, 10, dtype=torch.float64)
    matrices = [layer.weight for layer in model if isinstance(layer, nn.Linear)]
    expected = functools.reduce(lambda h, weight: h @ weight.T, matrices, x)
    torch.testing.assert_close(model(x), expected, rtol=0, atol=1e-12)
    assert len(list(model.parameters())) == 25 and len(activation_points(model)) == 24
    last = deep_linear(depth=3, norm="batch", normalize_last=True)
    assert activation_points(last) == ["norm1", "norm2", "norm3"]
    assert last(torch.randn(50, 10)).var(0, unbiased=False).sub(1).abs().max() < 1e-2
    assert deep_linear(depth=2, bias=True).linear2.bias is not None


@pytest.mark.parametrize(
    "call, words",
    [
        *((lambda make=make: make(image_size=30), "multiple of") for make in (vgg, vgg16, resnet)),
        *((lambda make=make: make(width=0), "above 0") for make in (vgg, vgg16, resnet)),
        *((lambda make=make: make(0.1, norm="bach"), "unknown norm") for make in (vgg, vgg16, resnet)),
        (lambda: vgg(0.1, classes=0), "at least 1"),
        (lambda: vgg(0.1, norm="batch", epsilon=1), "eps, momentum"),
        (lambda: vgg(0.1, norm="none", eps=1), "unknown option"),
        (lambda: vgg(0.1, norm="instance"), "dim=2"),
        (lambda: mlp((784,)), "at least one layer"),
        (lambda: mlp((784, 0)), "at least 1"),
        (lambda: mlp((4, 2), init="he"), "glorot, glorot-normal, meanfield"),
        (lambda: mlp((4, 2), init="meanfield", sigma_b2=-1.0), "at least 0"),
        (lambda: deep_linear(depth=0), "depth 0"),
    ],
)
def test_bad_input_is_one_clear_line(call, words):
    with pytest.raises(BnbookError) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)


def test_the_attention_of_a_block_place_by_place():
    torch.manual_seed(0)
    block = page_cells.functions("practice/your-network")["Block"](True, 4)
    x = torch.randn(2, 3, 4)
    for example, found in zip(x, block(x)):
        query, key, value = block.mix(block.before_attention(example)).split(4, 1)
        rows = []
        for place in range(3):
            share = torch.stack([torch.exp(query[place] @ key[k] / 2.0) for k in range(3)])  # 2 = sqrt(4)
            rows.append(sum(s * v for s, v in zip(share / share.sum(), value)))
        after = example + block.out(torch.stack(rows))
        after = after + block.down(torch.relu(block.up(block.before_dense(after))))
        torch.testing.assert_close(found, after)
