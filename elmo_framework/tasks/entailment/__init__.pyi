from .esim import Esim as Esim
from .reader import SnliReader as SnliReader
from .task import EntailmentTask as EntailmentTask
from .task import SentencePair as SentencePair
