/* Light the fuse: how the gradient grows from the last hidden layer to the first, by equation (explosion-rate). */
bnbook.explorer("fuse", "Light the fuse", (kit, data) => {
  "use strict";
  const { number } = bnbook.kit,
    { growth, residualProfile, chainProfile } = bnbook.formulas;
  const NAMES = { relu: "ReLU", tanh: "tanh", linear: "none (linear)", zigzag: "a zigzag" };
  const sizes = [...Array(33).keys()].map(k => Math.round(2 ** (2 + k / 4)));
  const depth = kit.slider({ label: "Hidden layers", from: 2, to: 100, value: data.layers.depth, show: String });
  const batch = kit.slider({ label: "Batch size", values: sizes, value: data.layers.size, show: String });
  const phi = kit.choice({ label: "Nonlinearity", options: Object.entries(NAMES) });
  const skip = kit.toggle({ label: "Skip connections" });
  const tries = kit.row("Try:");
  const set =
    (...values) =>
    () =>
      [depth, batch, phi, skip].forEach((control, k) => control.set(values[k]));
  kit.button({
    label: "the measured network",
    press: set(data.layers.depth, data.layers.size, "relu", false),
    into: tries,
  });
  kit.button({ label: "put the fuse out", press: set(data.layers.depth, data.layers.size, "relu", true), into: tries });
  kit.button({ label: "no nonlinearity, batches of 4", press: set(20, 4, "linear", false), into: tries });
  kit.button({ label: "where larger batches are worse", press: set(20, 1024, "zigzag", false), into: tries });

  const bars = kit.chart({ title: "Gradient in each hidden layer, times the last one’s", height: 240 });
  const rates = kit.chart({ title: "Growth of the squared gradient in one layer, by batch size", height: 190 });
  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

  kit.update(() => {
    const [L, m, name, residual] = [depth.get(), batch.get(), phi.get(), skip.get()];
    const one = growth(name, m);
    const profile = (residual ? residualProfile(one, L) : chainProfile(one, L)).map(Math.sqrt);
    /* The measured networks have this depth, batch size and nonlinearity, or there are none to show. */
    const same = L === data.layers.depth && m === data.layers.size && name === "relu";
    const measured = same ? data.layers[residual ? "residual" : "batch"] : [];
    const dots = measured.flatMap(norms => norms.map((v, k) => [k + 1, v / norms[L - 1]]));
    const top = Math.max(...profile, ...dots.map(([, v]) => v), 10);
    const low = Math.min(1, ...dots.map(([, v]) => v)) * 0.7;
    bars.draw({
      x: {
        from: 0.3,
        to: L + 0.7,
        label: "layer",
        ticks: [1, ...[0.25, 0.5, 0.75, 1].map(s => Math.round(s * L))].filter((v, k, all) => all.indexOf(v) === k),
      },
      y: { from: low, to: top * 1.6, log: true },
      key: [
        [residual ? "corrected" : "batch", "theory, for wide layers"],
        dots.length
          ? ["measured dotted", `${measured.length} measured networks of ${data.layers.width} units`]
          : ["", "no network was measured here"],
      ],
      says: `From ${number(profile[0])} in layer 1 to 1 in layer ${L}.`,
      marks: [
        { bars: profile.map((v, k) => [k + 1, low, v]), width: 0.72, class: residual ? "corrected" : "batch" },
        { dots, r: 2, class: "measured" },
      ],
    });

    const found = data.rates.measured[name] ?? {};
    const points = Object.entries(found).flatMap(([size, values]) => values.map(v => [Number(size), v]));
    const line = [4, 5, 1024].map(size => [size, growth(name, size).through]);
    data.rates.sizes.forEach((size, k) => {
      if (size < 1024) line.push([size, data.rates.theory[name][k]]);
    });
    line.sort((a, b) => a[0] - b[0]);
    rates.draw({
      x: { from: 3.6, to: 1150, log: true, ticks: [4, 16, 64, 256, 1024], label: "batch size", format: String },
      y: { from: 0.9, to: Math.max(...line.map(p => p[1]), ...points.map(p => p[1]), one.through) * 1.06 },
      key: [
        ["theory", "theory"],
        ["measured dotted", `measured networks of ${data.rates.layers} layers`],
        ["batch dotted", "here"],
      ],
      says: `At batch size ${m} theory gives ${number(one.through)}.`,
      marks: [
        { rule: { x: m }, class: "muted dashed" },
        { line, class: "theory" },
        { dots: points, r: 2.5, class: "measured" },
        { dots: [[m, one.through]], r: 6, class: "batch ringed" },
      ],
    });

    const here = dots.filter(([k]) => k === 1).map(([, v]) => Math.log(v));
    const beside = here.length ? ` Measured: ${number(Math.exp(mean(here)))} times, in ${here.length} networks.` : "";
    const fate =
      profile[0] >= 1e4
        ? "No single learning rate suits both ends."
        : profile[0] >= 30
          ? "The layers learn at very different speeds."
          : "That is mild.";
    kit.say(
      residual
        ? `With skip connections the first layer’s gradient is <strong>${number(profile[0])} times</strong> the last one’s: it grows with the depth, about as its power ${number(one.through / 2)}. ${fate}${beside}`
        : `Each layer multiplies the squared gradient by <strong>${number(one.through, 4)}</strong>, so the first layer’s gradient is <strong>${number(profile[0])} times</strong> the last one’s. ${fate}${beside}`,
    );
  });
});
