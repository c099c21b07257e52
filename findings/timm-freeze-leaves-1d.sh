#!/usr/bin/env bash
# timm 1.0.31 with torch 2.13.0: timm.utils.freeze of a network that has BatchNorm2d and BatchNorm1d.
# Behaviour: the two-dimensional layer is replaced by a frozen one. The one-dimensional one stays: its weights no longer learn, but in training it
#   normalizes by the batch, and its running statistics move.
# Seen: "BatchNorm2d is now FrozenBatchNorm2d; BatchNorm1d is now BatchNorm1d; its running mean moved: True; an answer changes with its batch by 1; something learns: False"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" timm==1.0.31 torch==2.13.0 torchvision==0.28.0 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import torch

try:
    from timm.utils import freeze
except RuntimeError:  # torchvision's compiled operators want another build of torch; none is needed here
    torch.library.register_fake = lambda name: lambda function: function
    from timm.utils import freeze
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4), nn.BatchNorm1d(4))
freeze(net, ["0", "1", "4", "5"])
net.train()
x, before, kinds = torch.randn(8, 1, 6, 6), net[5].running_mean.clone(), [type(net[place]).__name__ for place in (1, 5)]
apart = (net(x)[:4] - net(torch.cat([x[:4], 3 * x[4:] + 1]))[:4]).abs().max().item()
moved, learns = not torch.equal(before, net[5].running_mean), any(p.requires_grad for p in net.parameters())
print(f"BatchNorm2d is now {kinds[0]}; BatchNorm1d is now {kinds[1]}; its running mean moved: {moved}; an answer changes with its batch by {apart:.1g}; something learns: {learns}")
raise SystemExit(not (kinds[0].startswith("Frozen") and kinds[1] == "BatchNorm1d" and moved and apart > 0.01 and not learns))
PY
"$folder/env/bin/python" "$folder/try.py"
