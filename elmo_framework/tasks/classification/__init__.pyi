from .basic_classifier import BasicClassifier as BasicClassifier
from .bcn import BiattentiveClassifier as BiattentiveClassifier
from .bcn import OutputLayer as OutputLayer
from .reader import FolderTextClassificationReader as FolderTextClassificationReader
from .reader import TextClassificationReader as TextClassificationReader
from .sst_reader import SstReader as SstReader
from .task import ClassifiedText as ClassifiedText
from .task import TextClassificationTask as TextClassificationTask
