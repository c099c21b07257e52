"""The network that every tool is given, what a dense computation says of it, and what a tool has changed of it.

`ask` hands it to a function of `tools.py`, and prints one JSON object. Needs torch and NumPy and nothing of the book.
"""

import contextlib
import copy
import functools
import importlib.metadata
import json
import platform
import warnings

import numpy as np
import torch
from torch import nn

#: partly: in training, its batch norms in evaluation, as when they are frozen
MODES = ("training", "evaluation", "partly")
STATISTICS = ("batch", "detached", "population")


def network(mode="training"):
    """Convolution, batch norm, tanh, pooling, dense, batch norm, tanh, dense: 111 parameters; averages of other data."""
    torch.manual_seed(0)
    convolution = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()
    net = nn.Sequential(*convolution, nn.Linear(12, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))
    for each in net.modules():
        if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.uniform_(each.weight, 0.5, 1.5)
            nn.init.uniform_(each.bias, -0.5, 0.5)
    with torch.no_grad():
        for _ in range(3):
            net(1 + 2 * torch.randn(16, 1, 6, 6))
    net.train(mode != "evaluation")
    for each in net.modules():
        if mode == "partly" and isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
            each.eval()
    return net


def batch(size=16):
    """Inputs (16, 1, 6, 6) and targets (16,)."""
    draw = torch.Generator().manual_seed(1)
    return torch.randn(size, 1, 6, 6, generator=draw), torch.randint(3, (size,), generator=draw)


def vector():
    """Where Hessian products look."""
    return torch.randn(111, generator=torch.Generator().manual_seed(2))


def with_statistics(net, x, statistics):
    """A copy in float64 whose batch norms use the batch, its mean and variance as constants, or the running averages."""
    held = copy.deepcopy(net).double()
    held.train(statistics == "batch")
    if statistics == "detached":
        with torch.no_grad():
            y = x.double()
            for each in held:
                if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
                    axes = [0, *range(2, y.ndim)]
                    each.running_mean, each.running_var = y.mean(axes), y.var(axes, unbiased=False)
                y = each(y)
    return held


def dense(net, x, t, statistics):
    """Loss, gradient, Hessian, and the Gauss-Newton matrix, the mean of JᵀJ of the logits and the Fisher matrix of the
    targets, by torch's plain autograd in float64."""
    held = with_statistics(net, x, statistics)
    names, shapes = zip(*((name, p.shape) for name, p in held.named_parameters()))
    flat = torch.cat([p.detach().ravel() for p in held.parameters()])

    def logits(flat):
        parts = flat.split([shape.numel() for shape in shapes])
        given = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes)}
        fresh = {name: b.clone() for name, b in held.named_buffers()}
        return torch.func.functional_call(held, {**given, **fresh}, (x.double(),))

    def loss(flat):
        return nn.functional.cross_entropy(logits(flat), t)

    def losses(flat):
        return nn.functional.cross_entropy(logits(flat), t, reduction="none")

    functional, p = torch.autograd.functional, logits(flat).softmax(1).detach()
    J = functional.jacobian(logits, flat)
    G = functional.jacobian(losses, flat)
    inner = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return {
        "loss": loss(flat).detach(),
        "gradient": functional.jacobian(loss, flat),
        "hessian": functional.hessian(loss, flat),
        "gauss_newton": torch.einsum("bip,bij,bjq->pq", J, inner, J) / len(x),
        "outputs": torch.einsum("bip,biq->pq", J, J) / len(x),
        "empirical_fisher": G.T @ G / len(x),
    }


def fisher_of_shares(net, x, t):
    """Diagonal of the mean square of what each example adds, layer by layer, to the gradient of the batch's summed loss.

    Every example has parameters of its own and all are normalized together. With running averages these are the examples'
    gradients; by the batch they are not, for an example's parameters then move the losses of the others, too.
    """
    held, y, own = with_statistics(network(), x, "batch"), x.double(), []
    for each in held:
        parts = [p.detach().expand(len(x), *p.shape).clone().requires_grad_() for p in each.parameters()]
        own += parts
        if isinstance(each, nn.Conv2d):
            columns = nn.functional.unfold(y, each.kernel_size)
            y = torch.einsum("bop,bpl->bol", parts[0].flatten(2), columns) + parts[1][:, :, None]
            y = y.unflatten(2, (4, 4))
        elif isinstance(each, nn.Linear):
            y = torch.einsum("boi,bi->bo", parts[0], y) + parts[1]
        elif parts:
            axes = [0, *range(2, y.ndim)]
            y = (y - y.mean(axes, keepdim=True)) / (
                y.var(axes, unbiased=False, keepdim=True) + each.eps
            ).sqrt()
            scale, shift = (p.reshape(*p.shape, *[1] * (y.ndim - 2)) for p in parts)
            y = scale * y + shift
        else:
            y = each(y)
    grads = torch.autograd.grad(nn.functional.cross_entropy(y, t, reduction="sum"), own)
    return torch.cat([g.pow(2).mean(0).ravel() for g in grads])


@functools.cache
def reference(statistics):
    return dense(network(), *batch(), statistics)


