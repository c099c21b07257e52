"""Links to the repository: on every page from one setting."""

from __future__ import annotations

import html
import json
import re

import pytest

from bookpress.book import repository
from bookpress.site import build, shell

HUB = "https://github.com/someone/a-book"


@pytest.mark.parametrize(
    ("repository", "edit", "commit", "issue"),
    [
        (HUB, "/edit/main/book/part/coin.md", "/blob/abc/", "/issues/new?title=part%2Fcoin%3A%20"),
        ("https://gitlab.org/a/b", "/-/edit/main/book/part/coin.md", "/-/blob/abc/",
         "/-/issues/new?issue[title]="),
        ("https://code.example/a/b", "/_edit/main/book/part/coin.md", "/src/commit/abc/",
         "/issues/new?title="),
    ],
)  # fmt: skip
def test_each_host_has_its_own_ways(tiny, repository, edit, commit, issue):
    shown = shell.nav(repository, "part/coin")
    assert f'href="{repository}"' in shown and f'href="{repository}{edit}"' in shown
    assert f'href="{repository}{issue}' in shown
    assert f'href="{repository}{commit}book/x.md"' in shell.at_commit(repository, "abc", "book/x.md")
    assert "Edit" not in shell.nav(repository, "scoreboard"), "made from many files"
    assert "book/errata.yml" in shell.nav(repository, "errata")
    assert "href" not in shell.at_commit("", "abc", "book/x.md")


def test_a_page_can_be_cited_by_a_sentence_and_by_bibtex(tiny):
    (tiny / "CITATION.cff").write_text(
        "title: A book\nauthors: [{name: Ann}, {name: Bob}]\nversion: 1.2\ndate-released: 2026-01-02\n"
    )
    shown = html.unescape(
        shell.citation("Is <it> & so?", "https://x.org/p.html", "abcdef0123456", "2026-11-27", "part/is-it")
    )
    sentence, bibtex = re.search(r"<p>(.*?)</p><pre[^>]*>(.*?)</pre>", shown, flags=re.S).groups()
    assert sentence == (
        "Ann and Bob (2026): “Is <it> & so?”, in A book, version 1.2, commit abcdef0123, 2026-11-27. https://x.org/p.html"
    )
    assert bibtex.startswith('@misc{bnbook-part-is-it,\n  author = "{Ann and Bob}",')
    assert bibtex.endswith('"\n}') and "{{" not in bibtex, "two braces are a token that was not filled"
    fields = dict(re.findall(r'^  (\w+) = "(.*)",?$', bibtex, flags=re.M))
    assert (
        fields["year"] == "2026"
        and fields["url"] == "https://x.org/p.html"
        and "1.2" in fields["howpublished"]
    )
    assert fields["title"] == r"{Is <it> \& so?}"
    assert "<it>" not in shell.citation("Is <it> & so?", "", "", "", "p"), "a title is no markup"
    bare = shell.citation("A book", "", "", "", "index")
    assert "“" not in bare and "http" not in bare and "2026-01-02" in bare and "commit" not in bare
    (tiny / "CITATION.cff").unlink()
    assert "Batch normalization, measured" in shell.citation("Coin", "", "", "", "coin")


def test_the_setting_reaches_every_page_and_notebook(ran):
    """Where it is unset, as in this book: test_pipeline_build.py."""
    config = ran / "_config.yml"
    assert repository() == "" == shell.binder() and "git clone" not in shell.clone()
    text = config.read_text().replace('baseurl: ""', 'baseurl: "https://x.org/b/"', 1)
    config.write_text(text.replace('url: ""', f'url: "{HUB}"', 1))
    assert repository() == HUB
    site = build.build("smoke").parent
    commit = json.loads((ran / "runs/smoke/part/coin.json").read_text())["provenance"]["commit"]
    pages = {page.relative_to(site).as_posix(): page.read_text() for page in site.rglob("*.html")}
    found = {
        name: set(re.findall(rf'href="({HUB}[^"]*)"', text))
        for name, text in pages.items()
        if "<article" in text
    }
    assert len(found) >= 5 and all(HUB in each for each in found.values())
    assert all(any("/issues/new" in to for to in each) for each in found.values())
    assert all(pages[name].count('class="cite-this"') == 1 for name in found)
    assert "https://x.org/b/part/coin.html</p>" in pages["part/coin.html"], "where it is cited"
    page = found["part/coin.html"]
    assert f"{HUB}/edit/main/book/part/coin.md" in page, "the text, not a notebook that is made from it"
    assert f"{HUB}/blob/{commit}/book/part/coin.md" in found["claims/coin-fair.html"]
    assert f"git+{HUB}" in (site / "_sources/part/coin.ipynb").read_text()
    assert f"git clone {HUB}\n" in shell.clone()
    assert "(https://mybinder.org/v2/git/https%3A%2F%2F" in shell.binder()
    for to in set.union(*found.values()):
        file = re.search(r"/(?:edit/main|blob/[0-9a-f]+)/(.+)$", to)
        assert file is None or (ran / file[1]).is_file(), to
