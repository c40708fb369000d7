"""Build the CRF of a tagger, constrained to the scheme of its tags."""

from __future__ import annotations

import torch

from elmo_framework.config.types import refuse_key
from elmo_framework.data.tagging import Scheme, allowed_transitions, label_of, scheme_of
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.nn.crf import ConditionalRandomField, Constraints


def tag_crf(
    labels: Vocabulary, scheme: Scheme | None, *, include_start_end_transitions: bool = False
) -> ConditionalRandomField:
    """Return a CRF whose predictions follow the scheme of the tags; unconstrained for None."""
    constraints = None
    if scheme is not None:
        constraints = Constraints(*map(torch.tensor, allowed_transitions(labels.items, scheme)))
    return ConditionalRandomField(
        len(labels),
        include_start_end_transitions=include_start_end_transitions,
        constraints=constraints,
    )


def check_label_encoding(scheme: Scheme | None, vocabularies: Vocabularies) -> None:
    """Refuse a `label_encoding` in which the tags of the training data can mark no span.

    BIO and IOB1 pass for each other: an imported vocabulary does not show which of the two it is.
    `allowed_transitions` refuses tags whose prefixes the scheme does not have.
    """
    tags, begun = vocabularies.labels().items, vocabularies.counted("beginnings")
    found = scheme_of(tags, begun)
    if scheme is None or vocabularies.is_assumed or not any(map(label_of, tags)):
        return
    if found in ("BIO", "IOB1") and scheme in ("BIOUL", "BIOES"):
        advice = f"set coding_scheme: '{scheme}' in the dataset reader, or remove label_encoding"
        refuse_key("label_encoding", f"is {scheme}, but the tags are {found}; {advice}")
