/* An effect and a bound as readers see them: shares in points, logarithms as the factor that they stand for. */
(() => {
  "use strict";
  const { number } = bnbook.kit;
  const BASES = { log: Math.E, log10: 10 };
  const isShare = test => test.unit === "points" || test.unit === "%";
  const isFactor = test => test.kind === "ratio" || test.unit in BASES;
  const isExact = test => test.kind === "identity" || test.kind === "inequality";
  const named = test => (test.unit ? ` ${test.unit}` : "");
  const real = (test, v) => (test.unit in BASES ? BASES[test.unit] ** v : isShare(test) ? 100 * v : v);
  const shown = (test, v, digits) => number(real(test, v), digits) + (isFactor(test) ? " times" : named(test));
  /* So few digits, three at least, that numbers which differ read differently. */
  const telling = (test, values) => {
    const all = [...new Set(values.filter(Number.isFinite))];
    const apart = digits => new Set(all.map(v => number(real(test, v), digits))).size === all.length;
    return [3, 4, 5, 6, 7].find(apart) ?? 3;
  };

  /* What a test asks for, its bound at `at`. */
  const asked = (test, at, digits) => {
    if (isExact(test)) return `at most ${number(isShare(test) ? 100 * at : at, digits)}${named(test)}`;
    if (test.side) return `${test.side === "less" ? "less" : "more"} than ${shown(test, at, digits)}`;
    const centre = test.centre ? shown(test, test.centre, digits) : "";
    if (isFactor(test)) return `within a factor of ${number(real(test, at), digits)}${centre && ` of ${centre}`}`;
    const margin = isShare(test)
      ? `${number(100 * at, digits)} ${test.kind === "agreement" ? "%" : "points"}`
      : number(at, digits) + named(test);
    return `within ${centre && `${centre} `}± ${margin}`;
  };
  /* Ends of a slider for a test's bound, of its logarithm where it is a tolerance; values: of the seeds, and the interval last. */
  const sliderEnds = (test, values) => {
    if (test.kind === "identity")
      return [-16, Math.max(0, Math.ceil(Math.log10(Math.max(1e-16, test.bound, ...values)))) + 1];
    if (test.kind === "inequality") return [0, Math.max(10, 2 * values.at(-1))];
    if (!test.side) return [0, Math.max(2 * test.bound, ...values.map(v => 1.2 * Math.abs(v - test.centre)))];
    const [low, high] = [Math.min(0, test.bound, ...values), Math.max(0, test.bound, ...values)];
    const room = 0.25 * (high - low || 1);
    return test.kind === "ratio" ? [low, high + room] : [low - room, high + room];
  };
  /* Words from the book's files inside HTML. */
  const plain = text => text.replace(/[&<>]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
  Object.assign(bnbook.formulas, { isFactor, isExact, real, shown, telling, asked, plain, sliderEnds });
})();
