/* The transform by hand: eight values, their histogram before and after, and what a gradient loses on its way back. */
(() => {
  "use strict";
  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

  /* bnbook.normalizers.formulas.batch_norm_forward of one unit. */
  const forward = (x, gamma, beta, eps) => {
    const mu = mean(x),
      variance = mean(x.map(v => (v - mu) ** 2));
    const hat = x.map(v => (v - mu) / Math.sqrt(variance + eps));
    return { mean: mu, variance, hat, y: hat.map(v => gamma * v + beta) };
  };
  /* ∂ℓ/∂x = γ/√(σ²+ε) (g - mean g - x̂ mean(g x̂)): what goes along 1, what goes along x̂, what is left. */
  const backward = (g, x, gamma, eps) => {
    const { hat, variance } = forward(x, gamma, 0, eps),
      scale = gamma / Math.sqrt(variance + eps);
    const common = mean(g),
      along = mean(g.map((v, k) => v * hat[k]));
    return {
      arrives: g.map(v => scale * v),
      along1: g.map(() => scale * common),
      alongHat: hat.map(v => scale * along * v),
      x: g.map((v, k) => scale * (v - common - along * hat[k])),
    };
  };
  Object.assign(bnbook.formulas, { forward, backward });

  const START = [1.5, 2.0, 2.5, 2.5, 3.0, 3.5, 4.0, 7.0];
  const PUSHES = {
    one: ["one example", () => [0, 0, 0, 0, 0, 0, 0, 1]],
    all: ["all alike (along 1)", () => Array(8).fill(0.5)],
    stretch: ["by their distance from the mean (along x̂)", hat => hat.map(v => 0.5 * v)],
    mixed: ["each its own way", () => [0.6, -0.9, 0.2, 0.8, -0.5, 0.1, -0.7, 0.4]],
  };

  bnbook.explorer("transform", "The transform by hand", kit => {
    const { number } = bnbook.kit;
    const values = kit.row("Eight values of one unit, one from each example");
    const x = START.map((v, k) =>
      kit.slider({ label: `x${"₁₂₃₄₅₆₇₈"[k]}`, from: -8, to: 8, step: 0.1, value: v, into: values }),
    );
    const gamma = kit.slider({ label: "γ", from: -3, to: 3, step: 0.1, value: 1 });
    const beta = kit.slider({ label: "β", from: -4, to: 4, step: 0.1, value: 0 });
    const eps = kit.slider({
      label: "ε",
      values: [1e-5, 1e-3, 0.01, 0.1, 1, 10],
      value: 1e-5,
      show: v => (v < 1e-4 ? bnbook.kit.power(-5) : String(v)),
    });
    const mode = kit.choice({
      label: "Statistics",
      options: [
        ["training", "training: of these eight"],
        ["inference", "inference: frozen"],
      ],
    });
    const push = kit.choice({
      label: "The gradient pushes",
      options: Object.entries(PUSHES).map(([key, [text]]) => [key, text]),
      value: "one",
    });
    const tries = kit.row("Try:");
    const put = list => x.forEach((slider, k) => slider.set(list[k]));
    kit.button({
      label: "move all eight by 2",
      press: () => {
        const by = Math.max(...x.map(s => s.get())) + 2 <= 8 ? 2 : -2;
        put(x.map(s => s.get() + by));
      },
      into: tries,
    });
    kit.button({ label: "one far outlier", press: () => put([0, 0.2, -0.1, 0.1, 0, -0.2, 0.1, 8]), into: tries });
    kit.button({ label: "almost no spread", press: () => put([1, 1, 1, 1, 1.1, 1, 1, 1]), into: tries });
    kit.button({
      label: "start again",
      press: () => {
        put(START);
        gamma.set(1);
        beta.set(0);
        eps.set(1e-5);
        mode.set("training");
        push.set("one");
      },
      into: tries,
    });

    const before = kit.chart({ title: "What comes in: x", height: 130 });
    const after = kit.chart({ title: "What goes out: y = γ x̂ + β", height: 130 });
    const back = kit.chart({ title: "The gradient, example by example", height: 190 });
    const index = ["₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈"];
    let frozen = null;

    const histogram = (chart, list, ink, mean, width) => {
      const centre = Math.abs(mean) < 1e-12 * (1 + width) ? 0 : mean; // a mean of 0 but for rounding
      const reach = Math.max(9, ...list.map(v => Math.abs(v) + 1), Math.abs(centre) + width);
      const bins = new Map();
      for (const v of list) {
        const k = Math.floor(v + 1e-9);
        bins.set(k, (bins.get(k) ?? 0) + 1);
      }
      chart.draw({
        x: { from: -reach, to: reach, ticks: reach > 9 ? undefined : [-8, -4, 0, 4, 8] },
        y: { from: 0, to: 8.4, hidden: true },
        key: [[ink, `mean ${number(centre, 2)}, standard deviation ${number(width, 2)}`]],
        says: `Mean ${number(centre)}, standard deviation ${number(width)}; values ${list.map(v => number(v)).join(", ")}.`,
        marks: [
          { bars: [...bins].map(([k, n]) => [k + 0.5, 0, n]), width: 0.94, class: `${ink} pale` },
          { bars: [[centre, 0, 0.28]], width: 2 * width, class: "ink" },
          { rule: { x: centre }, class: "ink" },
          { dots: list.map(v => [v, 0.9]), r: 3.5, class: `${ink} ringed` },
        ],
      });
    };

    kit.update(() => {
      const list = x.map(slider => slider.get()),
        [c, b, e] = [gamma.get(), beta.get(), eps.get()];
      const now = forward(list, c, b, e),
        training = mode.get() === "training";
      /* Inference takes what training had last, its variance with m - 1 in place of m. */
      if (training) frozen = { mean: now.mean, variance: (now.variance * 8) / 7 };
      const scale = c / Math.sqrt((training ? now : frozen).variance + e);
      const y = training ? now.y : list.map(v => scale * (v - frozen.mean) + b);
      const centre = mean(y),
        width = Math.sqrt(mean(y.map(v => (v - centre) ** 2)));
      histogram(before, list, "none", now.mean, Math.sqrt(now.variance));
      histogram(after, y, "batch", centre, width);

      const g = PUSHES[push.get()][1](now.hat),
        parts = backward(g, list, c, e);
      const arrives = g.map(v => scale * v),
        left = training ? parts.x : arrives;
      const reach = 1.15 * Math.max(1e-9, ...arrives.map(Math.abs), ...left.map(Math.abs));
      back.draw({
        x: { from: 0.4, to: 8.6, ticks: [1, 2, 3, 4, 5, 6, 7, 8], format: v => `x${index[v - 1]}` },
        y: { from: -reach, to: reach, ticks: [0], format: () => "0" },
        key: [
          ["muted", "what arrives, ∂ℓ/∂y · γ/σ"],
          ["batch", "what is left, ∂ℓ/∂x"],
        ],
        says: `Arrives, scaled: ${arrives.map(v => number(v, 2)).join(", ")}. Left: ${left.map(v => number(v, 2)).join(", ")}.`,
        marks: [
          { bars: arrives.map((v, k) => [k + 0.8, 0, v]), width: 0.34, class: "muted" },
          { bars: left.map((v, k) => [k + 1.2, 0, v]), width: 0.34, class: "batch" },
          { rule: { y: 0 }, class: "axis" },
        ],
      });

      const square = v => v.reduce((sum, w) => sum + w * w, 0);
      const [all, along1, kept] = [arrives, parts.along1, left].map(square);
      if (training && !(all > 0))
        return kit.say(
          c === 0 ? "γ is 0: every output is β, and no gradient comes back." : "No gradient arrives: nothing is lost.",
        );
      const share = v => `<strong>${number(100 * Math.max(0, v / all), 3)} %</strong>`;
      kit.say(
        !training
          ? "In inference the statistics are constants: every example’s gradient is multiplied by γ/σ and nothing is " +
              "lost. Move one value: the other seven outputs stay where they are."
          : `Of the square of the gradient ${share(along1)} is lost along 1 (the push that all share: the mean takes it ` +
              `out) and ${share(all - along1 - kept)} along x̂ (the stretch: the variance takes it out); ${share(kept)} ` +
              "is left. Move one value: all eight outputs move.",
      );
    });
  });
})();
