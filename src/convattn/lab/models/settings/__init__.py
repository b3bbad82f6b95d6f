"""What decides the architecture of a model: one frozen dataclass for each kind."""

from convattn.lab.models.settings.encoder import ENCODINGS as ENCODINGS
from convattn.lab.models.settings.encoder import EncoderSettings as EncoderSettings
from convattn.lab.models.settings.encoder import Encoding as Encoding
from convattn.lab.models.settings.language_model import (
    LanguageModelSettings as LanguageModelSettings,
)
from convattn.lab.models.settings.presets import cmhsa as cmhsa
from convattn.lab.models.settings.presets import deit_base as deit_base
from convattn.lab.models.settings.presets import deit_small as deit_small
from convattn.lab.models.settings.presets import vit_base as vit_base
from convattn.lab.models.settings.reading import hold as hold
from convattn.lab.models.settings.reading import read_count as read_count
from convattn.lab.models.settings.reading import read_counts as read_counts
from convattn.lab.models.settings.reading import read_number as read_number
from convattn.lab.models.settings.resnet import ResNetSettings as ResNetSettings
from convattn.lab.models.settings.self_attentive import (
    SelfAttentiveResNetSettings as SelfAttentiveResNetSettings,
)
from convattn.lab.models.settings.similarity import SimilaritySettings as SimilaritySettings
from convattn.lab.models.settings.vision_transformer import (
    VisionTransformerSettings as VisionTransformerSettings,
)
