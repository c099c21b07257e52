/* bnbook.studies.gradient_growth.rates in the page: the growth of the squared gradient a layer, by quadrature. */
(() => {
  "use strict";
  const ORDER = 8,
    PANELS = 48;

  /* Points and weights of Gauss and Legendre on (-1, 1), by Newton's method. */
  const legendre = n =>
    [...Array(n).keys()].map(k => {
      let x = Math.cos((Math.PI * (k + 0.75)) / (n + 0.5)),
        slope = 1;
      for (let round = 0; round < 100; round++) {
        let [p, before] = [1, 0];
        for (let j = 1; j <= n; j++) [p, before] = [((2 * j - 1) * x * p - (j - 1) * before) / j, p];
        slope = (n * (x * p - before)) / (x * x - 1);
        const move = p / slope;
        x -= move;
        if (Math.abs(move) < 1e-16) break;
      }
      return [x, 2 / ((1 - x * x) * slope * slope)];
    });
  const NODES = legendre(ORDER);

  /* sin θ of a point on a sphere, density cos^power θ; no panel has a kink inside. -> [value, weight][] */
  const coordinate = (power, panels, kinks) => {
    const edge = Math.min(Math.PI / 2, 12 / Math.sqrt(power + 1));
    const angles = kinks
      .filter(k => Math.abs(k) < 1)
      .map(Math.asin)
      .filter(a => Math.abs(a) < edge);
    const even = [...Array(panels + 1).keys()].map(k => (k === panels ? edge : -edge + k * ((2 * edge) / panels)));
    const edges = [...new Set([...even, ...angles])].sort((a, b) => a - b),
      found = [];
    let sum = 0;
    for (let k = 1; k < edges.length; k++) {
      const half = (edges[k] - edges[k - 1]) / 2;
      for (const [x, w] of NODES) {
        const theta = edges[k - 1] + half + half * x,
          weight = half * w * Math.cos(theta) ** power;
        found.push([Math.sin(theta), weight]);
        sum += weight;
      }
    }
    return found.map(([x, w]) => [x, w / sum]);
  };

  const zigzag = x => {
    const size = Math.abs(x),
      phase = Math.max(0, 20 * (size - 2.7)) % 1;
    if (size < 2.7) return [x, 1];
    return [Math.sign(x) * (2.7 - (phase < 0.5 ? phase : 1 - phase)), phase < 0.5 ? -20 : 20];
  };
  /* Value and slope; panels and kinks for the quadrature, as the chapter has them. */
  const FUNCTIONS = {
    relu: { phi: x => (x > 0 ? [x, 1] : [0, 0]) },
    tanh: {
      phi: x => {
        const t = Math.tanh(x);
        return [t, 1 - t * t];
      },
    },
    linear: { phi: x => [x, 1] },
    zigzag: { phi: zigzag, panels: 100, kinks: [-2.7, 2.7] },
  };

  /* λ_m = m/(m-3) {E φ'₁² - E φ'₁²(1 + u₁²)/m + E φ'₁φ'₂(1 + u₁u₂)/m} / V and V = E φ₁² - E φ₁φ₂. */
  const byQuadrature = (name, m) => {
    const { phi, panels = PANELS, kinks = [] } = FUNCTIONS[name];
    const radius = Math.sqrt(m - 1),
      c = -1 / (m - 1),
      inner = coordinate(m - 4, panels, []);
    let spread = 0,
      squares = 0,
      pairs = 0;
    for (const [t, w] of coordinate(
      m - 3,
      panels,
      kinks.map(k => k / radius),
    )) {
      const u = radius * t,
        [value, slope] = phi(u),
        rest = Math.sqrt(1 - c * c) * Math.sqrt(1 - t * t);
      let other = 0,
        turned = 0,
        product = 0;
      for (const [r, v] of inner) {
        const second = radius * (c * t + rest * r),
          [value2, slope2] = phi(second);
        other += v * value2;
        turned += v * slope2;
        product += v * slope2 * second;
      }
      spread += w * (value * value - value * other);
      squares += w * slope * slope * (1 - (1 + u * u) / m);
      pairs += w * slope * (turned + u * product);
    }
    return { through: ((m / (m - 3)) * (squares + pairs / m)) / spread, spread };
  };

  /* Means of the product of two ReLUs and of two steps of Gaussians of correlation c. */
  const reluProduct = c => (Math.sqrt(1 - c * c) + c * (Math.PI / 2 + Math.asin(c))) / (2 * Math.PI);
  const stepProduct = c => (Math.PI / 2 + Math.asin(c)) / (2 * Math.PI);
  const closed = {
    relu: m => {
      const c = -1 / (m - 1),
        k0 = stepProduct(c),
        k1 = reluProduct(c);
      return { through: ((m / (m - 3)) * (0.5 - 1 / m + (k0 + k1) / m)) / (0.5 - k1), spread: 0.5 - k1 };
    },
    linear: m => ({ through: (m - 2) / (m - 3), spread: m / (m - 1) }),
  };
  const known = new Map();
  const growth = (name, m) => {
    const key = `${name} ${m}`;
    if (!known.has(key)) known.set(key, (closed[name] ?? (size => byQuadrature(name, size)))(m));
    return known.get(key);
  };

  /* ‖δ^l‖²/‖δ^L‖² of hidden layers 1 … L: with skip connections a power of the depth, without an exponential. */
  const residualProfile = ({ through, spread }, depth, start = 1) => {
    const found = [0];
    for (let k = depth - 2; k >= 0; k--)
      found.unshift(found[0] + Math.log1p((through * spread) / (start + k * spread)));
    return found.map(Math.exp);
  };
  const chainProfile = ({ through }, depth) => [...Array(depth).keys()].map(k => through ** (depth - 1 - k));

  Object.assign(window.bnbook.formulas, {
    growth,
    byQuadrature,
    residualProfile,
    chainProfile,
    reluProduct,
    stepProduct,
  });
})();
