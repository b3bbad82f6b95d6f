"""The operators as Flax NNX modules, to drop into a model in place of `nnx.Conv`.

Nothing else in the library imports Flax, but for the Flax layout of `convattn.networks.weights`.
Each module
holds its parameters as `nnx.Param` and hands them to the pure function: `parameters` is the pytree
that it hands over.
"""

from convattn.sac.modules.cross_attention import CrossAttentiveFeatures as CrossAttentiveFeatures
from convattn.sac.modules.multiscale import (
    MultiscaleSelfAttentiveConvolution as MultiscaleSelfAttentiveConvolution,
)
from convattn.sac.modules.multiscale import (
    MultiscaleSelfAttentiveLayer as MultiscaleSelfAttentiveLayer,
)
from convattn.sac.modules.self_attention_2d import SelfAttention2D as SelfAttention2D
from convattn.sac.modules.single_scale import (
    CausalSelfAttentiveConvolution as CausalSelfAttentiveConvolution,
)
from convattn.sac.modules.single_scale import SelfAttentiveConvolution as SelfAttentiveConvolution
from convattn.sac.modules.single_scale import SelfAttentiveLayer as SelfAttentiveLayer
