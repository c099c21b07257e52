/* The landscape, step by step: which losses lie ahead along the gradient, with and without batch norm. */
bnbook.explorer("landscape", "The landscape, step by step", (kit, data) => {
  "use strict";
  const { number } = bnbook.kit;
  const WORDS = { none: "without batch norm", batch: "with batch norm" },
    ARMS = Object.keys(WORDS);
  const rung = kit.choice({ label: "Network: VGG-A", options: data.map((one, k) => [k, one.title]) });
  rung.input.parentNode.hidden = data.length < 2;
  const step = kit.slider({
    label: "Training step",
    to: data[0].steps.length - 1,
    value: 0,
    show: k => number(data[Number(rung.get())].steps[k] ?? 0, 5),
  });
  const row = kit.row("Go to:");
  let playing = null;
  const stop = () => {
    if (!playing) return;
    clearInterval(playing);
    playing = null;
    play.textContent = "play";
    kit.result.setAttribute("aria-live", "polite");
    setTimeout(() => {
      const told = kit.result.innerHTML; // written unheard: said once more, now that it is listened to
      kit.result.replaceChildren();
      setTimeout(() => kit.result.childNodes.length || kit.say(told));
    });
  };
  const next = () => {
    const last = data[Number(rung.get())].steps.length - 1;
    if (step.get() >= last) stop();
    else step.set(step.get() + 1);
  };
  const play = kit.button({
    label: "play",
    into: row,
    press: () => {
      if (playing) return stop();
      if (step.get() >= data[Number(rung.get())].steps.length - 1) step.set(0);
      play.textContent = "stop";
      kit.result.setAttribute("aria-live", "off"); // not a sentence every half second
      playing = setInterval(() => {
        next();
        kit.draw();
      }, 500);
    },
  });
  // Nothing moves by itself for readers who asked for that, be it later.
  const motion = matchMedia("(prefers-reduced-motion: reduce)");
  const mind = () => {
    play.hidden = motion.matches;
    if (play.hidden) stop();
  };
  motion.addEventListener("change", mind);
  mind();
  kit.button({ label: "the next look", press: next, into: row });
  const seek = find => () => {
    stop();
    step.set(Math.max(0, find(ratios())));
  };
  kit.button({ label: "where batch norm is ahead most", press: seek(all => all.indexOf(Math.max(...all))), into: row });
  kit.button({ label: "where it is behind most", press: seek(all => all.indexOf(Math.min(...all))), into: row });
  rung.input.addEventListener(
    "change",
    () => {
      stop();
      // its end must be there before its value, and a training has looks of its own
      step.range(0, data[Number(rung.get())].steps.length - 1, 1);
    },
    { capture: true },
  );
  const range = (one, arm, k) => one.arms[arm].high[k] - one.arms[arm].low[k];
  const ratios = () => {
    const one = data[Number(rung.get())];
    return one.steps.map((_, k) => range(one, "none", k) / range(one, "batch", k));
  };

  const path = kit.chart({ title: "Losses met between ½ and 4 learning rates along the gradient", height: 240 });
  const here = kit.chart({ title: "The stretch ahead at this step; dashed: ½ and 4 learning rates", height: 200 });
  path.onDrag(x => {
    stop();
    const { steps } = data[Number(rung.get())],
      off = k => Math.abs(Math.log((steps[k] + 1) / x));
    step.set(steps.reduce((best, _, k) => (off(k) < off(best) ? k : best), 0));
    kit.draw();
  });
  step.input.addEventListener("input", stop);

  kit.update(() => {
    const one = data[Number(rung.get())],
      k = step.get(),
      x = one.steps.map(s => s + 1),
      top = Math.max(...ARMS.flatMap(arm => one.arms[arm].high.filter(Number.isFinite)));
    const low = Math.min(...ARMS.flatMap(arm => one.arms[arm].low.filter(Number.isFinite)));
    const losses = {
      from: low / 1.15,
      to: top * 1.15,
      log: true,
      ticks: [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].filter(v => v > low / 1.15 && v < top * 1.15),
    };
    path.draw({
      x: { from: 0.9, to: x.at(-1) * 1.1, log: true, label: "training step + 1" },
      y: losses,
      key: ARMS.map(arm => [arm, WORDS[arm]]),
      says: `${one.steps.length} looks at a training.`,
      marks: [
        ...ARMS.flatMap(arm => [
          { area: x.map((v, j) => [v, one.arms[arm].low[j], one.arms[arm].high[j]]), class: arm },
          { line: x.map((v, j) => [v, one.arms[arm].high[j]]), class: `${arm} thin` },
          { line: x.map((v, j) => [v, one.arms[arm].low[j]]), class: `${arm} thin` },
        ]),
        { rule: { x: x[k] }, class: "ink dashed" },
      ],
    });
    const { lengths } = one;
    here.draw({
      x: {
        from: lengths[0] / 1.2,
        to: lengths.at(-1) * 1.2,
        log: true,
        ticks: [0.5, 1, 2, 4, 16],
        format: String,
        label: "learning rates along the gradient",
      },
      y: losses,
      key: ARMS.map(arm => [`${arm} lined`, WORDS[arm]]),
      says: ARMS.map(arm => `${WORDS[arm]}: ${one.arms[arm].along[k].map(v => number(v)).join(", ")}`).join("; "),
      marks: [
        { rule: { x: 0.5 }, class: "ink dashed" },
        { rule: { x: 4 }, class: "ink dashed" },
        ...ARMS.flatMap(arm => [
          { line: lengths.map((a, j) => [a, one.arms[arm].along[k][j]]), class: arm },
          { dots: lengths.map((a, j) => [a, one.arms[arm].along[k][j]]), class: arm },
        ]),
      ],
    });
    const [plain, normed] = ARMS.map(arm => range(one, arm, k)),
      ratio = plain / normed;
    const told =
      ratio > 1.05
        ? `<strong>${number(ratio, 2)} times as wide without</strong> batch norm: with it the way is the smoother one`
        : ratio < 0.95
          ? `<strong>${number(1 / ratio, 2)} times as wide with</strong> batch norm: here the plain network’s way is the smoother one`
          : "about as wide with as without";
    kit.say(
      `VGG-A at ${one.title}. At step ${number(one.steps[k], 5)} the losses ahead range over ${number(plain, 2)} without and ${number(normed, 2)} with batch norm: ${told}. Batch norm has the narrower range at ` +
        `${ratios().filter(v => v > 1).length} of ${one.steps.length} looks (${one.seeds > 1 ? `geometric means of ${one.seeds} trainings` : "one training each"}).`,
    );
  });
});
