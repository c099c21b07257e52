/* bnbook.meanfield in the page: the critical learning rate of a network with batch norm, by three sets of equations.

   A network is {fanIn: [N_0, …], positions: [|K_0|, …, |K_L|]}; base the inputs' {q, xy, ab}. Letters as there. */
(() => {
  "use strict";
  const relus = c => (Math.sqrt(1 - c * c) + c * (Math.PI / 2 + Math.asin(c))) / (2 * Math.PI);
  const steps = c => (Math.PI / 2 + Math.asin(c)) / (2 * Math.PI);
  const clip = c => Math.min(1, Math.max(-1, c));

  /* Equations 23, 24 and 39 to 41, from the inputs to the readout. */
  const forward = ({ positions }, { gamma, sigmaW2, sigmaB2, equations, batch, base }) => {
    const printed = equations === "printed",
      last = positions.length - 1;
    const one = {
      hat: [printed ? 1 : base.q],
      hatXy: [printed ? 0 : base.xy],
      hatAb: [printed ? 0 : base.ab],
      variance: [],
      cXy: [],
    };
    const up = h => sigmaB2 + sigmaW2 * h;
    for (let l = 1; l < last; l++) {
      const [q, xy, ab, places] = [up(one.hat[l - 1]), up(one.hatXy[l - 1]), up(one.hatAb[l - 1]), positions[l]];
      const n = batch * places,
        pooled = places > 1 ? xy / places + (1 - 1 / places) * ab : xy;
      const centred = product => (printed ? 0 : clip((product - pooled) / (q - pooled) - 1 / (n - 1)));
      one.variance[l] = printed ? q : ((q - pooled) * (n - 3)) / n;
      one.cXy[l] = centred(xy);
      one.hat[l] = gamma ** 2 / 2;
      one.hatXy[l] = gamma ** 2 * relus(centred(xy));
      one.hatAb[l] = places > 1 ? gamma ** 2 * relus(centred(ab)) : NaN;
    }
    return one;
  };

  /* Equations 25, 42 and 43 for sums over places, from the readout, where δ = 1, to layer 1. */
  const BACK = {
    printed: ({ positions }, { gamma, sigmaW2 }, ahead, T, l) => {
      const [places, behind] = [positions[l], positions[l + 1]],
        scale = (gamma ** 2 * sigmaW2) / ahead.variance[l];
      T.same[l] = (((places * scale) / 2) * T.same[l + 1]) / behind;
      T.pairs[l] = (places * scale * steps(0) * T.pairs[l + 1]) / behind;
      const mean = behind > 1 ? T.apart[l + 1] / (behind * (behind - 1)) : 1;
      T.apart[l] = places > 1 ? places * (places - 1) * scale * steps(0) * mean : 0;
    },
    corrected: (network, { gamma, sigmaW2 }, ahead, T, l) => {
      const scale = (gamma ** 2 * sigmaW2) / ahead.variance[l];
      T.same[l] = (scale / 2) * T.same[l + 1];
      T.pairs[l] = scale * steps(ahead.cXy[l]) * T.pairs[l + 1];
      T.apart[l] = 0;
    },
    through_batch: ({ positions }, { gamma, sigmaW2, batch }, ahead, T, l) => {
      const [places, share] = [positions[l], 1 / batch],
        scale = (gamma ** 2 * sigmaW2) / ahead.variance[l];
      const [k0, k1] = [steps(ahead.cXy[l]), relus(ahead.cXy[l])],
        [total, mean] = [T.same[l + 1], T.pairs[l + 1]];
      let removed, kept;
      if (l === positions.length - 2) {
        removed = (share * total + (1 - share) * (k0 + k1) * mean) / places;
        kept = scale * k0 * mean * (1 - 1 / places);
      } else {
        const values = batch * positions[l + 1];
        removed = (share * (1 - k0 - k1) * total) / places;
        kept = places > 1 ? (scale * k0 * (mean * (values - 1) + total)) / values : 0;
      }
      T.same[l] = scale * (total / 2 - removed);
      T.pairs[l] = kept - (T.same[l] - kept) / (batch * places - 1);
      T.apart[l] = places > 1 ? -(share * T.same[l] + (1 - share) * T.pairs[l]) : 0;
    },
  };

  /* λ_max = Σ_l f_l: equation 44 with the shares of equations 161 and 168, or place by place as in equation 165. */
  const lambdaMax = (network, given) => {
    const setting = { gamma: 1, sigmaW2: 2, sigmaB2: 0.5, ...given },
      { equations, batch } = setting;
    const ahead = forward(network, setting),
      { positions, fanIn } = network,
      last = positions.length - 1;
    const T = { same: [], pairs: [], apart: [] };
    [T.same[last], T.pairs[last], T.apart[last]] = [1, 1, 0];
    for (let l = last - 1; l >= 1; l--) BACK[equations](network, setting, ahead, T, l);
    let sum = 0;
    for (let l = 1; l <= last; l++) {
      const places = positions[l],
        [same, pairs] = [T.same[l] / places, T.pairs[l] / places];
      const ab = places > 1 ? T.apart[l] / (places * (places - 1)) : NaN;
      const [hat, xy, hatAb] = [ahead.hat[l - 1], ahead.hatXy[l - 1], ahead.hatAb[l - 1]];
      const product = equations === "printed" ? xy * pairs : (1 - 1 / batch) * xy * pairs + (hat * same) / batch;
      sum +=
        fanIn[l - 1] *
        (places === 1
          ? product
          : equations === "printed"
            ? ((places - 1) * ab + pairs) * ((places - 1) * hatAb + xy)
            : places * (product + (places - 1) * ab * hatAb));
    }
    return sum;
  };
  /* η* = 2 (1 + μ) / λ_max: equation 7. */
  const criticalRate = (network, setting, momentum = 0.9) => (2 * (1 + momentum)) / lambdaMax(network, setting);

  Object.assign(window.bnbook.formulas, { lambdaMax, criticalRate });
})();
