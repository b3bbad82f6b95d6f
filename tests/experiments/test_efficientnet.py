import jax
from benchmarks.efficientnet import EfficientNetB0
from flax import nnx


def test_it_has_the_parameters_of_the_paper_s_network():
    model = nnx.eval_shape(lambda: EfficientNetB0(rngs=nnx.Rngs(0)))
    sizes = [part.size for part in jax.tree.leaves(nnx.state(model, nnx.Param))]
    assert sum(sizes) == 5_288_548  # torchvision's and timm's efficientnet_b0
