#!/usr/bin/env bash
# dm-haiku 0.0.17 on jax 0.12.0.1: what BatchNorm's running averages are right after `init`.
# Behaviour: `init(key, x, True)` leaves the batch's own mean and variance as the averages, with the counter at 0 and the hidden sums at
#   zero; evaluation before any training then normalizes by the batch that happened to be passed for its shape, and with zeros as that
#   batch it divides by sqrt(epsilon): 2 becomes 632. After one training step the averages are that step's alone.
# Seen: "initialised on zeros: 632.46; on (2, 3): mean 2.50, variance 0.25, counter 0; after a step of mean 10: mean 10.00"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python '>=3.12,<3.14' "$folder/env"
uv pip install -q --python "$folder/env/bin/python" dm-haiku==0.0.17 jax==0.12.0.1 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import haiku as hk
import jax.numpy as jnp

net = hk.transform_with_state(lambda x, training: hk.BatchNorm(True, True, 0.9)(x, training))
params, state = net.init(None, jnp.zeros((4, 2)), True)
zeros = float(net.apply(params, state, None, jnp.full((4, 2), 2.0), False)[0][0, 0])
params, state = net.init(None, jnp.array([[2.0, 2.0], [3.0, 3.0]]), True)
mean, var = state["batch_norm/~/mean_ema"], state["batch_norm/~/var_ema"]
first = [float(mean["average"][0, 0]), float(var["average"][0, 0]), int(mean["counter"])]
_, state = net.apply(params, state, None, jnp.array([[9.0, 9.0], [11.0, 11.0]]), True)
after = float(state["batch_norm/~/mean_ema"]["average"][0, 0])
print(f"initialised on zeros: {zeros:.2f}; on (2, 3): mean {first[0]:.2f}, variance {first[1]:.2f}, counter {first[2]}; after a step of mean 10: mean {after:.2f}")
raise SystemExit(not (zeros > 600 and first == [2.5, 0.25, 0] and abs(after - 10) < 1e-4))
PY
"$folder/env/bin/python" "$folder/try.py"
