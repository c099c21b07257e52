/* The drawing kit: numbers as readers write them, charts in SVG at the width that they have. */
(() => {
  "use strict";
  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "g", "path", "line", "rect", "circle", "text", "title"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(key, value);
    node.append(...children.filter(child => child !== undefined));
    return node;
  };

  /* ---- numbers as readers write them ---- */
  const UP = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = k => "10" + [...String(k)].map(c => UP[c]).join("");
  const number = (x, digits = 3) => {
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : x > 0 ? "∞" : "−∞";
    x = x || 0; // no −0
    const size = Math.abs(x);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
      const [head, tail] = x.toExponential(1).split("e");
      return `${Number(head) === 1 ? "" : `${String(Number(head)).replace("-", "−")} × `}${power(Number(tail))}`;
    }
    const places = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    const rounded = size < 10 ** digits ? x : Number(x.toPrecision(digits));
    return rounded.toLocaleString("en-US", { maximumFractionDigits: places }).replace("-", "−");
  };

  /* ---- charts ---- */
  const ticksOf = ({ from, to, log, ticks }, room) => {
    if (ticks) return ticks;
    const most = Math.max(2, Math.floor(room / 55));
    if (log) {
      const [a, b] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
      const each = Math.max(1, Math.ceil((b - a) / most)),
        found = [];
      for (let k = a; k <= b; k += each) found.push(10 ** k);
      return found;
    }
    const raw = (to - from) / most,
      unit = 10 ** Math.floor(Math.log10(raw)),
      found = [];
    const each = unit * ([1, 2, 5].find(s => s * unit >= raw * 0.999) ?? 10);
    for (let v = Math.ceil(from / each - 1e-9) * each; v <= to + 1e-9 * each; v += each)
      found.push(Math.abs(v) < 1e-12 * each ? 0 : v);
    return found;
  };
  const tickText = (axis, v) =>
    axis.format
      ? axis.format(v)
      : axis.log && (v >= 1e5 || v < 1e-3 * 0.99)
        ? power(Math.round(Math.log10(v)))
        : number(v, 4);
  const scale = ({ from, to, log }, low, high) => {
    const at = log ? Math.log : v => v,
      [a, b] = [at(from), at(to)];
    const of = v => low + ((high - low) * (at(v) - a)) / (b - a);
    of.back = place => {
      const t = a + ((b - a) * (place - low)) / (high - low);
      return log ? Math.exp(t) : t;
    };
    return of;
  };
  const path = points =>
    points.reduce(
      ({ text, up }, [x, y]) =>
        Number.isFinite(x) && Number.isFinite(y)
          ? { text: text + `${up ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`, up: false }
          : { text, up: true },
      { text: "", up: true },
    ).text;

  const MARKS = {
    line: (m, X, Y) => [make("path", { class: `line ${m.class}`, d: path(m.line.map(([x, y]) => [X(x), Y(y)])) })],
    area: (m, X, Y) => {
      // [x, low, high]
      const edge = k => m.area.map(p => [X(p[0]), Y(p[k])]);
      return [make("path", { class: `area ${m.class}`, d: path([...edge(1), ...edge(2).reverse()]) })];
    },
    bars: (m, X, Y) =>
      m.bars.map(([x, low, high, extra]) => {
        const [left, right] = [X(x - m.width / 2), X(x + m.width / 2)],
          [top, foot] = [Y(high), Y(low)].sort((a, b) => a - b);
        return make("rect", {
          class: `bar ${m.class} ${extra ?? ""}`,
          x: left,
          width: Math.max(0.8, right - left),
          y: top,
          height: foot - top,
        });
      }),
    dots: (m, X, Y) =>
      m.dots
        .filter(p => p.slice(0, 2).every(Number.isFinite))
        .map(([x, y, extra]) =>
          make("circle", { class: `dot ${m.class} ${extra ?? ""}`, cx: X(x), cy: Y(y), r: m.r ?? 3 }),
        ),
    rule: (m, X, Y, box) => {
      const [x1, x2, y1, y2] =
        "x" in m.rule ? [X(m.rule.x), X(m.rule.x), box.top, box.foot] : [box.left, box.right, Y(m.rule.y), Y(m.rule.y)];
      return [make("line", { class: `line ${m.class}`, x1, x2, y1, y2 })];
    },
    note: (m, X, Y, box) => {
      const [x, y, text, anchor = "start"] = m.note,
        at = v => Math.min(box.right, Math.max(box.left, v));
      return [
        make(
          "text",
          {
            class: `note ${m.class ?? ""}`,
            x: at(X(x)) + (m.dx ?? 0),
            y: Math.max(box.top + 9, Math.min(box.foot - 3, Y(y) + (m.dy ?? 0))),
            "text-anchor": anchor,
          },
          text,
        ),
      ];
    },
  };

  const chart = (parent, { title, height = 220 }) => {
    const svg = make("svg", { role: "img", class: "chart" });
    const key = make("p", { class: "chart-key" });
    parent.append(make("div", { class: "chart-box" }, make("p", { class: "chart-title" }, title), key, svg));
    const holder = svg.parentNode;
    let last, X, Y, dragged;
    const draw = spec => {
      last = spec;
      const width = Math.max(200, svg.clientWidth || holder.clientWidth || 600),
        { x, y } = spec;
      const box = { left: y.hidden ? 14 : 50, right: width - 12, top: 8, foot: height - (x.label ? 36 : 22) };
      [X, Y] = [scale(x, box.left, box.right), scale(y, box.foot, box.top)];
      const parts = [];
      for (const v of y.hidden ? [] : ticksOf(y, (box.foot - box.top) * 1.4))
        parts.push(
          make("line", { class: "grid", x1: box.left, x2: box.right, y1: Y(v), y2: Y(v) }),
          make("text", { class: "tick", x: box.left - 6, y: Y(v) + 4, "text-anchor": "end" }, tickText(y, v)),
        );
      for (const v of ticksOf(x, box.right - box.left))
        parts.push(make("text", { class: "tick", x: X(v), y: box.foot + 16, "text-anchor": "middle" }, tickText(x, v)));
      parts.push(make("line", { class: "axis", x1: box.left, x2: box.right, y1: box.foot, y2: box.foot }));
      if (x.label)
        parts.push(make("text", { class: "tick", x: box.right, y: height - 4, "text-anchor": "end" }, x.label));
      for (const mark of spec.marks)
        for (const [kind, drawn] of Object.entries(MARKS)) if (kind in mark) parts.push(...drawn(mark, X, Y, box));
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.style.height = `${height}px`;
      svg.setAttribute("aria-label", `${title}. ${spec.says ?? ""}`);
      svg.replaceChildren(...parts);
      key.replaceChildren(...(spec.key ?? []).map(([ink, text]) => make("span", { class: `key ${ink}` }, text)));
    };
    new ResizeObserver(() => {
      if (last) draw(last);
    }).observe(holder);
    const at = event => {
      const edge = svg.getBoundingClientRect();
      return [X.back(event.clientX - edge.left), Y.back(event.clientY - edge.top)];
    };
    /* A finger or the mouse on the picture moves what a control beside it moves too. */
    const onDrag = (moved, along = "x") => {
      svg.classList.add("draggable", `along-${along}`);
      svg.addEventListener("pointerdown", event => {
        if (event.button || !event.isPrimary) return;
        dragged = true;
        svg.setPointerCapture(event.pointerId);
        moved(...at(event));
      });
      svg.addEventListener("pointermove", event => {
        if (dragged) moved(...at(event));
      });
      for (const end of ["pointerup", "pointercancel"])
        svg.addEventListener(end, () => {
          dragged = false;
        });
    };
    return { draw, onDrag };
  };

  Object.assign(window.bnbook.kit, { make, number, power, chart });
})();
