"""Vision transformers that start as convolutions, and other first parameters, to compare with."""

from convattn.initialization.baselines import impulse as impulse
from convattn.initialization.baselines import mimetic as mimetic
from convattn.initialization.baselines import truncated_normal as truncated_normal
from convattn.initialization.convolutional import convolutional as convolutional
from convattn.initialization.layer_starts import Initialization as Initialization
from convattn.initialization.layer_starts import LayerStart as LayerStart
from convattn.initialization.rotary import Rotary as Rotary
