/* Move the goalposts: any claim with its bound, its seeds and its confidence in the reader's hand. */
bnbook.explorer("goalposts", "Move the goalposts", (kit, data, given) => {
  "use strict";
  const { number, make } = bnbook.kit,
    { evaluate, judge, edges, isExact, isFactor, asked, telling, plain, sliderEnds } = bnbook.formulas;
  const chapters = [...new Set(data.map(claim => claim.chapter))];
  let claim,
    test,
    bounds,
    dropped = new Set(),
    stuck = false;
  const real = v => bnbook.formulas.real(test, v),
    shown = (v, digits) => bnbook.formulas.shown(test, v, digits);
  const exact = () => isExact(test);
  const LEAST = -16; // the left end of a tolerance's slider is 0
  const atBound = v =>
    test.kind === "identity" ? (v > LEAST ? 10 ** v : 0) : test.kind === "inequality" ? Math.round(v) : v;
  const said = (v, digits) => (test ? asked(test, atBound(v), digits) : "");
  const short = text => (text.length > 95 ? `${text.slice(0, 92)} …` : text);
  const choice = kit.choice({ label: "Claim", options: [] });
  choice.input.replaceChildren(
    ...chapters.map(chapter =>
      make(
        "optgroup",
        { label: chapter },
        ...data.filter(one => one.chapter === chapter).map(one => make("option", { value: one.id }, short(one.says))),
      ),
    ),
  );
  choice.input.parentNode.classList.add("wide");
  choice.set(data.some(one => one.id === given.claim) ? given.claim : data[0].id);
  const part = kit.choice({ label: "Its part", options: [] });
  part.input.parentNode.classList.add("wide");
  const bound = kit.slider({ label: "Threshold", from: 0, to: 1, value: 0, show: v => said(v) });
  const confidence = kit.slider({ label: "Confidence", from: 80, to: 99, value: 95, show: v => `${v} %` });
  const tries = kit.row("Try:");
  const seeds = kit.row("Seeds that count:");
  const chart = kit.chart({ title: "Effect, one dot a seed", height: 150 });

  const keeps = one => one.seeds.map(s => one.seeds.length < 2 || !dropped.has(s));
  const asLocked = () => evaluate(test, test.bound, 0.95, Array(test.seeds.length).fill(true));

  const selectTest = () => {
    test = claim.tests[Number(part.get())];
    const locked = asLocked();
    bound.range(...sliderEnds(test, [...locked.values, ...locked.interval].filter(Number.isFinite)), "any");
    const place = bounds[Number(part.get())];
    bound.set(test.kind === "identity" ? Math.max(LEAST, Math.log10(place)) : place);
    seeds.hidden = test.seeds.length < 2;
    confidence.input.parentNode.hidden = exact();
    seeds.replaceChildren(seeds.firstChild);
    test.seeds.forEach(s =>
      kit.toggle({ label: String(s), value: !dropped.has(s), into: seeds }).input.addEventListener(
        "change",
        event => {
          event.target.checked ? dropped.delete(s) : dropped.add(s);
        },
        { capture: true },
      ),
    );
  };
  const selectClaim = () => {
    claim = data.find(one => one.id === choice.get());
    bounds = claim.tests.map(one => one.bound);
    dropped = new Set();
    part.input.replaceChildren(...claim.tests.map((one, k) => make("option", { value: k }, short(one.says))));
    part.input.parentNode.hidden = claim.tests.length < 2;
    confidence.set(95);
    selectTest();
  };
  choice.input.addEventListener("change", selectClaim, { capture: true });
  part.input.addEventListener("change", selectTest, { capture: true });
  bound.input.addEventListener(
    "input",
    () => {
      bounds[Number(part.get())] = atBound(bound.get());
    },
    { capture: true },
  );
  chart.onDrag(x => {
    if (exact()) return;
    bound.set(test.side ? x : Math.abs(x - test.centre));
    bounds[Number(part.get())] = bound.get();
    kit.draw();
  });
  const putBack = () => {
    const seen = part.get();
    selectClaim();
    part.set(seen);
    selectTest();
  };
  kit.button({ label: "as it was locked", press: putBack, into: tries });
  kit.button({ label: "the least threshold that turns it", press: () => turn(), into: tries });
  kit.button({
    label: "the next claim",
    press: () => {
      choice.set(data[(data.indexOf(claim) + 1) % data.length].id);
      selectClaim();
    },
    into: tries,
  });

  /* Move the bound to where this test's answer changes next, if it does within the slider's reach. */
  const turn = () => {
    const k = Number(part.get()),
      answer = v => evaluate(test, atBound(v), confidence.get() / 100, keeps(test)).holds;
    const [now, low, high] = [bound.get(), Number(bound.input.min), Number(bound.input.max)],
      start = answer(now);
    for (let step = 1; step <= 400; step++)
      for (const way of [1, -1]) {
        const v = now + (way * step * (high - low)) / 400;
        if (v < low || v > high || answer(v) === start) continue;
        let [before, after] = [v - (way * (high - low)) / 400, v];
        for (let round = 0; round < 30; round++) {
          const middle = (before + after) / 2;
          if (answer(middle) === start) before = middle;
          else after = middle;
        }
        bound.set(after);
        bounds[k] = atBound(bound.get());
        return;
      }
    stuck = true;
  };

  selectClaim();
  kit.update(() => {
    const k = Number(part.get()),
      level = confidence.get() / 100,
      keep = keeps(test);
    const mine = claim.tests.map((each, j) => evaluate(each, bounds[j], level, keeps(each)));
    const held = mine.map(each => each.holds);
    const one = mine[k],
      verdict = judge(claim, held);
    const [effect, low, high] = one.interval,
      [least, most] = exact() ? [-Infinity, bounds[k]] : edges(test, bounds[k]);
    // the values of the result that decides now
    const all = evaluate(test, test.bound, 0.95, Array(test.seeds.length).fill(true), one.place).values;
    const near = [
      ...all,
      effect,
      low,
      high,
      ...(exact() ? [bounds[k]] : [...edges(test, bounds[k]), ...edges(test, test.bound)]),
    ].filter(Number.isFinite);
    const span = Math.max(...near) - Math.min(...near) || 1,
      log = test.kind === "ratio" || test.kind === "identity";
    const above = near.filter(v => v > 0);
    const floor = log
      ? Math.max(1e-17, (above.length ? Math.min(...above) : 1) / 1.2)
      : Math.min(...near) - 0.08 * span;
    const x = {
      from: floor,
      to: log ? Math.max(floor, ...near) * 1.2 : Math.max(...near) + 0.08 * span,
      log: log && Math.max(...near) / floor > 20,
      format: v => number(real(v)),
      label: isFactor(test) ? "effect, a factor" : test.unit ? `effect, in ${test.unit}` : "effect",
    };
    const inside = v => Math.min(x.to, Math.max(x.from, v));
    chart.draw({
      x,
      y: { from: 0, to: 1, hidden: true },
      key: [
        ["batch", exact() ? "violations" : `effect and ${confidence.get()} % interval`],
        ["corrected", "where the claim holds"],
        ["hollow dotted", "dropped"],
      ],
      says: `${shown(effect)}, ${shown(low)} to ${shown(high)}; it must be ${said(bound.get())}.`,
      marks: [
        {
          area: [
            [inside(least), 0, 1],
            [inside(most), 0, 1],
          ],
          class: "corrected",
        },
        ...[least, most].filter(Number.isFinite).map(v => ({ rule: { x: inside(v) }, class: "corrected" })),
        { dots: all.map((v, j) => [inside(v), 0.62 + 0.1 * (j % 3), keep[j] ? "batch pale-dot" : "hollow"]), r: 4, class: "" },
        ...(exact() || !Number.isFinite(effect)
          ? []
          : [
              {
                line: [
                  [inside(low), 0.3],
                  [inside(high), 0.3],
                ],
                class: "batch thick",
              },
              { dots: [[effect, 0.3]], r: 6, class: "batch ringed" },
            ]),
      ],
    });
    const at = keep.filter(Boolean).length;
    const same = verdict === claim.verdict,
      moved = bounds.some((v, j) => v !== claim.tests[j].bound) || dropped.size > 0 || level !== 0.95;
    const digits = telling(test, [effect, low, high, least, most]);
    const ends = exact()
      ? ""
      : Number.isFinite(low) && Number.isFinite(high)
        ? `, ${confidence.get()} % interval ${number(real(low), digits)} to ${number(real(high), digits)}`
        : ", no interval";
    kit.say(
      `<em>${plain(claim.says)}</em><br>In the book: <strong>${plain(claim.words)}</strong>${claim.exploratory ? " (exploratory)" : ""}. ` +
        (moved ? `Yours: <strong>${verdict}</strong>${same ? ", the same" : ""}. ` : "Nothing is moved yet. ") +
        (Number.isFinite(effect)
          ? `Effect ${shown(effect, digits)}${ends}, from ${at} ${at === 1 ? "value" : "seeds"}; asked: ${said(bound.get(), digits)}.`
          : "With these values there is no interval, so nothing is decided.") +
        (stuck ? " No threshold on this slider turns its answer." : ""),
    );
    stuck = false;
  });
});
