"""A parser of Universal Dependencies: trees, parts of speech, features and lemmas.

Importing this package registers the model `ud_parser`, the dataset reader
`universal_dependencies` and the metric `conll2018`.
"""

from .conll2018 import Conll2018Scores
from .conllu import UniversalDependenciesReader
from .parser import UdParser

__all__ = ["Conll2018Scores", "UdParser", "UniversalDependenciesReader"]
