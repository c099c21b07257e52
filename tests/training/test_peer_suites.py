"""Torch's own tests of normalization, run on the book's layers: the cases that ship with torch (`module_db`), and for
each case what `test_modules.py` asks of a module. What the book's layers lack stands in EXCEPTIONS, by name."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from conftest import made_once
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.normalizers import make_normalizer

#: What torch's cases ask for and the book's layers do not offer, why, and what is tried in its place.
EXCEPTIONS = {
    "affine=False": "γ and β are always there; frozen at 1 and 0 they are the same layer",
    "bias=False": "likewise, β alone",
    "track_running_stats=False": "at inference the population's statistics are the point; in training it is the same",
    "averages of single examples": "the book's instance norm is the same at inference; in training torch's is, too",
    "one position axis": "(B, C, T) is given as maps, (B, C, T, 1)",
    "three position axes": "(B, C, D, H, W) is given as maps, (B, C, D, H W)",
    "axes before the units": "layer norm of (A, B, C) over C is given as (A B, C)",
    "no batch axis": "(C, H, W) is given as a batch of one",
    "γ for each position": "layer norm of maps has γ and β for each channel; torch's are set to these, spread out",
    "no example": "an empty batch is refused by the layers that look at one example",
    "device= and dtype=": "layers are built on the CPU in float32; `.to` moves them",
    "words of an error": "a number of groups that does not divide the units is one line of the book's own",
}
CLASSES = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm")
CLASSES += ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm")
NAMES = {"BatchNorm": "batch", "InstanceNorm": "instance", "GroupNorm": "group", "LayerNorm": "layer"}
EXACT = {"rtol": 1e-10, "atol": 1e-12, "equal_nan": True}


@dataclass
class Case:
    """One of torch's module inputs, in torch's layer and in the book's."""

    cls: str
    row: dict
    asked: dict  # torch's arguments, defaults filled in
    name: str
    options: dict  # of make_normalizer
    features: int
    dim: int
    gaps: frozenset[str]

    def __str__(self) -> str:
        return f"{self.cls}: {self.row['desc']}"

    @property
    def refused(self) -> bool:
        return "no example" in self.gaps

    @property
    def x(self) -> Tensor:
        return self.row["inputs"][0].clone()

    def ours(self) -> nn.Module:
        layer = make_normalizer(self.name, self.features, self.dim, **self.options).double()
        affine = self.asked.get("affine", self.asked.get("elementwise_affine"))
        layer.weight.requires_grad_(affine)
        layer.bias.requires_grad_(affine and self.asked["bias"])
        with torch.no_grad():  # not 1 and 0, where torch's layer has them, too
            if affine:
                layer.weight.copy_(torch.linspace(0.5, 2.0, self.features))
            if layer.bias.requires_grad:
                layer.bias.copy_(torch.linspace(-1.0, 1.0, self.features))
        return layer

    def torchs(self, ours: nn.Module) -> nn.Module:
        """Torch's layer with the numbers of the book's."""
        layer = getattr(nn, self.cls)(*self.row["args"], **self.row["kwargs"]).double().train(ours.training)
        with torch.no_grad():
            for part in ("weight", "bias"):
                if getattr(layer, part, None) is not None:
                    getattr(layer, part).copy_(self.spread(getattr(ours, part), getattr(layer, part)))
        if self.name == "batch" and layer.track_running_stats:
            for part in ("running_mean", "running_var", "num_batches_tracked"):
                getattr(layer, part).copy_(getattr(ours, part))
        return layer

    @staticmethod
    def spread(of_channel: Tensor, like: Tensor) -> Tensor:
        return of_channel.view(-1, *(1,) * (like.dim() - 1)).expand_as(like)

    def given(self, x: Tensor) -> Tensor:
        """The input in the shape that the book's layer takes."""
        if "no batch axis" in self.gaps:
            x = x[None]
        if "axes before the units" in self.gaps:
            x = x.flatten(0, -2)
        if "one position axis" in self.gaps:
            x = x[..., None]
        return x.flatten(3) if "three position axes" in self.gaps else x

    def apply(self, layer: nn.Module, x: Tensor) -> Tensor:
        return layer(self.given(x)).reshape(x.shape)


