// The board's search and filters, kept in the address, and the waffle's words; without this both are plain lists.
(() => {
const norm = text => text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "");

function board(form) {
  const rows = [...document.querySelectorAll("li.claim")];
  const texts = new Map(rows.map(row => [row, norm(`${row.id} ${row.textContent}`)]));
  const count = document.querySelector(".board-count");
  const fields = [...form.elements].filter(field => field.name);
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) field.value = asked.get(field.name) ?? "";
    for (const field of fields) if (field.selectedIndex === -1) field.value = ""; // an option that there is not
  };
  const show = () => {
    const asked = fields.filter(field => field.value).map(field => [field.name, field.value]);
    let seen = 0;
    for (const row of rows) {
      const fits = asked.every(([name, value]) => name === "find"
        ? norm(value).split(/\s+/).every(word => texts.get(row).includes(word))
        : row.dataset[name].split("|").includes(value));
      row.hidden = !fits;
      seen += fits;
    }
    for (const chapter of document.querySelectorAll(".board-chapter")) {
      chapter.hidden = !chapter.querySelector("li.claim:not([hidden])");
      chapter.open = asked.length > 0;
    }
    count.textContent = `${seen} of ${rows.length} rows`;
    return asked;
  };
  const write = () => {
    const asked = new URLSearchParams(show()).toString();
    history.replaceState(null, "", asked ? `#${asked}` : location.pathname + location.search);
  };
  form.hidden = false;
  form.addEventListener("input", write);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(write));
  // A link with a filter leads to what it filters; a reload or the way back stays where it was.
  const arrive = () => { if (show().length) form.scrollIntoView(); };
  addEventListener("hashchange", () => { if (!document.getElementById(location.hash.slice(1))) { read(); arrive(); } });
  if (!location.hash.startsWith("#claim-")) read();
  if (performance.getEntriesByType("navigation")[0]?.type === "navigate") arrive();
  else show();
}

// One stop for the Tab key, arrows from square to square; what a square says stands below.
function waffle(whole) {
  const squares = [...whole.querySelectorAll(".squares a")];
  const said = whole.querySelector(".waffle-said");
  const byFinger = matchMedia("(hover: none)").matches;
  let touched = null;
  const rest = said.textContent = byFinger
    ? "Touch a square to read its claim, once more to open it."
    : "Point at a square, or walk through them with the arrow keys; Enter opens it.";
  squares.forEach((square, place) => {
    square.tabIndex = place ? -1 : 0;
    square.dataset.said = square.title;
    square.removeAttribute("title");
    const tell = () => { said.textContent = square.dataset.said; };
    // Where nothing hovers the first touch tells, the second opens.
    square.addEventListener("click", event => {
      if (!byFinger || touched === square) return;
      event.preventDefault();
      touched = square;
      tell();
    });
    square.addEventListener("mouseenter", tell);
    square.addEventListener("focus", () => {
      for (const other of squares) other.tabIndex = other === square ? 0 : -1;
      tell();
    });
    square.addEventListener("mouseleave", () => { said.textContent = rest; });
  });
  whole.addEventListener("keydown", event => {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own
    const from = squares.indexOf(document.activeElement);
    if (from < 0) return;
    const box = squares[from].getBoundingClientRect();
    const beside = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: squares.length - 1 }[event.key];
    const far = square => Math.abs(square.getBoundingClientRect().x - box.x);
    const lines = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    let next = squares[beside];
    if (lines) {
      const beyond = squares.filter(s => lines * (s.getBoundingClientRect().y - box.y) > 2);
      const near = Math.min(...beyond.map(s => lines * s.getBoundingClientRect().y));
      next = beyond.filter(s => lines * s.getBoundingClientRect().y < near + 2).sort((a, b) => far(a) - far(b))[0];
    }
    if (next) { event.preventDefault(); next.focus(); }
  });
}

// Paper is white, whatever the screen is.
const page = document.documentElement;
let theme;
addEventListener("beforeprint", () => {
  theme = page.dataset.theme;
  page.dataset.theme = "light";
  for (const each of document.querySelectorAll("details.erratum, details.tests, .board-chapter")) each.open = true;
});
addEventListener("afterprint", () => { page.dataset.theme = theme; });

// A link to a claim opens its row, on the board its chapter; a link to an erratum its text.
const unfold = () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = row?.closest("details.verdict, details.board-chapter") ?? row?.parentElement.querySelector(":scope > details.erratum");
  if (!folded) return;
  for (let each = folded; each; each = each.parentElement.closest("details")) each.open = true;
  row.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

for (const form of document.querySelectorAll(".board-form")) board(form);
for (const whole of document.querySelectorAll("[data-waffle]")) waffle(whole);
})();

// A formula is a tab stop only where it is wider than its place: there the arrow keys slide it.
(() => {
const mark = () => {
  for (const each of document.querySelectorAll(".bd-content :is(div.math, .erratum dd p)"))
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0; else each.removeAttribute("tabindex");
};
const begin = () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(mark);
addEventListener("load", begin);
new ResizeObserver(mark).observe(document.documentElement);
addEventListener("toggle", mark, true); // what was folded
})();
