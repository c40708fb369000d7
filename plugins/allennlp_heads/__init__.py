"""Heads of AllenNLP beyond the six tasks: decomposable attention.

Importing this package registers the model `decomposable_attention`, and its translation from
configs of AllenNLP.
"""

from .decomposable_attention import DecomposableAttention
from .translation import register_translations

register_translations()

__all__ = ["DecomposableAttention"]
