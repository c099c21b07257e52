/* Break the training: a learning rate and a γ in the plane of the measured boundary and of what theories predict. */
bnbook.explorer("break", "Break the training", (kit, data) => {
  "use strict";
  const { number } = bnbook.kit,
    { criticalRate } = bnbook.formulas;
  const EQUATIONS = {
    printed: "as printed",
    corrected: "corrected",
    through_batch: "through the batch",
    readout: "the readout alone",
  };
  const SUBJECTS = {
    printed: "The printed equations",
    corrected: "The corrected equations",
    through_batch: "The equations through the batch",
    readout: "The readout’s own curvature",
  };
  const INKS = { printed: "printed dashed", corrected: "corrected", through_batch: "theory dotted", readout: "theory" };
  const gamma = kit.slider({ label: "γ at the start", from: 0.25, to: 5, step: 0.05, value: 1 });
  const rate = kit.slider({
    label: "Learning rate η",
    from: -5,
    to: 1,
    step: 0.05,
    value: -1.5,
    show: v => number(10 ** v, 2),
  });
  const network = kit.choice({
    label: "Network and data",
    options: Object.entries(data.networks).map(([key, one]) => [key, one.title]),
  });
  const equations = kit.choice({ label: "Equations", options: Object.entries(EQUATIONS) });
  const tries = kit.row("Try:");
  const boundaryAt = (one, at) => {
    // straight lines between the measured γ, in logarithms
    const k = Math.min(data.gammas.length - 2, Math.max(0, data.gammas.findIndex(g => g >= at) - 1));
    const [a, b] = [data.gammas[k], data.gammas[k + 1]],
      t = (Math.log(at) - Math.log(a)) / (Math.log(b) - Math.log(a));
    const mean = j => one.boundary.reduce((sum, row) => sum + row[j], 0) / one.boundary.length;
    return mean(k) + t * (mean(k + 1) - mean(k));
  };
  const predicted = (one, name, g) =>
    Math.log10(
      name === "readout"
        ? (2 * (1 + data.momentum)) / (g * g * one.readout + 1)
        : criticalRate(one, { gamma: g, equations: name, batch: data.batch, base: one.base }, data.momentum),
    );
  const current = () => data.networks[network.get()];
  const there = name => () => rate.set(predicted(current(), name, gamma.get()));
  kit.button({ label: "go to the predicted limit", press: () => there(equations.get())(), into: tries });
  kit.button({
    label: "go to the measured limit",
    press: () => rate.set(boundaryAt(current(), gamma.get())),
    into: tries,
  });
  kit.button({
    label: "a small γ, a large rate",
    press: () => {
      gamma.set(0.25);
      rate.set(-0.5);
    },
    into: tries,
  });

  const plane = kit.chart({ title: "Learning rate against γ", height: 300 });
  plane.onDrag((x, y) => {
    gamma.set(Math.min(5, Math.max(0.25, x)));
    rate.set(Math.log10(y));
    kit.draw();
  }, "xy");
  const column = kit.chart({
    title: "How the recorded trainings ended: test loss",
    height: 170,
  });
  const curve = kit.chart({ title: "How recorded trainings at γ = 1 went: loss by step", height: 190 });
  const ten = v => 10 ** v;
  // a training that explodes leaves the picture at its upper edge
  const upTo = (step, loss, top) => {
    const out = loss.findIndex(v => !(v < top));
    return step.map((x, j) => [x, j === out ? top : out >= 0 && j > out ? NaN : loss[j]]);
  };

  kit.update(() => {
    const one = current(),
      [g, log, name] = [gamma.get(), rate.get(), equations.get()];
    const fine = [...Array(61).keys()].map(k => 0.25 * 20 ** (k / 60));
    const runs = one.map.flatMap((row, j) => row.map(([at, loss]) => [data.gammas[j], at, loss]));
    const far = ([a, b]) => (Math.log10(a / g) / 1.3) ** 2 + ((b - log) / 3) ** 2;
    const near = runs.reduce((best, run) => (far(run) < far(best) ? run : best));
    const lines = Object.keys(EQUATIONS).map(key => ({
      line: fine.map(x => [x, ten(predicted(one, key, x))]),
      class: `${INKS[key]} ${key === name ? "" : "thin faded"}`,
    }));
    const edge = data.gammas.flatMap((x, j) => one.boundary.map(row => [x, ten(row[j])]));
    const heights = [
      ...edge.map(p => p[1]),
      ...runs.map(([, at]) => ten(at)),
      ...lines.flatMap(l => l.line.map(p => p[1])),
    ];
    const y = { from: Math.min(...heights, ten(log)) / 1.5, to: Math.max(...heights, ten(log)) * 1.5, log: true };
    plane.draw({
      x: { from: 0.23, to: 5.5, log: true, ticks: [0.25, 0.5, 1, 2, 5], label: "γ" },
      y,
      key: [
        ["batch dotted", "measured limit, three networks"],
        ["muted dotted", "recorded: trains"],
        ["hollow dotted", "recorded: explodes"],
        ...Object.keys(EQUATIONS).map(key => [`${INKS[key]} lined`, `limit ${EQUATIONS[key]}`]),
      ],
      says: `The point lies at γ ${number(g)} and learning rate ${number(ten(log), 2)}.`,
      marks: [
        {
          dots: runs.map(([x, at, loss]) => [x, ten(at), Number.isFinite(loss) ? "muted" : "hollow"]),
          r: 3,
          class: "",
        },
        ...lines,
        { dots: edge, r: 4, class: "batch" },
        { rule: { x: g }, class: "muted dashed" },
        { dots: [[g, ten(log)]], r: 8, class: "none ringed" },
      ],
    });

    const row = one.map[data.gammas.indexOf(near[0])],
      losses = row.map(p => p[1]).filter(Number.isFinite);
    const top = Math.max(...losses, 0.1) * 1.3;
    column.draw({
      x: { from: ten(row[0][0]) / 1.4, to: ten(row.at(-1)[0]) * 1.6, log: true, label: "learning rate" },
      y: { from: 0, to: top },
      key: [
        ["muted dotted", `γ = ${number(near[0])}, after ${data.steps} steps, one training each`],
        ["hollow dotted", "exploded"],
      ],
      says: row
        .map(([at, loss]) => `${number(ten(at), 2)}: ${Number.isFinite(loss) ? number(loss) : "exploded"}`)
        .join("; "),
      marks: [
        { line: row.map(([at, loss]) => [ten(at), loss]), class: "muted" },
        {
          dots: row.map(([at, loss]) => [
            ten(at),
            Number.isFinite(loss) ? loss : top * 0.93,
            Number.isFinite(loss) ? "muted" : "hollow",
          ]),
          r: 4,
          class: "",
        },
        { dots: [[ten(near[1]), Number.isFinite(near[2]) ? near[2] : top * 0.93]], r: 6, class: "none ringed" },
        { rule: { x: ten(boundaryAt(one, near[0])) }, class: "batch dashed" },
      ],
    });

    const { away, step, loss } = one.byStep;
    const apart = away.map(d => Math.abs(d - (log - boundaryAt(one, g)))),
      nearest = apart.indexOf(Math.min(...apart));
    const start = Math.max(...loss.map(row => row[0])),
      seen = loss.flat().filter(v => Number.isFinite(v) && v > 0 && v < 100 * start);
    const side = d => `${number(ten(Math.abs(d)), 2)} times ${d < 0 ? "below" : "above"} the limit`;
    curve.draw({
      x: { from: 1, to: step.at(-1), label: "step" },
      y: { from: Math.min(...seen) / 1.5, to: 100 * start, log: true },
      key: [
        ["none lined", `${side(away[nearest])}, as near to the point as was recorded`],
        ["muted lined", "the others"],
      ],
      says: `The nearest recorded training, ${side(away[nearest])}, ${
        loss[nearest].every(Number.isFinite) ? `ends with a loss of ${number(loss[nearest].at(-1))}` : "explodes"
      }.`,
      marks: away
        .map((d, k) => ({
          line: upTo(step, loss[k], 100 * start),
          class: k === nearest ? "none" : "muted thin",
        }))
        .sort((a, b) => (a.class === "none") - (b.class === "none")),
    });

    const gap = log - boundaryAt(one, g),
      off = boundaryAt(one, g) - predicted(one, name, g),
      times = v => `${number(ten(Math.abs(v)), 2)} times`;
    const limit = `the measured limit of ${number(ten(boundaryAt(one, g)), 2)}`;
    const where =
      Math.abs(gap) < 0.03
        ? `lies on ${limit}`
        : gap > 0
          ? `is <strong>${times(gap)}</strong> ${limit}: such a training <strong>breaks</strong>`
          : `is a factor <strong>${number(ten(-gap), 2)}</strong> below ${limit}: such a training <strong>works</strong>`;
    const verdict =
      Math.abs(off) < 0.02 ? "would agree with it here" : `would put the limit ${times(off)} too ${off > 0 ? "low" : "high"}`;
    const started = name === "printed" && one.positions.some((places, l) => l > 0 && places > 1);
    const note = started ? " (the gradients of two places started from 1, for which the paper gives no start)" : "";
    kit.say(
      `The rate ${number(ten(log), 2)} ${where}. ${SUBJECTS[name]} ${verdict}${note}. The nearest recorded training (γ = ${number(near[0])}, η = ${number(ten(near[1]), 2)}) ` +
        (Number.isFinite(near[2]) ? `ended with a test loss of ${number(near[2])}.` : "exploded."),
    );
  });
});
