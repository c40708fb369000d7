"""Generation of questions about an answer in a passage.

Importing this package registers the model `question_generator`, the dataset reader
`squad_questions` and the metric `bleu`.
"""

from .bleu import Bleu
from .generator import QuestionGenerator
from .reader import SquadQuestionReader

__all__ = ["Bleu", "QuestionGenerator", "SquadQuestionReader"]
