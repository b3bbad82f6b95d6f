"""pyNeVer (pynever): symbolic bounds with refinement."""

import json
import sys

from pynever.networks import SequentialNetwork
from pynever.strategies.conversion.converters.onnx import ONNXConverter
from pynever.strategies.conversion.representation import load_network_path
from pynever.strategies.verification.algorithms import SSBPVerification
from pynever.strategies.verification.parameters import SSBPVerificationParameters
from pynever.strategies.verification.properties import VnnLibProperty

network_file, property_file, _, _, seconds = sys.argv[1:]
network = ONNXConverter().to_neural_network(load_network_path(network_file))
if not isinstance(network, SequentialNetwork):
    raise TypeError("the network is not a sequential network")
verifier = SSBPVerification(SSBPVerificationParameters(timeout=int(seconds)))
safe, counterexample = verifier.verify(network, VnnLibProperty(property_file))
verdict = "holds" if safe else "violated" if counterexample is not None else "unknown"
image = None
if verdict == "violated":
    image = [float(number) for number in counterexample.ravel()]
print(json.dumps({"verdict": verdict, "counterexample": image}))
