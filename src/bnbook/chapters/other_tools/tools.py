"""What each tool does with the network: a function a tool, in its own environment; its name is the tool's in `TOOLS`."""

import copy
import sys
from pathlib import Path

import numpy as np
import torch
from network import normalizes_by, patched_for_torchvision, shares, vector
from torch.nn import CrossEntropyLoss
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def number(quantity, kind, value):
    """What a tool gives, and of which dense matrix it should be what (`network.by_kind`)."""
    return {"quantity": quantity, "kind": kind, "value": torch.as_tensor(value, dtype=torch.float64).tolist()}


def loader(x, t):
    return DataLoader(TensorDataset(x, t), len(x))


def of_flat(net, x, t):
    """The loss as a function of all parameters in one vector, with the network's own buffers, and that vector."""
    names, shapes = zip(*((name, p.shape) for name, p in net.named_parameters()))

    def loss(flat):
        parts = flat.split([shape.numel() for shape in shapes])
        given = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes)}
        return cross_entropy(torch.func.functional_call(net, given, (x,)), t)

    return loss, torch.cat([p.detach().ravel() for p in net.parameters()])


def larger(net):
    """A copy whose first batch norm has running means and weights that are larger by one."""
    other = copy.deepcopy(net)
    with torch.no_grad():
        for each in (other[1].running_mean, other[1].weight):
            each.add_(1)
    return other


def averaged(net, average):
    """By how much an average has followed such a network."""
    new = average[1]
    return {
        "statistics_moved_by": float((new.running_mean - net[1].running_mean).mean()),
        "weights_moved_by": float((new.weight - net[1].weight).mean()),
        "copy": shares(net, average),
    }


def bnbook(net, x, t):
    """bnbook.measure: the largest eigenvalue of the mean of JᵀJ, J the derivative of the outputs by the parameters."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # this package, wherever it lies
    import bnbook

    report = bnbook.measure(net, cross_entropy, (x, t), learning_rate=0.1, progress=False)
    # it names the statistics of each of its three; the one that the network's mode asks for
    named = report.eigenvalues.batch if net[1].training else report.eigenvalues.population
    return number("outputs", "largest", named)


def torch_autograd(net, x, t):
    """torch.autograd.functional.hessian, with the network's own buffers handed in."""
    loss, flat = of_flat(net, x, t)
    product = torch.autograd.functional.hvp(loss, flat, vector())[1]
    return number("hessian", "product", product)


def torch_func(net, x, t):
    """torch.func.hessian, on a copy with the change to its batch norms that the documentation asks for."""
    from torch.func import hessian, replace_all_batch_norm_modules_

    loss, flat = of_flat(replace_all_batch_norm_modules_(copy.deepcopy(net)), x, t)
    return number("hessian", "product", hessian(loss)(flat) @ vector())


def pyhessian(net, x, t):
    """PyHessian: the largest eigenvalue by power iteration."""
    import pyhessian

    found = pyhessian.hessian(net, CrossEntropyLoss(), data=(x, t), cuda=False)
    value = found.eigenvalues(maxIter=2000, tol=1e-7)[0][0]
    return number("hessian", "largest", abs(value))


def hessian_eigenthings(net, x, t):
    """pytorch-hessian-eigenthings: products with its Hessian operator."""
    from hessian_eigenthings import HessianOperator
    from hessian_eigenthings.loss_fns import supervised_loss

    operator = HessianOperator(net, [(x, t)], supervised_loss(cross_entropy))
    return number("hessian", "product", operator.matvec(vector()))


def curvlinops(net, x, t):
    """curvlinops: products with HessianLinearOperator."""
    from curvlinops import HessianLinearOperator

    given = list(net.parameters())
    operator = HessianLinearOperator(net, CrossEntropyLoss(), given, [(x, t)])
    return number("hessian", "product", operator @ vector())


def curvlinops_ggn(net, x, t):
    """curvlinops: products with GGNLinearOperator, its check of determinism switched off."""
    from curvlinops import GGNLinearOperator

    given = list(net.parameters())
    operator = GGNLinearOperator(net, CrossEntropyLoss(), given, [(x, t)], check_deterministic=False)
    return number("gauss_newton", "product", operator @ vector())


def curvlinops_kfac(net, x, t):
    """curvlinops: the trace of KFACLinearOperator, which approximates the Gauss-Newton matrix in every mode and refuses γ and β."""
    from curvlinops import KFACLinearOperator

    given = [p for place in (0, 5, 8) for p in net[place].parameters()]
    operator = KFACLinearOperator(net, CrossEntropyLoss(), given, [(x, t)], fisher_type="type-2")
    eye = torch.eye(operator.shape[1])
    return number("gauss_newton", "trace_without_norms", (operator @ eye).trace())


