from .conll_reader import ConllCoreferenceReader as ConllCoreferenceReader
from .example import Document as Document
from .example import Mention as Mention
from .json_reader import JsonCoreferenceReader as JsonCoreferenceReader
from .reader import CoreferenceReader as CoreferenceReader
from .span_ranker import SpanRanker as SpanRanker
from .task import CoreferenceTask as CoreferenceTask
