"""Vision transformers whose inner workings are known: docs/known-answers.md."""

from convattn.known_answers.networks import NETWORKS as NETWORKS
from convattn.known_answers.networks import KnownNetwork as KnownNetwork
from convattn.known_answers.suite import recorded_digests as recorded_digests
from convattn.known_answers.suite import write_suite as write_suite
from convattn.known_answers.truth import KnownHead as KnownHead
from convattn.known_answers.truth import KnownValue as KnownValue
from convattn.known_answers.truth import known_heads as known_heads
from convattn.known_answers.truth import known_values as known_values
