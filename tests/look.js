// What a page shows at its present width and theme; run by tests/browsing.py, judged by tests/test_browser.py.
() => {
  const article = document.querySelector("article") ?? document.querySelector("main"); // search has no article
  const name = e => e.tagName.toLowerCase() + (e.id ? "#" + e.id : e.className ? "." + String(e.className).split(" ")[0] : "")
    + " '" + e.textContent.trim().replace(/\s+/g, " ").slice(0, 40) + "'";
  const box = e => e.getBoundingClientRect();
  const style = e => getComputedStyle(e);
  const blocks = ["block", "flex", "grid", "table", "list-item", "flow-root", "table-caption"];
  const inFlow = e => e.checkVisibility() && box(e).width > 1 && box(e).height > 1 && style(e).float === "none"
    && ["static", "relative"].includes(style(e).position) && blocks.includes(style(e).display);
  const scrolls = e => e && e !== article && (["auto", "scroll"].includes(style(e).overflowX) || scrolls(e.parentElement));

  const overlaps = [], sticksOut = [], cutOff = [];
  const walk = parent => {
    const children = [...parent.children].filter(inFlow);
    children.forEach((a, i) => children.slice(i + 1).forEach(b => {
      const [p, q] = [box(a), box(b)];
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 2 && high > 2) overlaps.push(`${name(a)} and ${name(b)} by ${Math.round(wide)} x ${Math.round(high)}`);
    }));
    for (const child of children) {
      if ((box(child).right > innerWidth + 1 || box(child).left < -1) && !scrolls(child)) sticksOut.push(name(child));
      if (["hidden", "clip"].includes(style(child).overflowX) && child.scrollWidth > child.clientWidth + 1)
        cutOff.push(name(child));
      walk(child);
    }
  };
  walk(article);
  const regions = ["article", ".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article"]
    .map(selector => document.querySelector(selector)).filter(e => e && inFlow(e) || e === article);
  regions.forEach((a, i) => regions.slice(i + 1).forEach(b => {
    const [p, q] = [box(a), box(b)];
    if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 2)
      overlaps.push(`${name(a)} and ${name(b)}`);
  }));

  // Contrast by WCAG 2: (L1 + 0.05) / (L2 + 0.05), on the first painted background below the text.
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = colour => {
    paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
    return paint.getImageData(0, 0, 1, 1).data;
  };
  const luminance = colour => {
    const [r, g, b] = [...rgba(colour)].slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => !e ? "white" : rgba(style(e).backgroundColor)[3] > 127 ? style(e).backgroundColor : ground(e.parentElement);
  const faint = [];
  for (const e of article.querySelectorAll("p, li, td, th, dt, dd, figcaption, h1, h2, h3, a, code, strong, em")) {
    const text = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join("").trim();
    if (!text || !e.checkVisibility() || text === "#") continue;
    const [x, y] = [luminance(style(e).color), luminance(ground(e))].sort((x, y) => y - x);
    if ((x + 0.05) / (y + 0.05) < 4.5) faint.push(`${name(e)} ${((x + 0.05) / (y + 0.05)).toFixed(1)}`);
  }

  return {
    theme: document.documentElement.dataset.theme,
    scrollWidth: document.documentElement.scrollWidth, innerWidth,
    overlaps, sticksOut, cutOff, faint,
    images: [...document.images].map(e => ({
      source: e.getAttribute("src"), alt: e.alt, inArticle: article.contains(e), visible: e.checkVisibility(),
      naturalWidth: e.naturalWidth, width: box(e).width, ground: luminance(ground(e)) })),
    math: article.querySelectorAll(".math").length,
    rawMath: [...article.querySelectorAll(".math")].filter(e => !e.querySelector("mjx-container")).map(name),
    badMath: [...article.querySelectorAll("mjx-merror, [data-mjx-error]")].map(name),
    scripts: [...document.scripts].map(e => e.src).filter(Boolean),
    hints: [...document.querySelectorAll("link[rel~=preconnect], link[rel~=dns-prefetch], link[rel~=preload]")].map(e => e.href),
  };
}
