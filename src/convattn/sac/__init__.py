"""Barkan's operators: 2-D self-attention, self-attentive convolutions, and what they become.

An operator is a pure function of its parameters, a pytree: `SelfAttentiveParameters`, or
`MultiscaleParameters` of several. `convattn.sac.modules` holds them as Flax NNX modules, and alone
imports Flax.
"""

from convattn.sac.cross_attention import cross_attentive_features as cross_attentive_features
from convattn.sac.cross_attention import seam_reach as seam_reach
from convattn.sac.cross_attention import side_by_side as side_by_side
from convattn.sac.cross_attention import with_segment as with_segment
from convattn.sac.even_kernels import even_part as even_part
from convattn.sac.even_kernels import sac_from_even_kernel as sac_from_even_kernel
from convattn.sac.even_kernels import with_zero_ring as with_zero_ring
from convattn.sac.filters import filter_bank as filter_bank
from convattn.sac.from_convolution import limit_error_bound as limit_error_bound
from convattn.sac.from_convolution import sac_from_convolution as sac_from_convolution
from convattn.sac.initialization import initial_multiscale as initial_multiscale
from convattn.sac.initialization import initial_self_attentive as initial_self_attentive
from convattn.sac.language import as_sequence as as_sequence
from convattn.sac.multiscale import MultiscaleParameters as MultiscaleParameters
from convattn.sac.multiscale import as_single_scale as as_single_scale
from convattn.sac.multiscale import (
    multiscale_self_attentive_convolution as multiscale_self_attentive_convolution,
)
from convattn.sac.parameters import SelfAttentiveParameters as SelfAttentiveParameters
from convattn.sac.relative_bias import EvenBias as EvenBias
from convattn.sac.relative_bias import even_bias_scores as even_bias_scores
from convattn.sac.self_attention_2d import self_attention_2d as self_attention_2d
from convattn.sac.self_attentive_convolution import attention_scores as attention_scores
from convattn.sac.self_attentive_convolution import (
    self_attentive_convolution as self_attentive_convolution,
)
from convattn.sac.similarity import cosine_similarity as cosine_similarity
