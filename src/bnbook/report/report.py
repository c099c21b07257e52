"""The report: what was measured of a network, as numbers, a table, a figure, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from bnbook.report.instruments import NAMES, Batches, Eigenvalues, LeftOut, Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Findings:
    """What was tried of the network before it was measured, and how it came out."""

    repeats: bool  # whether two passes from one state gave one loss and one gradient
    losses: tuple[float, float]  # of these two passes
    slope: Slope | None  # of the loss along its gradient; None where there is no gradient to go along
    meeting: (
        tuple[str, ...] | None
    )  # where the examples meet in the mode that the network is in; "" is its own code
    mean: float | None  # loss of the batch twice over that of the batch: 1 for a mean over the examples
    in_order: bool  # whether layers run in the order of registration
    unused: tuple[str, ...]  # trained parameters that do not reach the loss
    zero: tuple[str, ...]  # trained parameters whose gradient is zero
    not_finite: tuple[str, ...]  # trained parameters whose gradient is no finite number
    frozen: tuple[str, ...]  # parameters that are not trained
    left_out: tuple[LeftOut, ...] = ()  # layers that an instrument leaves out, and why


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

    @property
    def effective_smoothness(self) -> float | None:
        """The effective β: max over the step lengths of ‖∇L(θ) - ∇L(θ_a)‖ / ‖θ - θ_a‖."""
        return float(self.landscape.effective_smoothness) if self.landscape else None

    def summary(self) -> Iterator[tuple[str, float | None]]:
        """The rows of `table`: what a number is called, and the number."""
        scape, shift, moments = self.landscape, self.shift, self.moments
        yield "loss of the batch", self.loss
        yield "gradient norm", float(scape.start_norm) if scape else None
        yield (
            "range of the loss along the gradient",
            float(scape.loss.max() - scape.loss.min()) if scape else None,
        )
        yield "largest change of the gradient", float(scape.gradient_distance.max()) if scape else None
        yield "effective β", self.effective_smoothness
        later = slice(1, None)  # the first layer has none before it
        some = shift is not None and len(shift.names) > 1
        known = some and bool(shift.cosine[later].isfinite().any())
        yield (
            "covariate shift, cosine (mean over layers)",
            float(shift.cosine[later].nanmean()) if known else None,
        )
        yield (
            "covariate shift, ‖G − G'‖ (mean over layers)",
            float(shift.distance[later].mean()) if some else None,
        )
        for name in NAMES if self.eigenvalues else ():
            yield f"λ_max, statistics: {name}", getattr(self.eigenvalues, name)
        if self.batches:
            count, scale = len(self.batches.losses), self.batches.examples
            yield f"loss, mean of {count} batches", float(self.batches.losses.mean())
            yield "loss, standard deviation over batches", self.batches.spread
            yield "noise of the gradient of one batch", self.batches.noise
            yield "noise scale, examples", scale if np.isfinite(scale) else None
        for place in dict.fromkeys(moments.places) if moments else ():
            chosen = np.array([each == place for each in moments.places])
            yield f"{place}: change of the mean by one update", float(moments.mean_change[chosen].mean())
            yield f"{place}: change of the variance", float(moments.variance_change[chosen].mean())

    def table(self) -> str:
        """One line a number, one column a network, then what was found and the warnings."""
        columns = [dict(each.summary()) for each in self._all()]
        names = list(dict.fromkeys(name for column in columns for name in column))
        lines = [["", *(each.name for each in self._all())]]
        lines += [[name, *(_number(column.get(name)) for column in columns)] for name in names]
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        text = [
            line[0].ljust(widths[0])
            + "".join(f"  {cell:>{w}}" for cell, w in zip(line[1:], widths[1:], strict=True))
            for line in lines
        ]
        for each in self._all():
            kinds = [found.kind for found in each.normalizers]
            counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "none"
            text.append(f"{each.name}: normalizers: {counted}")
            text += [f"{each.name}: {warning}" for warning in each.warnings]
        if any(each.eigenvalues for each in self._all()):
            text.append("λ_max is that of the squared error ½‖f‖² of the outputs f, whatever the loss is")
        for each in self._all():
            if each.diagnosis:
                text.append(f"\n{each.name}: what to know, the heaviest first")
                text += [f"  {k}. {s.says} ({s.chapter})" for k, s in enumerate(each.diagnosis, 1)]
        return "\n".join(text)

    def to_json(self) -> str:
        """Everything, arrays as lists; a number that is not finite as a text."""
        return json.dumps(_plain(self), indent=1, ensure_ascii=False)

    def figure(self) -> Figure:
        """Four panels: loss and change of the gradient along it, cosine and gradient layer by layer."""
        from bnbook.report.drawing import draw

        return draw(self._all())

    def to_html(self) -> str:
        """One page that loads nothing: what to know, the numbers, what was found, and the figure."""
        rows, reports = [dict(each.summary()) for each in self._all()], self._all()
        names = list(dict.fromkeys(name for column in rows for name in column))
        head = "".join(f"<th>{escape(each.name)}</th>" for each in reports)
        body = "".join(
            f"<tr><td>{escape(name)}</td>{''.join(f'<td>{_number(c.get(name))}</td>' for c in rows)}</tr>"
            for name in names
        )
        parts = []
        for each in reports:
            said = "".join(
                f"<li>{escape(s.says)} <small>{escape(s.chapter)}</small></li>" for s in each.diagnosis
            )
            found = [*(f"{n.name}: {n.kind}" for n in each.normalizers), *each.warnings]
            parts.append(f"<h2>{escape(each.name)}</h2><ol>{said or '<li>nothing to say</li>'}</ol>")
            parts.append(
                f"<details><summary>{len(each.normalizers)} normalizers, {len(each.warnings)} notes</summary><ul>"
            )
            parts.append("".join(f"<li>{escape(words)}</li>" for words in found) + "</ul></details>")
        drawn = StringIO()
        self.figure().savefig(drawn, format="svg")
        title, svg = escape(", ".join(each.name for each in reports)), drawn.getvalue()
        svg = svg[svg.index("<svg") :]
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
            f"{''.join(parts)}<table><tr><th></th>{head}</tr>{body}</table>{svg}</html>\n"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.table())}</pre>"

    def _all(self) -> tuple[Report, ...]:
        return (self,) if self.beside is None else (self, self.beside)


_STYLE = (
    "body,html{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:1rem auto;padding:0 1rem;color-scheme:light}"
    "table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left}svg{max-width:100%;height:auto}"
)


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4g}"


def _plain(value: Any) -> Any:
    if isinstance(value, Landscape):
        return _plain(asdict(value) | {"effective_smoothness": value.effective_smoothness})
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
