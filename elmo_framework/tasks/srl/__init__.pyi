from .conllu_plus import ConlluPlusSrlReader as ConlluPlusSrlReader
from .example import SrlExample as SrlExample
from .reader import Conll2005Reader as Conll2005Reader
from .reader import DeepSrlReader as DeepSrlReader
from .reader import PropositionReader as PropositionReader
from .reader import SrlReader as SrlReader
from .semantic_role_labeler import SemanticRoleLabeler as SemanticRoleLabeler
from .task import SrlTask as SrlTask
