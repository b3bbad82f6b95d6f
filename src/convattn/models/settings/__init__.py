"""What decides the architecture of a model: one frozen dataclass for each kind."""

from convattn.models.settings.encoder import ENCODINGS as ENCODINGS
from convattn.models.settings.encoder import EncoderSettings as EncoderSettings
from convattn.models.settings.encoder import Encoding as Encoding
from convattn.models.settings.language_model import (
    LanguageModelSettings as LanguageModelSettings,
)
from convattn.models.settings.presets import cmhsa as cmhsa
from convattn.models.settings.presets import deit_base as deit_base
from convattn.models.settings.presets import deit_small as deit_small
from convattn.models.settings.presets import vit_base as vit_base
from convattn.models.settings.reading import hold as hold
from convattn.models.settings.reading import read_count as read_count
from convattn.models.settings.reading import read_counts as read_counts
from convattn.models.settings.reading import read_number as read_number
from convattn.models.settings.resnet import ResNetSettings as ResNetSettings
from convattn.models.settings.self_attentive import (
    SelfAttentiveResNetSettings as SelfAttentiveResNetSettings,
)
from convattn.models.settings.similarity import SimilaritySettings as SimilaritySettings
from convattn.models.settings.vision_transformer import (
    VisionTransformerSettings as VisionTransformerSettings,
)
