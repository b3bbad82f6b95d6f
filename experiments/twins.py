"""Twenty pairs of a CNN and a transformer that is the same function, for verifiers of networks.

A pair is two ONNX files, one property and a certified bound on the difference of their logits, for
every image of the property's box, float32 included. Rational arithmetic decides the property with
more room than the bound: a verifier whose verdicts on the two contradict each other has a bug.

    python experiments/twins.py --output-dir build/twins
    python experiments/twins.py --output-dir build/twins --verify build/verifiers

The second runs the verifiers of PyPI on what the first has written, each in an environment of its
own in that folder, which it makes from the network. Both go on where they were interrupted.
"""

import sys

from verifier_twins import INSTALL, PROGRAM

from convattn.extras import missing


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    try:
        from verifier_twins.command import run
    except ModuleNotFoundError as error:
        if not missing(error):
            raise
        print(f"{PROGRAM}: {error.name} is not installed; {INSTALL}", file=sys.stderr)
        return 2
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
