"""The public functions that take a kernel, with a warning where it looks like PyTorch's layout.

Within the library kernels are in the layout `[K_1, K_2, in, out]`: it calls the functions
themselves.
"""

from convattn.bounds import approximation, kernel_heads
from convattn.bounds import flattened_kernel as flattened
from convattn.constructions import conversion
from convattn.constructions import two_layers as two
from convattn.operators.kernel_layout import warns_of_layout

conv_to_attention = warns_of_layout(conversion.conv_to_attention)
conv_to_two_layers = warns_of_layout(two.conv_to_two_layers)
count_heads_of_kernel = warns_of_layout(kernel_heads.count_heads_of_kernel)
approximate_conv = warns_of_layout(approximation.approximate_conv)
flattened_kernel = warns_of_layout(flattened.flattened_kernel)
