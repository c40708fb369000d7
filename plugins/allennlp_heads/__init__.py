"""Heads of AllenNLP beyond the six tasks: decomposable attention, a constituency parser.

Importing this package registers the models `decomposable_attention` and `constituency_parser`, the
dataset reader `ptb_trees` and the metric `evalb`; and their translation from configs of AllenNLP.
"""

from .constituency_parser import ConstituencyParser
from .decomposable_attention import DecomposableAttention
from .evalb import EvalbScores
from .translation import register_translations
from .trees import TreeReader

register_translations()

__all__ = ["ConstituencyParser", "DecomposableAttention", "EvalbScores", "TreeReader"]
