"""The import path `allennlp.commands.elmo` of AllenNLP before 1.0."""

from elmo_framework.modules.elmo_embedder import ElmoEmbedder

__all__ = ["ElmoEmbedder"]