def backpack(net, x, t):
    """BackPACK: the diagonal of the Gauss-Newton matrix."""
    from backpack import backpack, extend
    from backpack.extensions import DiagGGNExact

    loss = extend(CrossEntropyLoss())(extend(net)(x), t)
    with backpack(DiagGGNExact()):
        loss.backward()
    value = torch.cat([p.diag_ggn_exact.ravel() for p in net.parameters()])
    return number("gauss_newton", "diagonal", value)


def backpack_gradients(net, x, t):
    """BackPACK: gradients of each example, and by them the diagonal of the Fisher matrix of the targets."""
    from backpack import backpack, extend
    from backpack.extensions import BatchGrad

    loss = extend(CrossEntropyLoss(reduction="sum"))(extend(net)(x), t)
    with backpack(BatchGrad()):
        loss.backward()
    value = torch.cat([p.grad_batch.pow(2).mean(0).ravel() for p in net.parameters()])
    return number("empirical_fisher", "diagonal", value)


def asdfghjkl(net, x, t):
    """asdfghjkl: the diagonal of the Fisher matrix of the targets."""
    import asdl

    maker = asdl.fisher.get_fisher_maker(
        net, asdl.fisher.FisherConfig("fisher_emp", ["diag"], data_size=len(x))
    )
    maker.setup_loss_call(cross_entropy, maker.setup_model_call(net, x), t)
    maker.forward_and_backward()
    held = [each.fisher.diag for each in net if hasattr(each, "fisher")]
    value = torch.cat([part.ravel() for each in held for part in (each.weight, each.bias)])
    return number("empirical_fisher", "diagonal", value)


def laplace(net, x, t):
    """laplace-torch: the diagonal of the Gauss-Newton matrix that its fit adds up."""
    patched_for_torchvision()
    import laplace

    found = laplace.Laplace(net, "classification", subset_of_weights="all", hessian_structure="full")
    found.fit(loader(x, t))
    return number("gauss_newton", "all", found.H / len(x))


def avalanche_ewc(net, x, t):
    """avalanche: the importances of elastic weight consolidation, the Fisher diagonal of the targets, example by example."""
    patched_for_torchvision()
    from avalanche.training.plugins import EWCPlugin

    data, optimizer = TensorDataset(x, t, torch.zeros(len(x))), torch.optim.SGD(net.parameters(), 0.1)
    found = EWCPlugin(1.0).compute_importances(net, CrossEntropyLoss(), optimizer, data, "cpu", 1)
    value = torch.cat([each.data.ravel() for each in found.values()])
    return number("empirical_fisher", "diagonal", value)


def nngeometry(net, x, t):
    """nngeometry: the dense Fisher matrix of the network's own distribution."""
    from nngeometry.metrics import FIM
    from nngeometry.object import PMatDense

    matrix = FIM(net, loader(x, t), PMatDense, variant="classif_logits", device="cpu")
    return number("gauss_newton", "trace", matrix.trace())


def lr_finder(net, x, t):
    """torch-lr-finder: a range test of five steps, then its reset; the number is the loss of its first step."""
    from torch_lr_finder import LRFinder

    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    finder = LRFinder(net, optimizer, CrossEntropyLoss(), device="cpu")
    finder.range_test(loader(x, t), num_iter=5, end_lr=1, smooth_f=0)
    finder.reset()
    return number("loss", "number", finder.history["loss"][0])


def fastai_learner(net, x, t, **more):
    patched_for_torchvision()
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner
    from fastai.optimizer import SGD

    return Learner(DataLoaders(loader(x, t), loader(x, t)), net, CrossEntropyLoss(), opt_func=SGD, **more)


def fastai_lr_find(net, x, t):
    """fastai: lr_find over six steps; the number is the loss of its first step."""
    learner = fastai_learner(net, x, t, path=".")
    import fastai.callback.schedule  # noqa: F401, gives the learner its lr_find

    with learner.no_bar(), learner.no_logging():
        learner.lr_find(num_it=6, show_plot=False, suggest_funcs=())
    return number("loss", "number", learner.recorder.losses[0])


