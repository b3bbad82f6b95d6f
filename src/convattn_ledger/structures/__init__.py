"""Convolution over arbitrary structures (A19): bases, their convolutions, and what follows.

`basis` says what a basis is and `structured_convolution` what one computes with it.
"""

from convattn_ledger.structures.attention_convolution import Mechanism as Mechanism
from convattn_ledger.structures.attention_convolution import (
    attention_convolution as attention_convolution,
)
from convattn_ledger.structures.attention_convolution import (
    constant_mechanism as constant_mechanism,
)
from convattn_ledger.structures.attention_convolution import (
    cross_attention_convolution as cross_attention_convolution,
)
from convattn_ledger.structures.attention_convolution import (
    self_attention_convolution as self_attention_convolution,
)
from convattn_ledger.structures.attention_convolution import softmax_mechanism as softmax_mechanism
from convattn_ledger.structures.basis import Basis as Basis
from convattn_ledger.structures.basis import DenseBasis as DenseBasis
from convattn_ledger.structures.basis import dense_basis as dense_basis
from convattn_ledger.structures.bi_affine import BiAffine as BiAffine
from convattn_ledger.structures.bi_affine import bi_affine as bi_affine
from convattn_ledger.structures.bi_affine import bi_affine_scores as bi_affine_scores
from convattn_ledger.structures.composition import StructuredConvolution as StructuredConvolution
from convattn_ledger.structures.composition import compose as compose
from convattn_ledger.structures.composition import compose_bases as compose_bases
from convattn_ledger.structures.contraction_order import ORDERS as ORDERS
from convattn_ledger.structures.contraction_order import cheapest_order as cheapest_order
from convattn_ledger.structures.contraction_order import contraction_work as contraction_work
from convattn_ledger.structures.graph_attention import graph_attention as graph_attention
from convattn_ledger.structures.graph_attention import leaky_relu as leaky_relu
from convattn_ledger.structures.graph_attention import through_parameter as through_parameter
from convattn_ledger.structures.grids import CuboidKernel as CuboidKernel
from convattn_ledger.structures.grids import cuboid_shifts as cuboid_shifts
from convattn_ledger.structures.grids import kernel_to_structure as kernel_to_structure
from convattn_ledger.structures.grids import pooling_basis as pooling_basis
from convattn_ledger.structures.grids import structure_to_kernel as structure_to_kernel
from convattn_ledger.structures.grids import window_basis as window_basis
from convattn_ledger.structures.inversion import dual_basis as dual_basis
from convattn_ledger.structures.inversion import invert_mixed_product as invert_mixed_product
from convattn_ledger.structures.laplacians import chebyshev_basis as chebyshev_basis
from convattn_ledger.structures.laplacians import gcn_basis as gcn_basis
from convattn_ledger.structures.laplacians import laplacian_basis as laplacian_basis
from convattn_ledger.structures.masking import causal_mask as causal_mask
from convattn_ledger.structures.masking import column_softmax as column_softmax
from convattn_ledger.structures.masking import masked_scores as masked_scores
from convattn_ledger.structures.mixed_product import mixed_product as mixed_product
from convattn_ledger.structures.reductions import controlled_convolution as controlled_convolution
from convattn_ledger.structures.reductions import controlled_theta as controlled_theta
from convattn_ledger.structures.reductions import grouped_convolution as grouped_convolution
from convattn_ledger.structures.reductions import grouped_theta as grouped_theta
from convattn_ledger.structures.reductions import separable_convolution as separable_convolution
from convattn_ledger.structures.reductions import separable_theta as separable_theta
from convattn_ledger.structures.shift_basis import ShiftBasis as ShiftBasis
from convattn_ledger.structures.shift_basis import shift_basis as shift_basis
from convattn_ledger.structures.shift_basis import strided_basis as strided_basis
from convattn_ledger.structures.shift_heads import attention_with_shifts as attention_with_shifts
from convattn_ledger.structures.shift_heads import with_shift_heads as with_shift_heads
from convattn_ledger.structures.sparse_basis import SparseBasis as SparseBasis
from convattn_ledger.structures.sparse_basis import sparse_basis as sparse_basis
from convattn_ledger.structures.structured_convolution import (
    structured_convolution as structured_convolution,
)
from convattn_ledger.structures.transformer import AttentionConvolution as AttentionConvolution
from convattn_ledger.structures.transformer import (
    as_attention_convolution as as_attention_convolution,
)
from convattn_ledger.structures.transformer import as_bi_affine as as_bi_affine
from convattn_ledger.structures.transformer import parameter_from_maps as parameter_from_maps
from convattn_ledger.structures.walks import power_basis as power_basis
from convattn_ledger.structures.walks import walk_basis as walk_basis
