#!/usr/bin/env bash
# flwr 1.42.0 with torch 2.13.0: FedAvg's aggregate of two clients' state_dict, handed over as NumPy arrays as its guides do.
# Behaviour: the running variance is the mean of the clients' variances, without the spread between their means; and the integer counter of batches becomes a
#   float64 that is no whole number, which load_state_dict cuts down without a word.
# Seen: "clients of mean 0 and 10, variance 1: averaged mean 5, variance 1, all data together 26; counter 3.5 (float64), loaded 3"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" flwr==1.42.0 torch==2.13.0 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import numpy as np
import torch
from flwr.server.strategy.aggregate import aggregate

clients, data = [], []
for mean, batches in ((0.0, 3), (10.0, 4)):
    layer = torch.nn.BatchNorm1d(1, momentum=None)
    x = torch.tensor([[-1.0], [1.0]]).repeat(500, 1) + mean
    for _ in range(batches):
        layer(x)
    clients.append(([each.numpy() for each in layer.state_dict().values()], len(x)))
    data.append(x)
new = dict(zip(layer.state_dict(), aggregate(clients)))
layer.load_state_dict({key: torch.as_tensor(each) for key, each in new.items()})
counter, both = new["num_batches_tracked"], torch.cat(data).var().item()
print(f"clients of mean 0 and 10, variance 1: averaged mean {new['running_mean'][0]:.3g}, variance {new['running_var'][0]:.3g}, all data together {both:.3g}; counter {counter} ({np.asarray(counter).dtype}), loaded {int(layer.num_batches_tracked)}")
raise SystemExit(not (abs(new["running_var"][0] - 1) < 0.01 < 20 < both and float(counter) == 3.5 and int(layer.num_batches_tracked) == 3))
PY
"$folder/env/bin/python" "$folder/try.py"
