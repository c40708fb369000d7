from .bilm_source import FrozenBiLm as FrozenBiLm
from .bilm_source import TrainedBiLm as TrainedBiLm
from .layer_source import LayerSource as LayerSource
from .surprisal import Bits as Bits
from .surprisal import SentenceScore as SentenceScore
