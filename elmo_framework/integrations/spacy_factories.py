"""spaCy's entry points of `elmo` and `elmo_ner`.

spaCy imports this module for every pipeline, also for those of tokenizers, so that only the
factories import what runs models.
"""

from typing import Any  # spaCy reads the annotations, which must not be strings

from spacy.language import Language


@Language.factory(
    "elmo",
    assigns=["doc.tensor"],
    default_config={"bilm": "mini", "layers": "average", "device": "auto"},
)
def create_elmo(nlp: Language, name: str, bilm: str, layers: Any, device: str) -> Any:
    """Return the component that sets vectors in context."""
    from elmo_framework.integrations.spacy_components import ElmoComponent

    return ElmoComponent(bilm, layers=layers, device=device)


@Language.factory("elmo_ner", assigns=["doc.ents"], default_config={"device": "auto"})
def create_elmo_ner(nlp: Language, name: str, run: str, device: str) -> Any:
    """Return the component that sets the entities of a trained tagger."""
    from elmo_framework.integrations.spacy_components import ElmoNerComponent

    return ElmoNerComponent(run, device=device)
