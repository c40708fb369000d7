from .api.batches import embed_batch as embed_batch
from .api.crf import CRF as CRF
from .api.elmo import Elmo as Elmo
from .api.elmo import batch_to_ids as batch_to_ids
from .api.pretrained import load_bilm as load_bilm
from .api.pretrained import load_encoder as load_encoder
from .commands.main import main as main
from .compat.allennlp.load import load as load
from .errors import BuildError as BuildError
from .errors import ConfigError as ConfigError
from .errors import DataError as DataError
from .errors import ElmoFrameworkError as ElmoFrameworkError
from .errors import PluginError as PluginError
from .errors import RunError as RunError
from .errors import StoppedError as StoppedError
from .integrations.vectorizer import ElmoVectorizer as ElmoVectorizer

__version__: str
