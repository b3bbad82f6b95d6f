"""auto_LiRPA (auto-LiRPA) with onnx2torch: linear bounds carried back (CROWN); incomplete."""

import json
import sys

import onnx
import torch
from auto_LiRPA import BoundedModule, BoundedTensor
from auto_LiRPA.perturbations import PerturbationLpNorm
from onnx2torch import convert

network_file, _, _, pair_file, _ = sys.argv[1:]
with open(pair_file) as file:
    pair = json.load(file)
torch.set_num_threads(1)
lower = torch.tensor(pair["box"]["lower"]).reshape(1, *pair["image"])
upper = lower + 2 * pair["box"]["radius"]
conditions = [text.split(" <= ") for text in pair["counterexample_if_any"]]
rows, thresholds = torch.zeros(1, len(conditions), pair["classes"]), []
for number, (smaller, larger) in enumerate(conditions):
    rows[0, number, int(smaller[2:])] = 1
    if larger.startswith("Y_"):
        rows[0, number, int(larger[2:])] = -1
    thresholds.append(0.0 if larger.startswith("Y_") else float(larger))
model = BoundedModule(convert(onnx.load(network_file)).eval(), lower)
box = BoundedTensor(lower, PerturbationLpNorm(norm=float("inf"), x_L=lower, x_U=upper))
bounds, _ = model.compute_bounds(x=(box,), C=rows, method="CROWN", bound_upper=False)
least = (bounds[0] - torch.tensor(thresholds)).min().item()
verdict = "holds" if least > 0 else "unknown"
print(json.dumps({"verdict": verdict, "counterexample": None, "message": f"at least {least:.6g}"}))
