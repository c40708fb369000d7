from .spacy_components import set_vector_hooks as set_vector_hooks
from .vectorizer import ElmoVectorizer as ElmoVectorizer
