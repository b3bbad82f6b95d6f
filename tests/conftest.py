"""The ground that every test stands on: 64-bit types, checked annotations, Hypothesis profiles.

Both are set before anything of the library is imported. 64-bit types are on through the
configuration, not the environment, so that subprocesses start as a user's would; a test that wants
them off uses `jax.enable_x64(False)`.
"""

import os
from collections.abc import Iterator

import jax
import jaxtyping
import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)

CHECKED = (
    "convattn.fast.application",
    "convattn.operators.arrays",
    "convattn.operators.attention",
    "convattn.bounds",
    "convattn.constructions",
    "convattn.operators.convolution",
    "convattn.encodings",
    "convattn.fast.dense",
    "convattn.fast.dropout",
    "convattn.fast.products",
    "convattn.fast.separable",
    "convattn.fast.shift",
    "convattn.fast.windowed",
    "convattn.encodings.layer",
    "convattn.operators.patches",
    "convattn.sac",
    "convattn.operators.scores",
    "convattn.operators.shifts",
    "convattn.structures",
    "convattn.networks.weights",
)
install_import_hook(CHECKED, "annotations.checked")

# JAX compiles on the first example of each shape, so no profile has a deadline.
_shared = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=25, **_shared)
settings.register_profile("ci", max_examples=25, derandomize=True, print_blob=True, **_shared)
settings.register_profile("thorough", max_examples=500, **_shared)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Annotations are not checked, as for a user, so that the library's own checks must speak."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
