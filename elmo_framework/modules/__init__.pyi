from .elmo import Elmo as Elmo
from .elmo_embedder import ElmoEmbedder as ElmoEmbedder
from .scalar_mix import ScalarMix as ScalarMix
