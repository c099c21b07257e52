"""A book of one chapter, built in a temporary folder: what the pipeline's tests run, break and build."""

from __future__ import annotations

import copy
from pathlib import Path

CHAPTER = """---
jupytext:
  notebook_metadata_filter: bnbook
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
bnbook:
  title: A coin
  exact: false
  data: none
  profiles:
    smoke: {}
    laptop: {tosses: 400, seeds: 5}
    paper: {tosses: 1000, seeds: 5}
---

# A coin

Is it fair? Heads came up in {{ ci:heads | .1% }} of {{ param:tosses }} tosses.

```{code-cell} ipython3
:tags: [parameters, hide-input]

profile = "smoke"
seeds = 3  # runs
tosses = 100  # tosses a run
rate = 0.5  # chance of heads
names = ["a"]
```

```{code-cell} ipython3
:tags: [hide-input]

import numpy as np
from bnbook.figures import figure, use_style
from bookpress.results import record
import matplotlib.pyplot as plt

use_style()


def drawn(results):
    fig, ax = plt.subplots()
    ax.plot(results["heads"])
    return fig


shares = [np.random.default_rng(seed).binomial(tosses, rate) / tosses for seed in range(seeds)]
record("heads", shares, unit="share")
record("draws", np.arange(seeds))
figure("shares", drawn)
```

```{figure} coin.figures/shares.svg
:name: coin-shares
:alt: A line, {{ mean:heads | .1% }} on average, not "biased" {{ stands:heads > 0.9 = no }}.

The share of heads, {{ mean:heads | .1% }} on average.
```

{{ verdicts }}
"""

CLAIMS = """
source: {key: folklore, version: oral}
claims:
- id: coin-fair
  source: everywhere
  says: A coin shows heads half of the time.
  figure: shares
  test: {kind: level, a: heads, expected: 0.5, tolerance: 0.2}
"""

ERRATA = """
- id: coin-two-sides
  source: {key: folklore, version: oral, where: On coins}
  kind: wrong
  printed: 'Heads has chance $p = 1$.'
  correct: 'It has $p = \\frac12$.'
  why: Tails is a side too.
  claim: coin-fair
"""

BIBLIOGRAPHY = """@misc{folklore,
  author = {Everybody},
  title  = {Sayings},
  year   = {1800}
}
"""

TOC = """format: jb-book
root: index
chapters:
  - file: part/coin
  - file: scoreboard
  - file: errata
  - file: provenance
"""


INDEX = """# A tiny book

{{ waffle }}

Heads: {{ mean:part/coin#heads | .1% }}

```{figure} part/coin.figures/shares.svg
:alt: The same line as in the chapter, shown on another page.
The chapter's figure.
```

```{bibliography}
```
"""


ALL = "# All verdicts\n\n````{raw} html\n{{ board }}\n````\n\n{{ withdrawn }}\n"


def write(root: Path, config: Path, chapter: str = CHAPTER, claims: str = CLAIMS) -> Path:
    """Write the book below `root` with the site's own configuration; returns the chapter's file."""
    (root / "book" / "part").mkdir(parents=True)
    (root / "book" / "_static").mkdir()
    (root / "book" / "references.bib").write_text(BIBLIOGRAPHY)
    (root / "book" / "_static" / "book.css").write_text("")
    (root / "book" / "index.md").write_text(INDEX)
    (root / "book" / "scoreboard.md").write_text(ALL)
    (root / "_config.yml").write_text(config.read_text(encoding="utf-8"), encoding="utf-8")
    (root / "_toc.yml").write_text(TOC)
    (root / "book" / "part" / "coin.claims.yml").write_text(claims)
    (root / "book" / "errata.yml").write_text(ERRATA)
    path = root / "book" / "part" / "coin.md"
    path.write_text(chapter, encoding="utf-8")
    return path


def changed(good: dict, **changes) -> dict:
    """A copy of an entry with fields changed, or removed by None; source__key is the key of its source."""
    entry = copy.deepcopy(good)
    for dotted, value in changes.items():
        *path, last = dotted.split("__")
        place = entry
        for key in path:
            place = place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return entry
