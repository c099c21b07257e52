/* Small networks side by side, trained in the page from the same weights on the same batches, plain, with batch norm, with noise. */
bnbook.explorer("train", "Train small networks side by side", (kit, _, place) => {
  "use strict";
  const { number, still } = bnbook.kit,
    { generator, spirals, network, copyNetwork, noise, descend } = bnbook.formulas;
  const ARMS = {
    none: "without batch norm",
    batch: "with batch norm",
    noisy: "with batch norm and noise behind it",
    noise: "with the noise alone",
  };
  const WIDTH = 12,
    BATCH = 64,
    STEPS = 400,
    SMOOTH = 20,
    RIGHT = 90; // per cent; what counts as trained
  const rates = [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];
  const rate = kit.slider({ label: "Learning rate", values: rates, value: 1 });
  const depth = kit.slider({ label: "Hidden layers", from: 2, to: 12, value: 8, show: String });
  const shaking = kit.slider({
    label: "Noise",
    from: 0,
    to: 5,
    step: 0.5,
    value: 1,
    show: v => `${number(v)} × the paper’s`,
  });
  const control = kit.toggle({ label: "The noise alone, too", value: "alone" in place });
  let seed = 1;
  const tries = kit.row("Try:");
  const set =
    (...values) =>
    () =>
      [rate, depth, shaking].forEach((control, k) => control.set(values[k]));
  kit.button({ label: "a rate that suits all", press: set(0.1, 8, 1), into: tries });
  kit.button({ label: "one that breaks the plain network", press: set(1, 8, 1), into: tries });
  kit.button({ label: "three times the noise", press: set(1, 8, 3), into: tries });
  kit.button({
    label: "other networks",
    press: () => {
      seed += 1;
    },
    into: tries,
  });
  const learned = kit.chart({ title: "Share of the batch that is put on the right side", height: 200 });
  const handed = kit.chart({ title: "What one unit in the middle hands to its rectifier: its mean", height: 170 });

  /* One training of each kind: the nets, and by step the share that is right and the means of a layer's units. */
  const begin = () => {
    const draw = generator(seed),
      first = network(draw, [2, ...Array(depth.get()).fill(WIDTH), 1]);
    const names = Object.keys(ARMS).filter(arm => arm !== "noise" || control.get());
    return {
      names,
      draw,
      shake: generator(seed + 1e6),
      rate: rate.get(),
      strength: shaking.get(),
      layer: Math.floor(depth.get() / 2),
      nets: Object.fromEntries(names.map(arm => [arm, copyNetwork(first)])),
      right: Object.fromEntries(names.map(arm => [arm, []])),
      means: Object.fromEntries(names.map(arm => [arm, []])),
    };
  };
  const advance = run => {
    const batch = spirals(run.draw, BATCH),
      noises = run.nets.noisy.slice(0, -1).map(layer => noise(run.shake, BATCH, layer.outputs, run.strength));
    for (const arm of run.names) {
      const [normed, shaken] = [["batch", "noisy"].includes(arm), ["noisy", "noise"].includes(arm) ? noises : []],
        one = descend(run.nets[arm], batch, run.rate, normed, shaken),
        middle = one.handed[run.layer];
      run.right[arm].push(Number.isFinite(one.loss) ? 100 * one.right : 50);
      const means = new Float64Array(WIDTH);
      middle.forEach((v, i) => {
        means[i % WIDTH] += v / BATCH;
      });
      run.means[arm].push(means);
    }
  };
  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;
  const smooth = (values, k) => mean(values.slice(Math.max(0, k + 1 - SMOOTH), k + 1));
  /* How far the units' means jump from a step to the next. */
  const jump = means => mean(means.slice(1).map((now, k) => mean([...now].map((v, j) => Math.abs(v - means[k][j])))));

  const picture = run => {
    const done = run.right.none.length,
      x = { from: 0, to: STEPS, label: "training step" },
      at = [...Array(done).keys()].filter(k => k % 4 === 3);
    learned.draw({
      x,
      y: { from: 40, to: 102, ticks: [50, 75, 100], format: v => `${v} %` },
      key: run.names.map(arm => [`${arm} lined`, ARMS[arm]]),
      says: run.names.map(arm => `${ARMS[arm]}: ${done ? number(smooth(run.right[arm], done - 1)) : "–"} %`).join("; "),
      marks: [
        { rule: { y: 50 }, class: "muted dashed" },
        ...run.names.map(arm => ({ line: at.map(k => [k + 1, smooth(run.right[arm], k)]), class: arm })),
      ],
    });
    const means = run.names.flatMap(arm => run.means[arm].map(([v]) => Math.abs(v)));
    const sizes = means.filter(v => v <= 6).sort((a, b) => a - b); // what left the picture does not set its scale
    const reach = [1, 2, 4].find(v => v >= (sizes[Math.floor(0.98 * sizes.length)] ?? 0)) ?? 6; // single leaps are cut
    handed.draw({
      x,
      y: { from: -reach, to: reach, ticks: [-reach, 0, reach] },
      says: `Unit 1 of hidden layer ${run.layer + 1}.`,
      marks: [
        { rule: { y: 0 }, class: "muted" },
        ...["noise", "noisy", "none", "batch"].filter(arm => run.names.includes(arm)).map(arm => ({
          line: run.means[arm].map(([v], k) => [k + 1, Math.abs(v) > reach ? NaN : v]),
          class: `${arm} thin`,
        })),
      ],
    });
  };

  const trained = share => share >= RIGHT;
  const sentence = run => {
    const end = Object.fromEntries(run.names.map(arm => [arm, smooth(run.right[arm], STEPS - 1)]));
    const shown = run.names.map(arm => `${ARMS[arm]} <strong>${number(end[arm])} %</strong>`).join(", ");
    const [plain, normed, noisy] = ["none", "batch", "noisy"].map(arm => trained(end[arm])),
      far = number(jump(run.means.noisy) / jump(run.means.batch), 2),
      farther = number(jump(run.means.noisy) / jump(run.means.none), 2);
    const times = `${far} times as far from step to step${plain ? `, ${farther} times as far as the plain network’s` : ""}`;
    const told =
      plain && normed
        ? "At this rate all is well without it, too; try a larger one."
        : normed
          ? "Batch norm still trains where the plain network does not."
          : plain
            ? "Here batch norm is the one that fails."
            : "Neither trains in so few steps.";
    const shaken = !normed
      ? ""
      : noisy
        ? ` The noise moves what its units hand on ${times}; it trains all the same: what this one needs is not steady inputs.`
        : ` Moved ${times}, its units are shaken too much.`;
    return `On the right side after ${STEPS} steps: ${shown}. ${told}${run.strength ? shaken : ""} A toy in your browser, not evidence.`;
  };

  /* Frame by frame while the picture is in sight, and at once where nothing may move by itself. */
  let current = null,
    seen = false,
    ticking = false;
  const tick = () => {
    ticking = false;
    const run = current;
    if (!seen || run.right.none.length >= STEPS) return;
    const until = performance.now() + (still() ? 60 : 12);
    while (run.right.none.length < STEPS && performance.now() < until) advance(run);
    const over = run.right.none.length >= STEPS;
    if (over || !still()) picture(run);
    if (over) kit.say(sentence(run));
    else go();
  };
  const go = () => {
    if (!ticking) requestAnimationFrame(tick);
    ticking = true;
  };
  new IntersectionObserver(entries => {
    seen = entries.at(-1).isIntersecting;
    if (seen) go();
  }).observe(kit.panel);
  kit.update(() => {
    current = begin();
    picture(current);
    kit.say(
      `Networks of ${depth.get()} layers, the same first weights, the same batches of two spirals, learning rate ${number(rate.get())}: they are being trained now …`,
    );
    go();
  });
});