def by_kind(matrix, kind):
    """What a tool gives of a matrix: its product with `vector`, largest eigenvalue, trace (with or without the parameters of
    batch norms, which are numbers 30 to 35 and 88 to 95), diagonal, or all of it."""
    if kind == "product":
        return matrix @ vector().double()
    if kind == "largest":
        return torch.linalg.eigvalsh(matrix).abs().max()
    if kind == "trace_without_norms":
        return matrix.diagonal().sum() - matrix.diagonal()[30:36].sum() - matrix.diagonal()[88:96].sum()
    return {"trace": matrix.trace, "diagonal": matrix.diagonal, "all": lambda: matrix}[kind]()


def state(net):
    """What a tool may have changed, by name."""
    kinds = "running buffers counter parameters mode requires_grad gradients hooks"
    found = {kind: {} for kind in kinds.split()}
    for name, each in net.named_buffers():
        kind = "counter" if name.endswith("tracked") else "running" if "running" in name else "buffers"
        found[kind][name] = each.clone()
    for name, p in net.named_parameters():
        found["parameters"][name], found["requires_grad"][name] = p.detach().clone(), p.requires_grad
        found["gradients"][name] = None if p.grad is None else p.grad.clone()
    for name, each in net.named_modules():
        found["mode"][name], found["hooks"][name] = (
            each.training,
            len(each._forward_hooks) + len(each._forward_pre_hooks),
        )
    return found


def changed(before, net):
    """The names of what is no longer as it was."""

    def same(a, b):
        return (
            torch.equal(a, b)
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
            else a is b or a == b
        )

    after = state(net)
    held = ("running", "buffers", "counter", "parameters")  # of these a name more or less is a change, too
    return [
        key
        for key, of in before.items()
        if (key in held and of.keys() != after[key].keys())
        or not all(same(a, after[key][name]) for name, a in of.items() if name in after[key])
    ]


def normalizes_by(net):
    """Of a copy that is put into training as before an epoch, by layer: how far an example's answer moves with its batch,
    and whether the running statistics move."""
    found, held = {}, copy.deepcopy(net).train()
    for name, place, shape in (("2d", 1, (16, 3, 4, 4)), ("1d", 6, (16, 4))):
        z, before = torch.randn(shape, generator=torch.Generator().manual_seed(3)), state(held[place])
        with torch.no_grad():
            apart = (held[place](z)[:4] - held[place](torch.cat([z[:4], 3 + 2 * z[4:]]))[:4]).abs().max()
        found[name] = {"depends_on_batch": float(apart), "moves": "running" in changed(before, held[place])}
    return found


def shares(net, other):
    """Whether a pass of the other network, in training mode, moves the running statistics of the first; put back then."""
    before, held = state(net), copy.deepcopy(net.state_dict())
    for each in other.modules():
        each.training = True
    with torch.no_grad():
        other(batch()[0] + 5)
    found = {"moves_original": "running" in changed(before, net)}
    net.load_state_dict(held)
    return found


@functools.cache
def patched_for_torchvision():
    """Let a torchvision be imported whose compiled operators want another build of torch; no tool here needs them."""
    plain = torch.library.register_fake

    def register(name, *rest, **named):
        return (
            (lambda function: function) if name.startswith("torchvision::") else plain(name, *rest, **named)
        )

    torch.library.register_fake = register


def earlier_gradients(use, mode):
    """Whether gradients that a training has left before the call are others after it."""
    net, (x, t) = network(mode), batch()
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        use(net, x, t)
    kept = all(p.grad is not None and torch.equal(p.grad, torch.ones_like(p)) for p in net.parameters())
    return [] if kept else ["earlier gradients"]


def one(use, mode):
    net, (x, t) = network(mode), batch()
    before = state(net)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = use(net, x, t)
    except ImportError:
        raise  # of the tool itself, which is then missing and has told nothing
    except Exception as raised:
        text = (str(raised).strip() or "no words").splitlines()[0][:160]
        lost = earlier_gradients(use, mode)
        return {"error": f"{type(raised).__name__}: {text}", "changed": changed(before, net) + lost}
    found = {"changed": changed(before, net) + earlier_gradients(use, mode), **told}
    if "value" in told:
        value = torch.as_tensor(np.asarray(told["value"], float)).double()
        found["value"], found["error_by"] = value.tolist(), {}
        for statistics in STATISTICS:
            matrix = reference(statistics)[told["quantity"]]
            exact = by_kind(matrix, told["kind"]) if matrix.ndim == 2 else matrix
            found["error_by"][statistics] = float((value - exact).norm() / exact.norm())
        if told["quantity"] == "empirical_fisher":
            shares_of = fisher_of_shares(net, x, t)
            found["error_by_shares"] = float((value - shares_of).norm() / shares_of.norm())
    return found


def ask(use, name, packages):
    """Hand the network to `use` in each mode, and print what it told and changed."""
    document = {
        "name": name,
        "versions": {each: importlib.metadata.version(each) for each in packages},
        "python": platform.python_version(),
        "modes": {mode: one(use, mode) for mode in MODES},
    }
    print("\n" + json.dumps(document, default=str), flush=True)