def translated(cls: str, row: dict) -> Case:
    bound = inspect.signature(getattr(nn, cls)).bind(*row["args"], **row["kwargs"])
    bound.apply_defaults()
    asked, gaps = bound.arguments, set()
    name = NAMES[cls.rstrip("123d")]
    x = row["inputs"][0] if row["inputs"] else torch.empty(2, asked.get("num_channels", 0))
    options = {"eps": asked["eps"]}
    if name == "layer":
        shape = asked["normalized_shape"]
        features, dim = shape[0], 2 if len(shape) == 3 else 0
        gaps |= {"axes before the units"} if dim == 0 and x.dim() > 2 else set()
        gaps |= {"γ for each position"} if dim and asked["elementwise_affine"] else set()
    else:
        features = asked.get("num_features", asked.get("num_channels"))
        axes = x.dim() + (cls[-2:-1].isdigit() and x.dim() == int(cls[-2]) + 1 and name == "instance")
        dim = 0 if axes == 2 else 2
        gaps |= {"no batch axis"} if axes != x.dim() else set()
        gaps |= {3: {"one position axis"}, 5: {"three position axes"}}.get(axes, set())
    if name == "group":
        options["groups"] = asked["num_groups"]
    if name == "batch":
        options["momentum"] = asked["momentum"]
        gaps |= set() if asked["track_running_stats"] else {"track_running_stats=False"}
    if name == "instance" and asked["track_running_stats"]:
        gaps.add("averages of single examples")
    if not asked.get("affine", asked.get("elementwise_affine")):
        gaps.add("affine=False")
    elif not asked["bias"]:
        gaps.add("bias=False")
    if name != "batch" and not len(x):
        gaps.add("no example")
    return Case(cls, row, asked, name, options, features, dim, frozenset(gaps))


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are slower in two."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def listed(tmp_path_factory) -> dict[str, list[dict]]:
    """Torch's cases, or a skip that says why there are none."""

    def write(folder: Path) -> None:
        command = [
            sys.executable,
            str(Path(__file__).parents[1] / "peers_of_torch.py"),
            str(folder / "cases.pt"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        (folder / "why").write_text(done.stderr[-500:] if done.returncode else "")

    folder = made_once(tmp_path_factory, "peers", write)
    if why := (folder / "why").read_text():
        pytest.skip(
            f"torch {torch.__version__} does not give its own test cases: {why.strip().splitlines()[-1]}"
        )
    return torch.load(folder / "cases.pt", weights_only=False)


@pytest.fixture(params=CLASSES)
def every(request, listed) -> list[Case]:
    """The cases of one class that are no errors."""
    rows = [row for row in listed[request.param] if not row["error"]]
    assert len(rows) > 5, "torch has at least six for each"
    return [translated(request.param, row) for row in rows]


@pytest.fixture
def cases(every) -> list[Case]:
    """Those that the book's layer takes."""
    return [case for case in every if not case.refused]


def directions(like: Tensor) -> Tensor:
    return torch.linspace(-1, 2, like.numel(), dtype=like.dtype).view(like.shape)


def gradients(layer: nn.Module, y: Tensor, x: Tensor) -> dict[str, Tensor]:
    trained = {n: p for n, p in layer.named_parameters() if p.requires_grad}
    found = torch.autograd.grad((y * directions(y)).sin().sum(), [x, *trained.values()])
    return dict(zip(["x", *trained], found, strict=True))


def test_every_exception_is_met_by_a_case_and_every_case_has_its_name(listed):
    rows = [(cls, row) for cls in CLASSES for row in listed[cls] if not row["error"]]
    met = frozenset().union(*(translated(cls, row).gaps for cls, row in rows))
    assert met | {"device= and dtype=", "words of an error"} == set(EXCEPTIONS)
    assert len({str(translated(cls, row)) for cls, row in rows}) == len(rows)


@pytest.mark.parametrize("training", [True, False])
def test_forward_gradients_and_averages_are_torchs(cases, training):
    for case in cases:
        ours = case.ours().train(training)
        if case.name == "batch":  # averages that are no longer 0 and 1
            ours.train(), case.apply(ours, 2 * case.x + 1), ours.train(training)
        theirs, x = case.torchs(ours), case.x.requires_grad_()
        one, other = case.apply(ours, x), theirs(x)
        if not training and case.gaps & {"track_running_stats=False", "averages of single examples"}:
            assert not torch.allclose(one, other), f"{case}: an exception that is none"
            continue
        torch.testing.assert_close(one, other, **EXACT, msg=lambda m, c=case: f"{c}: {m}")
        if not x.numel():
            continue
        slopes, others = gradients(ours, one, x), gradients(theirs, other, x)
        assert set(slopes) == set(others), case
        for name, slope in slopes.items():
            other = others[name] if name == "x" else others[name].reshape(case.features, -1).sum(1)
            torch.testing.assert_close(slope, other, **EXACT, msg=lambda m, c=case, n=name: f"{c}, {n}: {m}")
        if case.name == "batch" and theirs.track_running_stats:
            for name, buffer in theirs.named_buffers():
                torch.testing.assert_close(dict(ours.named_buffers())[name], buffer, **EXACT)


def test_state_dict_pickle_and_deepcopy_give_the_same_layer(cases, tmp_path):
    for case in cases:
        layer = case.ours()
        case.apply(layer, case.x)
        torch.save(layer.state_dict(), tmp_path / "state.pt")
        again = make_normalizer(case.name, case.features, case.dim, **case.options).double()
        assert (
            str(again.load_state_dict(torch.load(tmp_path / "state.pt"))) == "<All keys matched successfully>"
        )
        for other in (again, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert type(other) is type(layer) and repr(other) == repr(layer)
            for name, tensor in layer.state_dict().items():
                assert torch.equal(tensor.nan_to_num(), other.state_dict()[name].nan_to_num()), (case, name)
                assert tensor.data_ptr() != other.state_dict()[name].data_ptr()
            for training in (False, True):
                one, two = copy.deepcopy(layer).train(training), other.train(training)
                torch.testing.assert_close(
                    case.apply(one, case.x), case.apply(two, case.x), rtol=0, atol=0, equal_nan=True
                )


def test_inputs_that_are_not_contiguous(cases):
    for case in cases:
        x = case.x
        if not x.numel():
            continue
        results = []
        for apart in (False, True):
            layer, own = case.ours(), x.clone()
            if apart:  # every second number of a buffer, and turned round
                own = (
                    torch.stack([own, own.neg()], dim=-1)[..., 0]
                    .transpose(0, -1)
                    .contiguous()
                    .transpose(0, -1)
                )
                assert not own.is_contiguous() or 1 in own.shape
            own = own.requires_grad_()
            y = case.apply(layer, own)
            results.append({"y": y, **gradients(layer, y, own)})
        for name, value in results[0].items():
            torch.testing.assert_close(value, results[1][name], **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_moved_to_another_dtype(cases, dtype):
    for case in cases:
        ours = case.ours().to(dtype)
        x, eps = case.x.to(dtype), torch.finfo(dtype).eps
        assert {t.dtype for t in ours.state_dict().values()} <= {dtype, torch.int64}
        y = case.apply(ours, x)
        assert y.dtype == dtype
        exact, theirs = case.apply(case.ours(), x.double()), case.torchs(case.ours()).to(dtype)(x)
        for each in (y, theirs):  # torch's own is as far from it
            torch.testing.assert_close(each.double(), exact, rtol=8 * eps, atol=8 * eps, equal_nan=True)
        assert all(p.dtype == torch.float64 for p in ours.to(torch.float64).parameters())


def test_what_torch_refuses_is_refused(listed):
    """ε that is not positive by torch's own words; groups that do not divide by the book's."""
    seen = 0
    for cls in CLASSES:
        for row in (row for row in listed[cls] if row["error"]):
            case, seen = translated(cls, row), seen + 1
            wanted = (BnbookError, "expected a divisor") if cls == "GroupNorm" else (ValueError, row["error"])
            with pytest.raises(wanted[0], match=wanted[1]):
                case.apply(
                    make_normalizer(case.name, case.features, case.dim, **case.options).double(), case.x
                )
    assert seen >= 8