def lightning_lr_find(net, x, t):
    """lightning: Tuner.lr_find over six steps; the number is the loss of its first step."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.tuner import Tuner

    class Module(LightningModule):
        def __init__(self, net):
            super().__init__()
            self.net, self.lr, self.first = net, 0.1, None

        def training_step(self, pair, index):
            loss = cross_entropy(self.net(pair[0]), pair[1])
            self.first = float(loss) if self.first is None else self.first
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), self.lr)

    module = Module(net)
    quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer = Trainer(max_epochs=1, **quiet)
    Tuner(trainer).lr_find(module, loader(x, t), num_training=6, update_attr=False)
    return number("loss", "number", module.first)


def loss_landscapes(net, x, t):
    """loss-landscapes: the loss at the network itself, which is the number, and a random line of three points."""
    import loss_landscapes
    from loss_landscapes.metrics import Loss

    np.random.seed(0)
    metric = Loss(CrossEntropyLoss(), x, t)
    value = loss_landscapes.point(net, metric)
    loss_landscapes.random_line(net, metric, distance=0.1, steps=3)
    return number("loss", "number", value)


def captum(net, x, t):
    """captum: integrated gradients of the inputs; the number is how far an example's attribution moves with its batch."""
    from captum.attr import IntegratedGradients

    def attributed(inputs):
        return IntegratedGradients(net).attribute(inputs, target=t, n_steps=8)[:4]

    first = attributed(x)
    apart = (first - attributed(torch.cat([x[:4], 3 + 2 * x[4:]]))).norm() / first.norm()
    return {"depends_on_batch": float(apart)}


def grad_cam(net, x, t):
    """grad-cam: GradCAM of the first layer; the number is how far an example's map moves with its batch."""
    patched_for_torchvision()
    from pytorch_grad_cam import GradCAM
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    with GradCAM(model=net, target_layers=[net[0]]) as explained:
        targets = [ClassifierOutputTarget(int(each)) for each in t]
        first = explained(input_tensor=x, targets=targets)[:4]
        other = explained(input_tensor=torch.cat([x[:4], 3 + 2 * x[4:]]), targets=targets)[:4]
    return {"depends_on_batch": float(np.linalg.norm(first - other) / np.linalg.norm(first))}


def torchattacks(net, x, t):
    """torchattacks: FGSM; the number is how far an example's attacked image moves with its batch."""
    patched_for_torchvision()
    import torchattacks

    attack, images = torchattacks.FGSM(net, eps=0.1), x.sigmoid()
    first = attack(images, t)[:4] - images[:4]
    other = attack(torch.cat([images[:4], images[4:] / 2]), t)[:4] - images[:4]
    return {"depends_on_batch": float((first - other).norm() / first.norm())}


def thop(net, x, t):
    """thop: multiplications counted by hooks."""
    import thop

    return {"count": float(thop.profile(net, inputs=(x,), verbose=False)[0])}


def ptflops(net, x, t):
    """ptflops: operations by its default counter."""
    patched_for_torchvision()
    import ptflops

    told = ptflops.get_model_complexity_info(net, (1, 6, 6), as_strings=False, print_per_layer_stat=False)
    return {"count": float(told[0])}


def torchinfo(net, x, t):
    """torchinfo: the table of layers."""
    import torchinfo

    return {"count": float(torchinfo.summary(net, input_data=x, verbose=0).total_mult_adds)}


def torchsummary(net, x, t):
    """torchsummary: the table of layers."""
    from torchsummary import summary

    summary(net, (1, 6, 6), device="cpu")
    return {}


def fvcore(net, x, t):
    """fvcore: operations of a trace."""
    from fvcore.nn import FlopCountAnalysis

    return {"count": float(FlopCountAnalysis(net, x).total())}


