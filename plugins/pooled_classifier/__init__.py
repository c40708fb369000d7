"""A text classifier over pooled word vectors.

Importing this package registers the model `pooled_classifier` and the dataset readers
`labelled_text_json` and `labelled_text_tsv`.
"""

from .json_reader import JsonTextReader
from .pooled_classifier import PooledClassifier
from .tsv_reader import TsvTextReader

__all__ = ["JsonTextReader", "PooledClassifier", "TsvTextReader"]
