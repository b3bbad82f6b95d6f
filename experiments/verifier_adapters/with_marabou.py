"""Marabou (maraboupy): complete for piecewise linear networks."""

import json
import sys

from maraboupy import Marabou

network_file, property_file, _, _, seconds = sys.argv[1:]
network = Marabou.read_onnx(network_file)
options = Marabou.createOptions(verbosity=0, timeoutInSeconds=int(seconds))
answer, values, _ = network.solve(propertyFilename=property_file, options=options, verbose=False)
verdict = {"unsat": "holds", "sat": "violated"}.get(answer, "unknown")
image = None
if verdict == "violated":
    image = [values[number] for number in network.inputVars[0].ravel().tolist()]
print(json.dumps({"verdict": verdict, "counterexample": image}))
