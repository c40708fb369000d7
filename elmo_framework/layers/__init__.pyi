from .bilm_source import FrozenBiLm as FrozenBiLm
from .bilm_source import TrainedBiLm as TrainedBiLm
from .cache.cached_layers import CacheDtype as CacheDtype
from .encoder_format import EncoderFormat as EncoderFormat
from .layer_source import LayerSource as LayerSource
from .surprisal import Bits as Bits
from .surprisal import SentenceScore as SentenceScore