def torch_flops(net, x, t):
    """torch.utils.flop_counter.FlopCounterMode around one pass."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counted:
        net(x)
    return {"count": float(counted.get_total_flops())}


def calflops(net, x, t):
    """calflops: multiplications with additions; it imports transformers, which it does not name among its requirements."""
    from calflops import calculate_flops

    found = calculate_flops(net, input_shape=tuple(x.shape), print_results=False, output_as_string=False)
    return {"count": float(found[1])}


def fastai_freeze(net, x, t):
    """fastai: Learner.freeze with train_bn=False, all layers but the last in the frozen group."""
    groups = dict(splitter=lambda model: [list(model[:8].parameters()), list(model[8:].parameters())])
    fastai_learner(net, x, t, train_bn=False, **groups).freeze()
    return {"frozen": normalizes_by(net)}


def lightning_freeze(net, x, t):
    """lightning: BaseFinetuning.freeze, which spares batch norms by default, and freezes them with train_bn=False."""
    from lightning.pytorch.callbacks import BaseFinetuning

    BaseFinetuning.freeze(net, train_bn=False)
    return {"frozen": normalizes_by(net)}


def timm_freeze(net, x, t):
    """timm: utils.freeze on every layer of the network."""
    patched_for_torchvision()
    from timm.utils import freeze

    freeze(net, list("012345678"))
    return {"frozen": normalizes_by(net)}


def avalanche_freeze(net, x, t):
    """avalanche: freeze_everything, which by default puts the network into evaluation, too."""
    patched_for_torchvision()
    from avalanche.training.utils import freeze_everything

    freeze_everything(net)
    return {"frozen": normalizes_by(net)}


def torch_update_bn(net, x, t):
    """torch.optim.swa_utils.update_bn on the batch: fresh averages, which is what it is for."""
    from torch.optim.swa_utils import update_bn

    update_bn([x], net)
    return {}


def torch_averaged(net, x, t):
    """torch.optim.swa_utils: AveragedModel after one update towards a network whose statistics and weights are larger by one."""
    from torch.optim.swa_utils import AveragedModel

    average = AveragedModel(net)
    average.update_parameters(net)
    average.update_parameters(larger(net))
    return averaged(net, average.module)


def ema_pytorch(net, x, t):
    """ema_pytorch: its average after one update towards a network whose statistics and weights are larger by one."""
    from ema_pytorch import EMA

    average, held = EMA(net, beta=0.5, update_after_step=0, update_every=1), copy.deepcopy(net.state_dict())
    average.update()
    start = average.ema_model[1].running_mean.clone(), average.ema_model[1].weight.detach().clone()
    with torch.no_grad():
        for each in (net[1].running_mean, net[1].weight):
            each.add_(1)
    average.update()
    now = average.ema_model[1].running_mean, average.ema_model[1].weight
    moved = [float((a - b).mean()) for a, b in zip(now, start)]
    net.load_state_dict(held)
    return {
        "statistics_moved_by": moved[0],
        "weights_moved_by": moved[1],
        "copy": shares(net, average.ema_model),
    }


def timm_ema(net, x, t):
    """timm: ModelEmaV3 after one update towards a network whose statistics and weights are larger by one."""
    patched_for_torchvision()
    from timm.utils import ModelEmaV3

    average = ModelEmaV3(net, decay=0.5)
    average.update(larger(net))
    return averaged(net, average.module)


def flwr(net, x, t):
    """flwr: FedAvg's aggregation of two clients' state, of 100 and 300 examples, the second larger by one."""
    from flwr.server.strategy.aggregate import aggregate

    first = [each.numpy() for each in net.state_dict().values()]
    new = aggregate([(first, 100), ([each + 1 for each in first], 300)])
    moved = {name: float(np.mean(b - a)) for name, a, b in zip(net.state_dict(), first, new)}
    found = {
        key: moved[f"1.{key}"] for key in ("weight", "running_mean", "running_var", "num_batches_tracked")
    }
    kind = new[list(moved).index("1.num_batches_tracked")].dtype
    return {
        "weights_moved_by": found["weight"],
        "statistics_moved_by": found["running_mean"],
        "said": f"variances {found['running_var']:.2g}, the counter {found['num_batches_tracked']:.2g} as {kind}",
    }


def torch_export(net, x, t):
    """torch.export: the module of an exported network."""
    return {"copy": shares(net, torch.export.export(net, (x,)).module())}


def higher(net, x, t):
    """higher: one differentiable inner step in its copy of the network."""
    import higher

    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with higher.innerloop_ctx(net, optimizer) as (inner, steps):
        steps.step(cross_entropy(inner(x), t))
        return {"copy": shares(net, inner)}


def learn2learn(net, x, t):
    """learn2learn: one step of MAML in its clone. It builds up to Python 3.10; its requirement qpth does not, and MAML needs none."""
    from learn2learn.algorithms.maml import MAML

    inner = MAML(net, lr=0.1).clone()
    inner.adapt(cross_entropy(inner(x), t))
    return {"copy": shares(net, inner)}


def torchopt(net, x, t):
    """torchopt: one differentiable inner step with MetaSGD, then back to the state that was taken before it."""
    import torchopt

    optimizer = torchopt.MetaSGD(net, lr=0.1)
    before, held = net[1].running_mean.clone(), torchopt.extract_state_dict(net, by="copy")
    optimizer.step(cross_entropy(net(x), t))
    torchopt.recover_state_dict(net, held)
    kept = torch.equal(before, net[1].running_mean)
    return {"said": f"going back {'puts' if kept else 'does not put'} the running statistics back"}


def opacus(net, x, t):
    """opacus: make_private as it comes, and on the network that its validator has mended."""
    from opacus import PrivacyEngine
    from opacus.validators import ModuleValidator

    mended = ModuleValidator.fix(net)
    kinds = sorted({type(each).__name__ for each in mended.modules() if "Norm" in type(each).__name__})
    try:
        given = dict(data_loader=DataLoader(TensorDataset(x, t), 8), noise_multiplier=1.0, max_grad_norm=1.0)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        PrivacyEngine().make_private(module=net, optimizer=optimizer, **given)
        said = "takes it"
    except Exception as raised:
        said = f"{type(raised).__name__}"
    return {"said": f"{said}; its mended copy has {', '.join(kinds)}"}
