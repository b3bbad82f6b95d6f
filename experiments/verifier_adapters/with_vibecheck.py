"""vibecheck (vibecheck-nn): linear bounds with branch and bound; it reads VNN-LIB 2.0."""

import json
import sys

from vibecheck import verify

network_file, _, property_file, _, seconds = sys.argv[1:]
result = verify(net=network_file, spec=property_file, timeout=float(seconds))
verdict = {"unsat": "holds", "sat": "violated", "error": "error"}.get(result.verdict, "unknown")
image = None
if verdict == "violated":
    image = [float(number) for number in result.counterexample["X"].ravel()]
details = str(getattr(result, "details", ""))[:300]
print(json.dumps({"verdict": verdict, "counterexample": image, "message": details}))
