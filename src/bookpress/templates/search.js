// How the search orders what it finds, and what it quotes: titles first, and no code and no list of contents.
// Sphinx reads it after searchtools.js (`html_search_scorer`).
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  // All words in the title of a page, then all of them in that of a section, then the text.
  score: ([, title, anchor, , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") ?? "";
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const has = text => words.length > 0 && words.every(word => text.toLowerCase().includes(word));
    const [page, ...section] = title.split(" > ");
    return score + (has(page) ? 200 : 0) + (section.length && has(section.join(" ")) ? 100 : 0) + (has(page) && !anchor ? 50 : 0);
  },
};

const NOT_QUOTED = ".headerlink, script, style, pre, nav, .cell, .math, .run-stamp, .ways, .cite-this, .toctree-wrapper";
Search.htmlToText = (text, anchor) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const article = page.querySelector("article") ?? page.querySelector('[role="main"]');
  const part = (anchor && article?.querySelector(anchor)) || article;
  part?.querySelectorAll(NOT_QUOTED).forEach(each => each.remove());
  return part ? part.textContent.replace(/\s+/g, " ").trim() : "";
};
