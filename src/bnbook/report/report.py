"""The report: what was measured of a network, as numbers, a table, a figure, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bnbook.probes.covariate_shift import CovariateShift
from bnbook.probes.landscape import Landscape
from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report.diagnosis import Sentence
from bnbook.report.finding import Found, Slope
from bnbook.report.instruments import DIGITS, NAMES, Batches, Eigenvalues, LeftOut, Moments
from bnbook.report.subject import some

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Findings:
    """What was tried of the network before it was measured, and how it came out."""

    repeats: bool  # whether two passes from one state gave one loss and one gradient
    losses: tuple[float, float]  # of these two passes
    slope: Slope | None  # of the loss along its gradient; None where there is no gradient to go along
    meeting: tuple[str, ...] | None  # where the examples meet in the network's mode; "" is its own code
    mean: float | None  # loss of the batch twice over that of the batch: 1 for a mean over the examples
    in_order: bool  # whether layers run in the order of registration
    unused: tuple[str, ...]  # trained parameters that do not reach the loss
    not_finite: tuple[str, ...]  # trained parameters whose gradient is no finite number
    left_out: tuple[LeftOut, ...] = ()  # layers that an instrument leaves out, and why
    meet: bool = True  # whether the examples of a batch meet anywhere in training mode, as in batch norm


@dataclass(frozen=True)
class Report:
    """What `bnbook.measure` found; a part that could not be measured is None, and `warnings` says why."""

    name: str
    learning_rate: float
    examples: int
    loss: float  # L(θ), of the batch
    normalizers: tuple[Found, ...]
    landscape: Landscape | None
    shift: CovariateShift | None
    gradients: LayerGradients | None
    moments: Moments | None
    eigenvalues: Eigenvalues | None
    warnings: tuple[str, ...]
    findings: Findings
    diagnosis: tuple[Sentence, ...] = ()  # the heaviest first
    beside: Report | None = None
    batches: Batches | None = None  # where several were given
    data: str = ""  # what the inputs are

    @property
    def effective_smoothness(self) -> float | None:
        """The effective β: max over the step lengths of ‖∇L(θ) - ∇L(θ_a)‖ / ‖θ - θ_a‖."""
        return float(self.landscape.effective_smoothness) if self.landscape else None

    def summary(self) -> Iterator[tuple[str, float | None]]:
        """The rows of `table`: what a number is called, and the number."""
        scape, shift, moments, several = self.landscape, self.shift, self.moments, self.batches
        along = lambda value: float(value(scape)) if scape else None
        yield "loss of the batch", self.loss
        yield "gradient norm", along(lambda s: s.start_norm)
        yield "range of the loss along the gradient", along(lambda s: s.loss.max() - s.loss.min())
        yield "largest change of the gradient", along(lambda s: s.gradient_distance.max())
        yield "effective β", self.effective_smoothness
        cosine = shift.cosine[1:] if shift else torch.zeros(0)  # the first layer has none before it
        known = float(cosine.nanmean()) if bool(cosine.isfinite().any()) else None
        yield "covariate shift, cosine (mean over layers)", known
        distance = float(shift.distance[1:].mean()) if len(cosine) else None
        yield "covariate shift, ‖G − G'‖ (mean over layers)", distance
        for name in NAMES if self.eigenvalues else ():
            yield f"λ_max, statistics: {name}", getattr(self.eigenvalues, name)
        if several:
            yield f"loss, mean of {len(several.losses)} batches", float(several.losses.mean())
            yield "loss, standard deviation over batches", several.spread
            yield "noise of the gradient of one batch", several.noise
            yield "noise scale, examples", several.examples if np.isfinite(several.examples) else None
        for place in dict.fromkeys(moments.places) if moments else ():
            chosen = np.array([each == place for each in moments.places])
            yield f"{place}: change of the mean by one update", float(moments.mean_change[chosen].mean())
            yield f"{place}: change of the variance", float(moments.variance_change[chosen].mean())

    def table(self) -> str:
        """One line a number, one column a network, then what was found and the warnings."""
        lines = [["", *(each.name for each in self._all())], *self._rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = []
        for first, *cells in lines:
            text.append(first.ljust(widths[0]) + "".join(f"  {c:>{w}}" for c, w in zip(cells, widths[1:])))
        text.append(f"data: {self.data}")
        for each in self._all():
            kinds = [found.kind for found in each.normalizers]
            counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "none"
            text += [f"{each.name}: {words}" for words in (f"normalizers: {counted}", *each.warnings)]
        if any(each.eigenvalues for each in self._all()):
            text.append("λ_max is that of the squared error ½‖f‖² of the outputs f, whatever the loss is")
        for each in self._all():
            text.append(f"\n{each.name}: {each._heading()}")
            text += [f"  {k}. {s.says} ({s.chapter})" for k, s in enumerate(each.diagnosis, 1)]
        return "\n".join(text)

    def to_json(self) -> str:
        """Everything, arrays as lists; a number that is not finite as a text."""
        return json.dumps(_plain(self), indent=1, ensure_ascii=False)

    def figure(self) -> Figure:
        """Four panels: loss and change of the gradient along it, cosine and gradient layer by layer."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.0, 5.6), layout="constrained")
        every = [*figure.subplots(2, 2).flat]
        for ax, (title, (below, part, values)) in zip(every, PANELS.items(), strict=True):
            ax.set(title=title, xlabel=below)
            ax.spines[["top", "right"]].set_visible(False)
            for report, (ink, mark) in zip(self._all(), LINES, strict=False):
                if found := getattr(report, part):
                    y = np.asarray(torch.as_tensor(values(found)).cpu())
                    steps = report.landscape.steps / report.learning_rate if below == _STEP else None
                    x = np.arange(1, len(y) + 1) if steps is None else np.asarray(steps.cpu())
                    ax.plot(x, y, color=ink, marker=mark, markersize=4, label=report.name)
                    if ax is every[0]:
                        ax.axhline(report.loss, color=ink, linewidth=0.8, linestyle=":")
        every[2].set_ylim(None, 1.02)
        if self.gradients:
            every[3].set_yscale("log")
        if self.beside:
            every[0].legend(frameon=False)
        return figure

    def to_html(self) -> str:
        """One page that loads nothing: what to know, the numbers, what was found, and the figure."""
        listed = lambda kind, items: f"<{kind}>{''.join(f'<li>{item}</li>' for item in items)}</{kind}>"
        page = []
        for each in self._all():
            said = [f"{escape(s.says)} <small>{escape(s.chapter)}</small>" for s in each.diagnosis]
            found = *(f"{some([n.name])}: {n.kind}" for n in each.normalizers), *each.warnings
            counted = f"{len(each.normalizers)} normalizers, {len(each.warnings)} notes"
            page.append(f"<h2>{escape(each.name)}</h2><p>{escape(each._heading())}</p>{listed('ol', said)}")
            page.append(f"<details><summary>{counted}</summary>{listed('ul', map(escape, found))}</details>")
        head = "".join(f"<th>{escape(each.name)}</th>" for each in self._all())
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._rows()]
        page.append(f"<table><tr><th></th>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
        drawn = StringIO()
        self.figure().savefig(drawn, format="svg")
        page.append(drawn.getvalue()[drawn.getvalue().index("<svg") :])
        title = escape(", ".join(each.name for each in self._all()))
        top = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        return f"{top}<style>{_STYLE}</style>{''.join(page)}</html>\n"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.table())}</pre>"

    def _heading(self) -> str:
        """What stands over the diagnosis, or in its place."""
        none = "" if self.findings.meet else "no batch norm (no layer takes statistics of the batch); "
        if self.diagnosis:
            return f"{none}what to know, the heaviest first"
        parts = {"its landscape": self.landscape, "covariate shift": self.shift, "moments": self.moments}
        parts |= {"gradients by layer": self.gradients, "λ_max": self.eigenvalues}
        had = [name for name, part in parts.items() if part is not None]
        known = "; nothing to know was found" if had else ""
        return f"{none}measured: {', '.join(['the loss', *had])}{known}"

    def _rows(self) -> list[list[str]]:
        """What each number is called, and the number of each network."""
        columns = [dict(each.summary()) for each in self._all()]
        names = dict.fromkeys(name for column in columns for name in column)
        digits = lambda name: DIGITS if name.startswith("λ_max") else 4
        cell = lambda name, value: "not measured" if value is None else f"{value:.{digits(name)}g}"
        return [[name, *(cell(name, column.get(name)) for column in columns)] for name in names]

    def _all(self) -> tuple[Report, ...]:
        return (self,) if self.beside is None else (self, self.beside)


LINES = ("#0072b2", "o"), ("#d55e00", "s")  # inks apart for every kind of colour vision, and marks


_STEP = "step along the gradient, in learning rates"
#: Title -> what stands below, and of which part of a report which numbers are drawn.
PANELS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "loss (dotted: where it stands)": (_STEP, "landscape", lambda s: s.loss),
    "change of the gradient over its norm": (
        _STEP,
        "landscape",
        lambda s: s.gradient_distance / s.start_norm,
    ),
    "covariate shift: cosine of G and G′": ("layer", "shift", lambda s: s.cosine),
    "gradient norm of the weights": ("layer", "gradients", lambda g: g.weight),
}
_STYLE = (
    "body,html{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:1rem auto;padding:0 1rem;color-scheme:light}"
    "table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left}svg{max-width:100%;height:auto}"
)


def _plain(value: Any) -> Any:
    if isinstance(value, Landscape):
        value = asdict(value) | {"effective_smoothness": value.effective_smoothness}
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
