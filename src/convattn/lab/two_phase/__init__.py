"""L21's pipeline: train a convolution, turn it into attention by Theorem 1, and go on training."""

from convattn.lab.two_phase.conversion_settings import ConversionSettings as ConversionSettings
from convattn.lab.two_phase.transfer import convert_layer as convert_layer
from convattn.lab.two_phase.transfer import phase_two_settings as phase_two_settings
from convattn.lab.two_phase.transfer import transfer as transfer
