"""Whole networks: convolutions turned into attention layers, and what trained heads do."""

from convattn.networks.conversion import to_attention as to_attention
from convattn.networks.deviation import Deviation as Deviation
from convattn.networks.deviation import deviation as deviation
from convattn.networks.diagnosis.diagnose import diagnose as diagnose
from convattn.networks.diagnosis.report import Diagnosis as Diagnosis
from convattn.networks.diagnosis.report import LayerDiagnosis as LayerDiagnosis
from convattn.networks.folding import FoldedConvolution as FoldedConvolution
from convattn.networks.folding import fold_batch_norm as fold_batch_norm
from convattn.networks.network_file import load_network as load_network
from convattn.networks.network_file import save_network as save_network
from convattn.networks.runs import AttentionRun as AttentionRun
from convattn.networks.runs import FoldedRun as FoldedRun
from convattn.networks.steps import Attention as Attention
from convattn.networks.steps import Convolution as Convolution
from convattn.networks.steps import Linear as Linear
from convattn.networks.steps import Mean as Mean
from convattn.networks.steps import Network as Network
from convattn.networks.steps import Relu as Relu
from convattn.networks.steps import Residual as Residual
from convattn.networks.steps import Scaling as Scaling
from convattn.networks.steps import apply_network as apply_network
from convattn.networks.steps import mixing_steps as mixing_steps
