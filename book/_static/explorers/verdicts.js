/* bookpress.claims.kinds and judging in the page: from values per seed to a verdict, at any bound and level. */
(() => {
  "use strict";
  const { pairedDifference, meanLevel, geometricRatio, ratioOfMeans, mean } = bnbook.formulas;
  const pair = (a, b) => ({ values: a.map((v, k) => v - b[k]), interval: level => pairedDifference(a, b, level) });
  const CELLS = {
    difference: ([a, b]) => [pair(a, b)],
    equivalence: ([a, b]) => [pair(a, b)],
    ordering: rows => rows.slice(1).map((row, k) => pair(row, rows[k])),
    ratio: ([a, b]) => [{ values: a.map((v, k) => v / b[k]), interval: level => geometricRatio(a, b, level) }],
    agreement: ([a, b]) => [
      {
        values: a.map((v, k) => (v - (mean(a) / mean(b)) * b[k]) / mean(b) + mean(a) / mean(b) - 1),
        interval: level => ratioOfMeans(a, b, level).map(edge => edge - 1),
      },
    ],
    sign: ([ahead]) => [{ values: ahead, interval: level => meanLevel(ahead, level) }],
    level: rows => rows.map(row => ({ values: row, interval: level => meanLevel(row, level) })),
    rate: rows => CELLS.level(rows),
  };

  /* Between which values a test holds, its bound at `bound`: a threshold, or a margin around its centre. */
  const edges = (test, bound) =>
    test.side === "greater"
      ? [bound, Infinity]
      : test.side === "less"
        ? [-Infinity, bound]
        : [test.centre - bound, test.centre + bound];
  const position = (test, [least, most], [, low, high]) => {
    if (test.side === "less") return high < most ? true : low >= most ? false : null;
    if (test.side) return low > least ? true : high <= least ? false : null;
    return least <= low && high <= most ? true : low > most || high < least ? false : null;
  };

  /* An interval wider by the resolution of the grid that all seeds share, less a hair. */
  const widened = (test, [effect, low, high]) => {
    if (!test.resolution) return [effect, low, high];
    const width = test.kind === "ratio" ? test.resolution ** (1 - 1e-9) : test.resolution * (1 - 1e-9);
    return test.kind === "ratio" ? [effect, low / width, high * width] : [effect, low - width, high + width];
  };

  /* {holds, interval, values, place} of one test; keep: which seeds count; of: the place of the result whose
     values are asked for, in place of the one that decides. */
  const evaluate = (test, bound, level, keep, of) => {
    const rows = test.columns.map(row => row.filter((_, k) => keep[k])),
      n = rows[0].length;
    const open = { holds: null, interval: [NaN, -Infinity, Infinity], values: [] };
    if (n === 0) return open;
    if (test.kind === "identity" || test.kind === "inequality") {
      // the largest violation, or how many there are
      const all = rows[0].every(Number.isFinite) ? rows[0] : [Infinity];
      const found = test.kind === "identity" ? Math.max(...all) : all.reduce((a, b) => a + b, 0);
      return { holds: found <= bound, interval: [found, found, found], values: rows[0] };
    }
    if (rows.some(row => !row.every(Number.isFinite))) return open;
    if (test.kind === "ratio" && rows.some(row => row.includes(0))) return open;
    const cells = CELLS[test.kind](rows),
      span = edges(test, bound),
      each = 1 - (1 - level) / (test.cells ?? cells.length);
    const [sure, own] = [each, level].map(at => cells.map(cell => widened(test, cell.interval(at))));
    /* With several cells one fails by simultaneous intervals; each holds by its own, but for an ordering. */
    const ordered = test.kind === "ordering",
      worst = sure.map(one => position(test, span, one));
    const held = ordered
      ? worst
      : worst.map((one, k) => (one === false ? false : position(test, span, own[k]) || null));
    const rank = new Map([
        [false, 0],
        [null, 1],
        [true, 2],
      ]),
      end = held.includes(false) ? 2 : 1;
    const reach = ([, low, high]) => Math.max(high - span[1], span[0] - low);
    const order = (j, k) =>
      ordered ? sure[j][end] - sure[k][end] : rank.get(held[j]) - rank.get(held[k]) || reach(own[k]) - reach(own[j]);
    const place = cells.reduce((best, _, k) => (order(k, best) < 0 ? k : best), 0),
      holds = combine(held, "all");
    const interval = holds && !ordered ? own[place] : sure[place];
    return Number.isNaN(interval[0]) ? open : { holds, interval, values: cells[of ?? place].values, place };
  };

  /* Kleene's "and" or "or"; null is unknown. */
  const combine = (held, how) => {
    const decisive = how === "any";
    return held.includes(decisive) ? decisive : held.includes(null) ? null : !decisive;
  };
  const word = (claim, held) => {
    const holds = combine(held, claim.combine);
    if (holds === null) return "open";
    if (claim.kind === "question") return holds ? "yes" : "no";
    if (claim.kind === "statement") return holds ? "holds" : "wrong";
    return holds
      ? "reproduced"
      : held.includes(true)
        ? "mixed"
        : held.includes(null)
          ? "partly refuted, rest open"
          : "not reproduced";
  };
  /* The verdict on a claim from what its tests gave. */
  const judge = (claim, held) => {
    const corrected = claim.tests.findIndex(test => test.role === "corrected");
    const verdict = word(
      claim,
      held.filter((_, k) => k !== corrected),
    );
    if (verdict === "wrong" && corrected >= 0 && held[corrected])
      return claim.condition ? "holds if …" : "wrong as printed, corrected";
    return verdict === "holds" && claim.condition && corrected < 0 ? "holds if …" : verdict;
  };
  Object.assign(bnbook.formulas, { evaluate, judge, edges });
})();
