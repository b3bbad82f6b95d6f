"""What decides the architecture of a model: one frozen dataclass for each kind."""

from convattn.models.settings.encoder import ENCODINGS as ENCODINGS
from convattn.models.settings.encoder import EncoderSettings as EncoderSettings
from convattn.models.settings.encoder import Encoding as Encoding
from convattn.models.settings.reading import hold as hold
from convattn.models.settings.reading import read_count as read_count
from convattn.models.settings.reading import read_counts as read_counts
from convattn.models.settings.reading import read_number as read_number
from convattn.models.settings.resnet import ResNetSettings as ResNetSettings
from convattn.models.settings.vision_transformer import (
    VisionTransformerSettings as VisionTransformerSettings,
)
