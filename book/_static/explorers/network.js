/* Small networks that are trained in the page: fully connected, plain or with batch norm, with noise behind it or not. */
(() => {
  "use strict";
  const EPS = 1e-5;

  /* Uniform in [0, 1), the same numbers for a seed in every browser: the generator mulberry32 of T. Ettinger, which is
     in the public domain. */
  const generator = seed => {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  };
  const normal = draw => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());

  /* Two spirals, the points of each -1 or 1: [m × 2 inputs, m labels]. */
  const spirals = (draw, m) => {
    const x = new Float64Array(2 * m),
      y = new Float64Array(m);
    for (let i = 0; i < m; i++) {
      const along = Math.sqrt(draw()),
        turn = 2.2 * Math.PI * along + (i % 2) * Math.PI;
      x[2 * i] = 2 * along * Math.cos(turn) + 0.05 * normal(draw);
      x[2 * i + 1] = 2 * along * Math.sin(turn) + 0.05 * normal(draw);
      y[i] = i % 2 ? 1 : -1;
    }
    return [x, y];
  };

  /* Weights of variance 2/inputs, γ = 1, β = 0; the last layer has one output, and neither γ nor β. */
  const network = (draw, sizes) =>
    sizes.slice(1).map((outputs, k) => ({
      inputs: sizes[k],
      outputs,
      weight: Float64Array.from({ length: sizes[k] * outputs }, () => Math.sqrt(2 / sizes[k]) * normal(draw)),
      gamma: new Float64Array(outputs).fill(1),
      beta: new Float64Array(outputs), // of a layer without batch norm, its bias
    }));
  const copy = net => net.map(l => ({ ...l, weight: l.weight.slice(), gamma: l.gamma.slice(), beta: l.beta.slice() }));

  /* bnbook.normalizers.Noise: a ← s a + m, its centres drawn anew for each unit; strength 1 is the paper's. */
  const noise = (draw, m, units, strength) => {
    const scale = new Float64Array(m * units),
      shift = new Float64Array(m * units);
    for (let j = 0; j < units; j++) {
      const mu = strength * (draw() - 0.5),
        sigma = 1 + strength * 0.25 * draw();
      for (let i = 0; i < m; i++) {
        scale[i * units + j] = sigma + strength * 0.1 * normal(draw);
        shift[i * units + j] = mu + strength * 0.2 * (draw() - 0.5);
      }
    }
    return { scale, shift };
  };

  /* h W and what batch norm and noise make of it, (m, units), with what the way back needs. */
  const forward = (layer, h, m, normed, shaken) => {
    const { inputs, outputs, weight, gamma, beta } = layer;
    const z = new Float64Array(m * outputs);
    for (let i = 0; i < m; i++)
      for (let k = 0; k < inputs; k++) {
        const v = h[i * inputs + k];
        if (v !== 0) for (let j = 0; j < outputs; j++) z[i * outputs + j] += v * weight[k * outputs + j];
      }
    const root = new Float64Array(outputs),
      hat = normed ? new Float64Array(m * outputs) : null;
    for (let j = 0; j < outputs; j++) {
      if (!hat) {
        for (let i = j; i < m * outputs; i += outputs) z[i] += beta[j];
        continue;
      }
      let mean = 0,
        variance = 0;
      for (let i = j; i < m * outputs; i += outputs) mean += z[i] / m;
      for (let i = j; i < m * outputs; i += outputs) variance += (z[i] - mean) ** 2 / m;
      root[j] = Math.sqrt(variance + EPS);
      for (let i = j; i < m * outputs; i += outputs) {
        hat[i] = (z[i] - mean) / root[j];
        z[i] = gamma[j] * hat[i] + beta[j];
      }
    }
    if (shaken) for (let i = 0; i < z.length; i++) z[i] = shaken.scale[i] * z[i] + shaken.shift[i];
    return { h, hat, root, z };
  };

  /* One step of gradient descent on mean log(1 + exp(-y f)) of a batch: the loss before it, the share of the batch
     on the right side, and what each layer hands to its rectifier. normed: with batch norm; shaken: each hidden
     layer's noise, or none. */
  const step = (net, [x, y], rate, normed, shaken = []) => {
    const m = y.length,
      seen = [];
    let h = x;
    net.forEach((layer, k) => {
      const last = k === net.length - 1;
      seen.push(forward(layer, h, m, normed && !last, shaken[k]));
      h = last ? seen[k].z : seen[k].z.map(v => Math.max(v, 0));
    });
    let loss = 0,
      right = 0;
    let push = h.map((f, i) => {
      loss += (Math.max(0, -y[i] * f) + Math.log1p(Math.exp(-Math.abs(f)))) / m;
      right += (y[i] * f > 0) / m;
      return -y[i] / (1 + Math.exp(y[i] * f)) / m;
    });
    for (let k = net.length - 1; k >= 0; k--) {
      const { inputs, outputs, weight, gamma, beta } = net[k],
        { h: into, hat, root } = seen[k],
        noisy = shaken[k];
      if (noisy) push = push.map((v, i) => v * noisy.scale[i]);
      for (let j = 0; j < outputs; j++) {
        let sum = 0,
          stretch = 0;
        for (let i = j; i < m * outputs; i += outputs) {
          sum += push[i];
          if (hat) stretch += push[i] * hat[i];
        }
        if (hat)
          for (let i = j; i < m * outputs; i += outputs)
            push[i] = (gamma[j] / root[j]) * (push[i] - sum / m - (hat[i] * stretch) / m);
        beta[j] -= rate * sum;
        gamma[j] -= rate * stretch;
      }
      const below = new Float64Array(m * inputs);
      for (let i = 0; i < m; i++)
        for (let l = 0; l < inputs; l++) {
          if (k && into[i * inputs + l] === 0) continue; // the rectifier below is shut
          let sum = 0;
          for (let j = 0; j < outputs; j++) sum += push[i * outputs + j] * weight[l * outputs + j];
          below[i * inputs + l] = sum;
        }
      for (let i = 0; i < m; i++)
        for (let l = 0; l < inputs; l++) {
          const v = rate * into[i * inputs + l];
          if (v !== 0) for (let j = 0; j < outputs; j++) weight[l * outputs + j] -= v * push[i * outputs + j];
        }
      push = below;
    }
    return { loss, right, handed: seen.map(one => one.z) };
  };

  Object.assign(window.bnbook.formulas, { generator, spirals, network, copyNetwork: copy, noise, descend: step });
})();
