"""Vision transformers that start as convolutions, and their rivals' first parameters."""

from convattn.initialization.convolutional import convolutional as convolutional
from convattn.initialization.layer_starts import Initialization as Initialization
from convattn.initialization.layer_starts import LayerStart as LayerStart
from convattn.initialization.rivals import impulse as impulse
from convattn.initialization.rivals import mimetic as mimetic
from convattn.initialization.rivals import truncated_normal as truncated_normal
from convattn.initialization.rotary import Rotary as Rotary
