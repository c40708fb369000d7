from .example import SenseSentence as SenseSentence
from .example import SenseTarget as SenseTarget
from .nearest_sense import NearestSense as NearestSense
from .reader import SemcorReader as SemcorReader
from .reader import WsdReader as WsdReader
from .task import WordSenseTask as WordSenseTask
