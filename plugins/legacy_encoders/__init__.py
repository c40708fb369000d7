"""Models of ELMoForManyLangs as biLMs, and character language models of Flair as encoders.

Registers the token encoder `many_langs`, the encoder format `flair` and the token embedder `flair`.
"""

from .convert_many_langs import convert_many_langs, main
from .flair_embedder import FlairTokenEmbedder
from .flair_source import FlairFormat, FlairSource
from .many_langs import ManyLangsTokenEncoder

__all__ = [
    "FlairFormat",
    "FlairSource",
    "FlairTokenEmbedder",
    "ManyLangsTokenEncoder",
    "convert_many_langs",
    "main",
]
