"""The chapters of the book, a module each: what it trains, measures and draws; and what several of them share.

A function that returns a figure counts in no stamp (`bookpress.fingerprint`): a better drawing makes no run stale.
"""

#: What counts no more than a figure does: the published runs were made beside it.
ASIDE = {"exercises": "ROWS"}
#: The stamps of the published runs name a figure by the place where it lay; a chapter's line goes when it is run
#: again. What is not named here is named alone.
LAY = {
    "batch": "plots.batches",
    "convolution": "plots.mean_field",
    "edge": "plots.edge",
    "exercises": "plots.exercises",
    "fisher": "plots.fisher",
    "order_parameters": "plots.mean_field",
    "rank": "plots.rank",
    "reach": "plots.fisher_reach",
    "readout": "plots.critical_rate",
    "residual": "plots.residual",
    "spectrum": "plots.spectrum",
    "stand_ins": "plots.standins",
    "weight_decay": "plots.weight_decay",
}
