"""The networks that are timed have the parameters of their papers' networks."""

import jax
import pytest
from benchmarks.architectures import ARCHITECTURES
from flax import nnx

PARAMETERS = {  # torchvision's and timm's
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "mobilenet_v2": 3_504_872,
    "convnext_tiny": 28_589_128,
    "efficientnet_b0": 5_288_548,
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_has_as_many_parameters(name):
    model = nnx.eval_shape(lambda: ARCHITECTURES[name](rngs=nnx.Rngs(0)))
    sizes = [leaf.size for leaf in jax.tree.leaves(nnx.state(model, nnx.Param))]
    assert sum(sizes) == PARAMETERS[name]
