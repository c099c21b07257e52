"""A page beside those of jupyter-book: the site's styles, theme and mathematics, without its sidebars."""

from __future__ import annotations

import html

STYLES = (
    *(f"styles/{name}.css" for name in ("theme", "pydata-sphinx-theme", "sphinx-book-theme")),
    "pygments.css",
    "book.css",
)
#: Light or dark as chosen on another page, else as the reader's system has it; before anything is drawn.
THEME = (
    "(() => { const h = document.documentElement; let t = 'auto';"
    " try { t = localStorage.getItem('mode') || 'auto'; } catch {}"
    " const set = () => { h.dataset.theme = t !== 'auto' ? t :"
    " matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'; };"
    " set(); matchMedia('(prefers-color-scheme: dark)').addEventListener('change', set); })();"
)
MATHJAX = (
    '<script>window.MathJax = {options: {processHtmlClass: "math", ignoreHtmlClass: ".*"}}</script>'
    '<script defer src="{root}_static/mathjax/tex-chtml.js"></script>'
)


def page(title: str, body: str, root: str, description: str = "", crumbs: str = "") -> str:
    """The whole HTML of a page; `root` is its way to the site's first page ("../")."""
    styles = "".join(f'<link rel="stylesheet" href="{root}_static/{name}">' for name in STYLES)
    mathematics = MATHJAX.replace("{root}", root) if r"\(" in body else ""
    said = html.escape(description)
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light" data-content_root="{root}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><meta name="description" content="{said}">
<meta property="og:title" content="{html.escape(title)}"><meta property="og:description" content="{said}">
<script>{THEME}</script>{styles}{mathematics}</head>
<body class="alone"><a class="alone-skip" href="#main">Skip to the text</a>
<nav class="alone-crumbs" aria-label="Where this page is">
<a href="{root}index.html">Batch normalization, measured</a> {crumbs}</nav>
<main id="main" class="bd-content"><article class="bd-article">{body}</article></main></body></html>
"""
