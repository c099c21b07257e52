/* Native controls and a sentence that is spoken: the frame of every explorer. */
(() => {
  "use strict";
  /* ---- controls: each has get() and set(value); any change draws anew ---- */
  const { make, number, chart } = window.bnbook.kit;
  const explorer = (live, title) => {
    let render = () => {};
    const panel = make("div", { class: "explorer-controls" }),
      charts = make("div", { class: "explorer-charts" });
    const result = make("p", { class: "explorer-result", "aria-live": "polite" });
    live.append(make("p", { class: "explorer-title" }, title), panel, charts, result);
    const changed = () => render();
    const labelled = (text, input, shown) =>
      make("label", { class: "explorer-field" }, make("span", {}, text, shown ? " " : "", shown ?? ""), input);
    return {
      panel,
      result,
      draw: changed,
      update: fn => {
        render = fn;
        render();
      },
      chart: options => chart(charts, options),
      say: html => {
        if (result.innerHTML !== html) result.innerHTML = html;
      },
      /* values: the stops, whatever they are; or from, to, step. */
      slider: ({ label, from = 0, to, step = 1, values, value, show = number, into = panel }) => {
        const stops = values ? { min: 0, max: values.length - 1, step: 1 } : { min: from, max: to, step };
        const input = make("input", { type: "range", ...stops }),
          output = make("b"); // an <output> would take the label for itself
        const get = () => (values ? values[Number(input.value)] : Number(input.value));
        const tell = () => {
          output.textContent = show(get());
          input.setAttribute("aria-valuetext", show(get()));
        };
        const set = v => {
          input.value = values
            ? values.reduce((best, w, k) => (Math.abs(w - v) < Math.abs(values[best] - v) ? k : best), 0)
            : v;
          tell();
        };
        input.addEventListener("input", () => {
          tell();
          changed();
        });
        into.append(labelled(label, input, output));
        set(value);
        const range = (min, max, grain) => {
          input.min = min;
          input.max = max;
          input.step = grain;
          tell();
        };
        return { get, set, range, input };
      },
      choice: ({ label, options, value, into = panel }) => {
        const select = make("select", {}, ...options.map(([key, text]) => make("option", { value: key }, text)));
        if (options.length) select.value = value ?? options[0][0];
        select.addEventListener("change", changed);
        into.append(labelled(label, select));
        return {
          get: () => select.value,
          set: v => {
            select.value = v;
          },
          input: select,
        };
      },
      toggle: ({ label, value = false, into = panel }) => {
        const input = make("input", { type: "checkbox" });
        input.checked = value;
        input.addEventListener("change", changed);
        into.append(make("label", { class: "explorer-check" }, input, " ", label));
        return {
          get: () => input.checked,
          set: v => {
            input.checked = v;
          },
          input,
        };
      },
      button: ({ label, press, into = panel }) => {
        const node = make("button", { type: "button" }, label);
        node.addEventListener("click", () => {
          press();
          changed();
        });
        into.append(node);
        return node;
      },
      row: (text, into = panel) => {
        const row = make(
          "div",
          { class: "explorer-row", role: "group", "aria-label": text },
          make("span", { class: "explorer-row-name" }, text),
        );
        into.append(row);
        return row;
      },
    };
  };
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  Object.assign(window.bnbook.kit, { explorer, still });
})();
