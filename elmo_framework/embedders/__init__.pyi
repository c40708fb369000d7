from .character_encoding import CharacterEncodingTokenEmbedder as CharacterEncodingTokenEmbedder
from .context2vec import Context2vecTokenEmbedder as Context2vecTokenEmbedder
from .cove import CoveTokenEmbedder as CoveTokenEmbedder
from .elmo import ElmoTokenEmbedder as ElmoTokenEmbedder
from .embedding import EmbeddingTokenEmbedder as EmbeddingTokenEmbedder
from .embedding import WordIndexer as WordIndexer
from .text_embedder import TextEmbedder as TextEmbedder
from .text_embedder import TokenEmbedder as TokenEmbedder
