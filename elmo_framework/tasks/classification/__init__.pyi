from .basic_classifier import BasicClassifier as BasicClassifier
from .bcn import BiattentiveClassifier as BiattentiveClassifier
from .folder_reader import FolderTextClassificationReader as FolderTextClassificationReader
from .output_layer import OutputLayer as OutputLayer
from .reader import TextClassificationReader as TextClassificationReader
from .sst_reader import SstReader as SstReader
from .task import ClassifiedText as ClassifiedText
from .task import TextClassificationTask as TextClassificationTask
