// What a page shows at its present width and theme; run by tests/browsing.py, judged by tests/bookpress/site/test_browser.py.
() => {
  const article = document.querySelector("article") ?? document.querySelector("main"); // search: no article
  const style = e => getComputedStyle(e);
  const box = e => e.getBoundingClientRect();
  const name = e => {
    const mark = e.id ? "#" + e.id : e.classList.length ? "." + e.classList[0] : "";
    return `${e.tagName.toLowerCase()}${mark} '${e.textContent.trim().replace(/\s+/g, " ").slice(0, 40)}'`;
  };

  // ---- place: blocks in the normal flow, compared with their siblings ----
  const blocks = ["block", "flex", "grid", "table", "list-item", "flow-root", "table-caption"];
  const inFlow = e => e.checkVisibility() && box(e).width > 1 && box(e).height > 1 && style(e).float === "none"
    && ["static", "relative"].includes(style(e).position) && blocks.includes(style(e).display);
  const scrolls = e => e && e !== article
    && (["auto", "scroll"].includes(style(e).overflowX) || scrolls(e.parentElement));
  const overlaps = [], sticksOut = [], cutOff = [];
  const compare = elements => elements.forEach((a, i) => elements.slice(i + 1).forEach(b => {
    const [p, q] = [box(a), box(b)];
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 2 && high > 2)
      overlaps.push(`${name(a)} and ${name(b)} by ${Math.round(wide)} x ${Math.round(high)} px`);
  }));
  const walk = parent => {
    const children = [...parent.children].filter(inFlow);
    compare(children);
    for (const child of children) {
      if ((box(child).right > innerWidth + 1 || box(child).left < -1) && !scrolls(child))
        sticksOut.push(name(child));
      if (scrolls(parent) && !parent.scrollLeft && box(child).left < box(parent).left - 1)
        cutOff.push(`the beginning of ${name(child)}`);
      if (["hidden", "clip"].includes(style(child).overflowX) && child.scrollWidth > child.clientWidth + 1)
        cutOff.push(name(child));
      walk(child);
    }
  };
  walk(article);
  const beside = [".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article"];
  compare([article, ...beside.map(s => document.querySelector(s)).filter(e => e && inFlow(e))]);

  // ---- contrast by WCAG 2, (L1 + 0.05) / (L2 + 0.05), with the first painted background below the text ----
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const once = (known, tell) => key => known.get(key) ?? known.set(key, tell(key)).get(key);
  const rgba = once(new Map(), colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  });
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = colour => {
    const [r, g, b] = rgba(colour).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = once(new Map([[null, "white"]]), e => {
    const colour = style(e).backgroundColor;
    return rgba(colour)[3] > 127 ? colour : ground(e.parentElement);
  });
  const faint = [];
  const written = "p, li, td, th, dt, dd, figcaption, h1, h2, h3, a, code, strong, em";
  for (const e of article.querySelectorAll(written)) {
    const own = [...e.childNodes].filter(n => n.nodeType === Node.TEXT_NODE).map(n => n.data).join("").trim();
    if (!own || own === "#" || !e.checkVisibility()) continue; // "#": a heading's link, shown on hover
    const [light, dark] = [luminance(style(e).color), luminance(ground(e))].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) faint.push(`${name(e)} ${contrast.toFixed(1)}`);
  }

  const math = [...article.querySelectorAll(".math")];
  const early = "link[rel~=preconnect], link[rel~=dns-prefetch], link[rel~=preload]";
  return {
    theme: document.documentElement.dataset.theme,
    scrollWidth: document.documentElement.scrollWidth,
    innerWidth,
    overlaps, sticksOut, cutOff, faint,
    images: [...document.images].map(e => ({
      source: e.getAttribute("src"), alt: e.alt, inArticle: article.contains(e), visible: e.checkVisibility(),
      naturalWidth: e.naturalWidth, width: box(e.closest(".columns") ?? e).width, ground: luminance(ground(e)),
    })),
    math: math.length,
    rawMath: math.filter(e => !e.querySelector("mjx-container")).map(name),
    badMath: [...article.querySelectorAll("mjx-merror, [data-mjx-error]")].map(name),
    scripts: [...document.scripts].map(e => e.src).filter(Boolean),
    hints: [...document.querySelectorAll(early)].map(e => e.href),
  };
}
