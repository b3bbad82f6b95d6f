"""The explicit constructions, one theorem a file, each with its proof above its weights.

The data flows through them in this order: a kernel and its geometry (`geometry`, with the remarks
of C20 on padding, stride, dilation and sequences) become token maps (`li_output_map`); a theorem
makes heads look at the offsets and gives them their maps (`cordonnier_theorem1`, `li_theorem1`,
`enumerated`, `polygon`, `rotary`, `finite`, `scalar`); `table` names them, and
`conversion` chooses.
"""

from convattn.constructions.conversion import conv_to_attention as conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry as ConvolutionGeometry
from convattn.constructions.recovery import RecoveryResidual as RecoveryResidual
from convattn.constructions.recovery import attention_to_conv as attention_to_conv
