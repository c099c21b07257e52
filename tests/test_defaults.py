"""What is left out of a call is what the sources say: every default that a chapter can rest on."""

from __future__ import annotations

import inspect

import pytest

from bnbook import models, normalizers
from bnbook.deep_linear import LinearArm, draw_problem, spread_probes
from bnbook.deep_linear.network import Network
from bnbook.normalizers import formulas, lp, noisy, per_example
from bnbook.normalizers.batch import BatchNorm
from bnbook.probes import fisher
from bnbook.small_networks import PhaseArm
from bnbook.studies.gradient_growth import chain, growth, residual

DRAWN = dict(sigma_w2=2.0, gamma=1.0)
IMAGES = dict(classes=10, channels=3, image_size=32, width=1.0)
NOISE = dict(n_mu=0.5, n_sigma=1.25, r_mu=0.1, r_sigma=0.1, spread="deviation", per="unit", dim=0)
RUNNING = dict(eps=1e-5, momentum=0.1, dim=0)

DEFAULTS = [
    (models.mlp, DRAWN | dict(widths=(784, 1000, 1000, 1000, 10), norm="none", init="glorot", sigma_b2=0.5)),
    (models.cnn, DRAWN | dict(image=(3, 32, 32), channels=(30, 60, 90), kernel=3, stride=2, outputs=10)),
    (models.cnn, dict(norm="none", init="meanfield", sigma_b2=0.5)),
    (models.deep_linear, dict(depth=25, width=10, norm="none", init="glorot", normalize_last=False)),
    (models.deep_linear, dict(bias=False, sigma_w2=1.0, sigma_b2=0.0, gamma=1.0)),
    (models.vgg, DRAWN | IMAGES | dict(norm="none", init="glorot", sigma_b2=0.5)),
    (models.vgg16, DRAWN | IMAGES | dict(norm="batch", init="meanfield", sigma_b2=0.0)),
    (models.resnet, DRAWN | IMAGES | dict(norm="batch", init="meanfield", sigma_b2=0.0)),
    (normalizers.make_normalizer, dict(dim=0)),
    (BatchNorm, RUNNING),
    (lp.LpNorm, RUNNING | dict(p=2)),
    (noisy.Noise, NOISE),
    (noisy.NoisyBatchNorm, NOISE | RUNNING),
    (per_example.GroupNorm, dict(dim=0, groups=32, eps=1e-5)),
    (per_example.LayerNorm, dict(dim=0, eps=1e-5)),
    (per_example.InstanceNorm, dict(dim=2, eps=1e-5)),
    *((of, dict(eps=1e-5)) for of in (formulas.batch_norm_forward, formulas.batch_norm_backward)),
    *((of, dict(eps=1e-5)) for of in (formulas.fold_into_linear, formulas.fold_into_convolution)),
    (chain, DRAWN | dict(phi="relu", normalized=None, sigma_b2=0.0)),
    (residual, DRAWN | dict(phi="relu")),
    (growth, dict(m=None, gamma=1.0, beta=0.0, kinks=())),
    (fisher.largest_eigenvalue, dict(outputs=0, parameters="weights", statistics="batch", tolerance=1e-5)),
    (Network, dict(norm="none", eps=1e-5, normalize_last=False, affine=True, scale=1.0)),
    (draw_problem, dict(depth=25, width=10, examples=1000, init="glorot", data_std=1.0)),
    (LinearArm, dict(norm="none", learning_rate=1e-6, steps=10_000, depth=25, width=10, examples=1000)),
    (LinearArm, dict(reduction="sum", init="glorot", data_std=1.0, normalize_last=False, affine=True)),
    (
        LinearArm,
        dict(momentum=0.0, eps=1e-5, probe_steps=(), random_lengths=(1.0, 30.0), covariate_shift=True),
    ),
    (LinearArm, dict(lengths=(0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 100.0))),
    (spread_probes, dict(regular=20, early=(1, 2, 5, 10, 20, 50, 100, 200, 300))),
    (PhaseArm, dict(network="fc", norm="batch", gamma=1.0, learning_rate=0.01, momentum=0.9, loss="squared")),
    (PhaseArm, dict(batch_size=128, steps=200, data="mnist", sigma_w2=2.0, sigma_b2=0.5, examples=0)),
    (PhaseArm, dict(hidden=(1000, 1000, 1000), test_examples=0)),
]


@pytest.mark.parametrize("of, expected", DEFAULTS, ids=lambda x: getattr(x, "__name__", ""))
def test_defaults(of, expected):
    found = {name: p.default for name, p in inspect.signature(of).parameters.items()}
    assert {name: found[name] for name in expected} == expected
