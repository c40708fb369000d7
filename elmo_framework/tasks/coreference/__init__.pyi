from .example import Document as Document
from .example import Mention as Mention
from .reader import ConllCoreferenceReader as ConllCoreferenceReader
from .reader import CoreferenceReader as CoreferenceReader
from .reader import JsonCoreferenceReader as JsonCoreferenceReader
from .span_ranker import SpanRanker as SpanRanker
from .task import CoreferenceTask as CoreferenceTask
