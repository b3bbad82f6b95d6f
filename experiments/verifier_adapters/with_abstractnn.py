"""abstractNN (abstractnn): intervals of the logits by affine arithmetic; incomplete."""

import contextlib
import io
import json
import sys

import numpy as np
from abstractnn import AffineEngine, BoundPropagator, ONNXParser

network_file, _, _, pair_file, _ = sys.argv[1:]
with open(pair_file) as file:
    pair = json.load(file)
radius = pair["box"]["radius"]
middle = np.array(pair["box"]["lower"]).reshape(1, *pair["image"]) + radius
with contextlib.redirect_stdout(io.StringIO()):
    layers = ONNXParser(network_file).parse()
    pixels = AffineEngine().create_input_expressions(middle, radius)
    logits = BoundPropagator().propagate(pixels, layers, middle.shape)
    bounds = [tuple(map(float, logit.get_bounds())) for logit in logits]
if len(bounds) != pair["classes"]:
    raise ValueError(f"{len(bounds)} logits, but the network has {pair['classes']}")
safe = True
for smaller, larger in (text.split(" <= ") for text in pair["counterexample_if_any"]):
    most = bounds[int(larger[2:])][1] if larger.startswith("Y_") else float(larger)
    safe = safe and bounds[int(smaller[2:])][0] > most
verdict = "holds" if safe else "unknown"
print(json.dumps({"verdict": verdict, "counterexample": None, "intervals": bounds}))
