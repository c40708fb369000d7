from .example import TaggedSentence as TaggedSentence
from .json_reader import JsonTaggingReader as JsonTaggingReader
from .reader import Conll2000Reader as Conll2000Reader
from .reader import Conll2003Reader as Conll2003Reader
from .reader import ConllReader as ConllReader
from .sequence_tagging_reader import SequenceTaggingReader as SequenceTaggingReader
from .table_reader import TableTaggingReader as TableTaggingReader
from .tagger import CrfTagger as CrfTagger
from .tagger import SimpleTagger as SimpleTagger
from .tagger import Tagger as Tagger
from .task import TaggingTask as TaggingTask
from .universal_dependencies_reader import (
    UniversalDependenciesPosReader as UniversalDependenciesPosReader,
)
