"""Flax: attention in place of `nnx.Conv`, one layer or all layers of a model."""

from convattn.extras import require

require("flax")

from convattn.nnx.attention_conv import AttentionConv as AttentionConv
from convattn.nnx.checkpoint import load_checkpoint as load_checkpoint
from convattn.nnx.network_file import export_network as export_network
from convattn.nnx.network_file import fold_batch_norms as fold_batch_norms
from convattn.nnx.network_file import load_network as load_network
from convattn.nnx.surgery import Converted as Converted
from convattn.nnx.surgery import Recovered as Recovered
from convattn.nnx.surgery import Report as Report
from convattn.nnx.surgery import to_attention as to_attention
from convattn.nnx.surgery import to_convolution as to_convolution
