"""Flax: attention in place of `nnx.Conv`, one layer or all layers of a model."""

from convattn.extras import require

require("flax")

from convattn.nnx.attention_conv import AttentionConv as AttentionConv
from convattn.nnx.surgery import Converted as Converted
from convattn.nnx.surgery import Recovered as Recovered
from convattn.nnx.surgery import Report as Report
from convattn.nnx.surgery import to_attention as to_attention
from convattn.nnx.surgery import to_convolution as to_convolution
