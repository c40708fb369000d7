from .crf import CRF as CRF
from .elmo import Elmo as Elmo
from .elmo import ElmoOutput as ElmoOutput
from .elmo import batch_to_ids as batch_to_ids
from .pretrained import PretrainedBiLm as PretrainedBiLm
from .pretrained import load_bilm as load_bilm
