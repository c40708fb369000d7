from .esim import Esim as Esim
from .example import SentencePair as SentencePair
from .reader import SnliReader as SnliReader
from .task import EntailmentTask as EntailmentTask
