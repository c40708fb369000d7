from .bi_language_model import BiLanguageModel as BiLanguageModel
from .corpus import LanguageModelingExample as LanguageModelingExample
from .reader import LanguageModelingReader as LanguageModelingReader
from .reader import PreparedCorpusReader as PreparedCorpusReader
from .task import LanguageModelingTask as LanguageModelingTask
from .windows import WindowLoader as WindowLoader
