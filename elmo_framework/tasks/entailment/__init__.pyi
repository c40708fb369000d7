from .esim import Esim as Esim
from .esim import EsimRegression as EsimRegression
from .reader import PairRegressionReader as PairRegressionReader
from .reader import SnliReader as SnliReader
from .task import EntailmentTask as EntailmentTask
from .task import PairRegressionTask as PairRegressionTask
from .task import PairWithValue as PairWithValue
from .task import SentencePair as SentencePair
