/* Student's, the normal and the beta distribution's quantiles, by bisection of sums and continued fractions. */
(() => {
  "use strict";
  const LANCZOS = [
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  const logGamma = z => {
    if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - logGamma(1 - z);
    const sum = LANCZOS.reduce((s, c, k) => s + c / (z + k), 0.99999999999980993),
      t = z + 6.5;
    return 0.5 * Math.log(2 * Math.PI) + (z - 0.5) * Math.log(t) - t + Math.log(sum);
  };

  /* I_x(a, b), the regularised incomplete beta function, by its continued fraction (modified Lentz). */
  const fraction = (x, a, b) => {
    const tiny = 1e-300,
      guard = v => (Math.abs(v) < tiny ? tiny : v);
    let c = 1,
      d = 1 / guard(1 - ((a + b) * x) / (a + 1)),
      h = d;
    for (let m = 1; m < 10000; m++) {
      for (const step of [
        (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
        (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
      ]) {
        d = 1 / guard(1 + step * d);
        c = guard(1 + step / c);
        h *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-16) break;
    }
    return h;
  };
  const incompleteBeta = (x, a, b) => {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b));
    return x < (a + 1) / (a + b + 2) ? (front * fraction(x, a, b)) / a : 1 - (front * fraction(1 - x, b, a)) / b;
  };

  /* Where a rising function passes a value; of log x, so that small ones keep their digits. */
  const bisect = (rising, value, low, high) => {
    for (let round = 0; round < 200 && low < high; round++) {
      const middle = (low + high) / 2;
      if (middle === low || middle === high) break;
      if (rising(middle) < value) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  const betaQuantile = (p, a, b) => Math.exp(bisect(u => incompleteBeta(Math.exp(u), a, b), p, -60, 0));
  /* t with |T| ≤ t at this level: x = ν/(ν + t²) has I_x(ν/2, 1/2) = 1 - level. */
  const studentTwoSided = (level, nu) => {
    const x = betaQuantile(1 - level, nu / 2, 0.5);
    return Math.sqrt((nu * (1 - x)) / x);
  };
  /* z with |Z| ≤ z at this level, from Φ(z) - 1/2 = φ(z) (z + z³/3 + z⁵/15 + …). */
  const normalTwoSided = level =>
    bisect(
      z => {
        let [sum, term] = [0, z];
        for (let k = 1; k < 400 && term > 1e-18 * sum; k++) {
          sum += term;
          term *= (z * z) / (2 * k + 1);
        }
        return (2 * sum * Math.exp((-z * z) / 2)) / Math.sqrt(2 * Math.PI);
      },
      level,
      0,
      9,
    );

  /* bookpress.intervals: [estimate, low, high] of values, one a seed. */
  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;
  const student = (values, level) => {
    const n = values.length,
      middle = mean(values);
    if (n < 2) return [middle, -Infinity, Infinity];
    const same = values.every(v => v === values[0]);
    const spread = same ? 0 : Math.sqrt(values.reduce((s, v) => s + (v - middle) ** 2, 0) / (n - 1));
    const half = (studentTwoSided(level, n - 1) * spread) / Math.sqrt(n);
    return [middle, middle - half, middle + half];
  };
  const clopperPearson = (hits, trials, level) => {
    const tail = (1 - level) / 2;
    return [
      hits === 0 ? 0 : betaQuantile(tail, hits, trials - hits + 1),
      hits === trials ? 1 : 1 - betaQuantile(tail, trials - hits, hits + 1),
    ];
  };
  const pairedShares = (a, b, level) => {
    const n = a.length,
      most = (x, y) => x.reduce((s, v, k) => s + Math.min(v, 1 - y[k]), 0);
    const [onlyA, onlyB] = [most(a, b), most(b, a)],
      [p, q] = [(onlyA + 1) / (n + 2), (onlyB + 1) / (n + 2)];
    const half = normalTwoSided(level) * Math.sqrt((p + q - (p - q) ** 2) / (n + 2));
    return [(onlyA - onlyB) / n, Math.max(-1, p - q - half), Math.min(1, p - q + half)];
  };
  const isShare = (...rows) => rows.every(row => row.every(v => v >= 0 && v <= 1 && Number.isInteger(12 * v)));
  const pairedDifference = (a, b, level) =>
    a.length > 1 && isShare(a, b)
      ? pairedShares(a, b, level)
      : student(
          a.map((v, k) => v - b[k]),
          level,
        );
  const meanLevel = (a, level) => {
    if (a.length < 2 || !isShare(a)) return student(a, level);
    const hits = a.reduce((s, v) => s + v, 0);
    return [hits / a.length, ...clopperPearson(hits, a.length, level)];
  };
  const geometricRatio = (a, b, level) => {
    const logs = student(
        a.map((v, k) => Math.log(v) - Math.log(b[k])),
        level,
      ),
      found = logs.map(Math.exp);
    return found.some((v, k) => v === Infinity && logs[k] < Infinity) ? [NaN, -Infinity, Infinity] : found;
  };
  const ratioOfMeans = (a, b, level) => {
    const foot = mean(b),
      ratio = mean(a) / foot,
      [, low, high] = student(
        a.map((v, k) => (v - ratio * b[k]) / foot),
        level,
      );
    return [ratio, ratio + low, ratio + high];
  };
  Object.assign(window.bnbook.formulas, {
    studentTwoSided,
    normalTwoSided,
    betaQuantile,
    clopperPearson,
    student,
    pairedDifference,
    meanLevel,
    geometricRatio,
    ratioOfMeans,
    mean,
  });
})();
