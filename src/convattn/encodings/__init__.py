"""Positional encodings, one a file: each gives its scores for any grid of tokens."""

from convattn.encodings.absolute import AbsoluteEncoding as AbsoluteEncoding
from convattn.encodings.absolute import sinusoidal_positions as sinusoidal_positions
from convattn.encodings.axial import AxialEncoding as AxialEncoding
from convattn.encodings.axial_rotary import AxialRotaryEncoding as AxialRotaryEncoding
from convattn.encodings.axis_scores import AxisScores as AxisScores
from convattn.encodings.axis_scores import SeparableEncoding as SeparableEncoding
from convattn.encodings.base import Encoding as Encoding
from convattn.encodings.base import OffsetTable as OffsetTable
from convattn.encodings.base import PositionalEncoding as PositionalEncoding
from convattn.encodings.base import RelativePosition as RelativePosition
from convattn.encodings.bias import BiasEncoding as BiasEncoding
from convattn.encodings.enumerated import EnumeratedEncoding as EnumeratedEncoding
from convattn.encodings.gaussian import GaussianEncoding as GaussianEncoding
from convattn.encodings.learned import LearnedEncoding as LearnedEncoding
from convattn.encodings.mixture import MixtureEncoding as MixtureEncoding
from convattn.encodings.polygon import PolygonEncoding as PolygonEncoding
from convattn.encodings.quadratic import QuadraticEncoding as QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding as QuadraticGridEncoding
from convattn.encodings.quadratic_grid import centers_on_grid as centers_on_grid
from convattn.encodings.relative import RelativeEncoding as RelativeEncoding
from convattn.encodings.rotary import RotaryEncoding as RotaryEncoding
from convattn.encodings.rotary import axial_turns as axial_turns
from convattn.encodings.rotary import rotary_heads as rotary_heads
from convattn.encodings.scalar import ScalarEncoding as ScalarEncoding
