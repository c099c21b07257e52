"""What the site's search knows of a page: its text, and neither its code nor what its cells print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes

SCORER = Path(__file__).parents[1] / "templates" / "search.js"
PRINTED = {"cell_output", "cell_input"}


def text_of(page: nodes.document) -> nodes.document:
    """A copy of the page without code and what it prints."""
    copy = page.deepcopy()
    for node in list(copy.findall(nodes.Element)):
        left_out = isinstance(node, nodes.literal_block) or PRINTED & set(node.get("classes", ()))
        if left_out and node.parent is not None:
            node.parent.remove(node)
    return copy


def setup(app: Any) -> None:
    """The index is made of `text_of` each page, its results are ordered and quoted by SCORER."""

    def begun(app: Any) -> None:
        own = getattr(app.builder, "index_page", None)
        if own:  # of a builder that has an index
            app.builder.index_page = lambda name, page, title: own(name, text_of(page), title)

    app.connect("config-inited", lambda _, config: setattr(config, "html_search_scorer", str(SCORER)))
    app.connect("builder-inited", begun)
