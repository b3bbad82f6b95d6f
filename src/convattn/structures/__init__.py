"""Convolution over arbitrary structures (A19): bases, their convolutions, and what follows.

`basis` says what a basis is and `structured_convolution` what one computes with it.
"""

from convattn.structures.attention_convolution import Mechanism as Mechanism
from convattn.structures.attention_convolution import attention_convolution as attention_convolution
from convattn.structures.attention_convolution import concatenated as concatenated
from convattn.structures.attention_convolution import constant_mechanism as constant_mechanism
from convattn.structures.attention_convolution import (
    cross_attention_convolution as cross_attention_convolution,
)
from convattn.structures.attention_convolution import (
    self_attention_convolution as self_attention_convolution,
)
from convattn.structures.attention_convolution import softmax_mechanism as softmax_mechanism
from convattn.structures.basis import Basis as Basis
from convattn.structures.bi_affine import BiAffine as BiAffine
from convattn.structures.bi_affine import augmented_matrix as augmented_matrix
from convattn.structures.bi_affine import bi_affine as bi_affine
from convattn.structures.bi_affine import bi_affine_scores as bi_affine_scores
from convattn.structures.composition import StructuredConvolution as StructuredConvolution
from convattn.structures.composition import compose as compose
from convattn.structures.composition import compose_bases as compose_bases
from convattn.structures.contraction_order import ORDERS as ORDERS
from convattn.structures.contraction_order import cheapest_order as cheapest_order
from convattn.structures.contraction_order import contraction_costs as contraction_costs
from convattn.structures.contraction_order import contraction_work as contraction_work
from convattn.structures.dense_basis import DenseBasis as DenseBasis
from convattn.structures.dense_basis import dense_basis as dense_basis
from convattn.structures.graph_attention import graph_attention as graph_attention
from convattn.structures.graph_attention import graph_attention_matrices as graph_attention_matrices
from convattn.structures.graph_attention import leaky_relu as leaky_relu
from convattn.structures.graph_attention import through_parameter as through_parameter
from convattn.structures.grids import CuboidKernel as CuboidKernel
from convattn.structures.grids import cuboid_shifts as cuboid_shifts
from convattn.structures.grids import kernel_to_structure as kernel_to_structure
from convattn.structures.grids import structure_to_kernel as structure_to_kernel
from convattn.structures.inversion import dual_basis as dual_basis
from convattn.structures.inversion import invert_mixed_product as invert_mixed_product
from convattn.structures.laplacians import chebyshev_basis as chebyshev_basis
from convattn.structures.laplacians import gcn_basis as gcn_basis
from convattn.structures.laplacians import laplacian_basis as laplacian_basis
from convattn.structures.masking import causal_mask as causal_mask
from convattn.structures.masking import column_softmax as column_softmax
from convattn.structures.masking import log_mask as log_mask
from convattn.structures.masking import masked_scores as masked_scores
from convattn.structures.masking import row_softmax as row_softmax
from convattn.structures.mixed_product import mixed_product as mixed_product
from convattn.structures.mixed_product import rank_one_terms as rank_one_terms
from convattn.structures.mixed_product import sum_of_terms as sum_of_terms
from convattn.structures.output_maps import HeadMaps as HeadMaps
from convattn.structures.output_maps import maps_from_parameter as maps_from_parameter
from convattn.structures.output_maps import parameter_from_maps as parameter_from_maps
from convattn.structures.output_maps import split_output_map as split_output_map
from convattn.structures.pooling import pooling_basis as pooling_basis
from convattn.structures.pooling import window_basis as window_basis
from convattn.structures.reductions import controlled_convolution as controlled_convolution
from convattn.structures.reductions import controlled_theta as controlled_theta
from convattn.structures.reductions import grouped_convolution as grouped_convolution
from convattn.structures.reductions import grouped_theta as grouped_theta
from convattn.structures.reductions import parameter_count as parameter_count
from convattn.structures.reductions import saves as saves
from convattn.structures.reductions import separable_convolution as separable_convolution
from convattn.structures.reductions import separable_theta as separable_theta
from convattn.structures.scaled_dot_product import ScaledDotProduct as ScaledDotProduct
from convattn.structures.scaled_dot_product import as_bi_affine as as_bi_affine
from convattn.structures.scaled_dot_product import as_scaled_dot_product as as_scaled_dot_product
from convattn.structures.scaled_dot_product import (
    scaled_dot_product_scores as scaled_dot_product_scores,
)
from convattn.structures.shift_basis import ShiftBasis as ShiftBasis
from convattn.structures.shift_basis import StridedBasis as StridedBasis
from convattn.structures.shift_basis import shift_basis as shift_basis
from convattn.structures.shift_basis import strided_basis as strided_basis
from convattn.structures.shift_heads import attention_with_shifts as attention_with_shifts
from convattn.structures.shift_heads import with_shift_heads as with_shift_heads
from convattn.structures.sliced_basis import SlicedBasis as SlicedBasis
from convattn.structures.sparse_basis import SparseBasis as SparseBasis
from convattn.structures.sparse_basis import basis_from_entries as basis_from_entries
from convattn.structures.sparse_basis import sparse_basis as sparse_basis
from convattn.structures.structured_convolution import (
    structured_convolution as structured_convolution,
)
from convattn.structures.transformer import AttentionConvolution as AttentionConvolution
from convattn.structures.transformer import TransformerLayer as TransformerLayer
from convattn.structures.transformer import as_attention_convolution as as_attention_convolution
from convattn.structures.transformer import as_transformer_layer as as_transformer_layer
from convattn.structures.walks import power_basis as power_basis
from convattn.structures.walks import walk_basis as walk_basis
