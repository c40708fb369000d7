"""Words, sentences and verbs as a trained model of spaCy finds them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, final

from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import RunError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


@final
class SpacyModel(Tokenizer):
    """A trained model of spaCy, loaded when it is first used.

    Args:
        name: of an installed model, or its folder.
    """

    def __init__(self, name: str | Path) -> None:
        self._name = str(name)

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text.

        Raises:
            RunError: the model is not installed.
        """
        document = self._model(text)
        if not document.has_annotation("SENT_START"):
            return [text]
        return [sentence.text for sentence in document.sents if sentence.text.strip()]

    def words(self, sentence: str) -> list[str]:
        """Return the words and the punctuation marks.

        Raises:
            RunError: the model is not installed.
        """
        return [word.text for word in self._model.tokenizer(sentence) if not word.is_space]

    def verbs(self, words: Sequence[str]) -> list[int]:
        """Return the positions of verbs; in English, auxiliary verbs are among them.

        Raises:
            RunError: the model is not installed.
        """
        from spacy.tokens import Doc

        document: Doc = Doc(self._model.vocab, words=list(words))
        for _, pipe in self._model.pipeline:
            document = pipe(document)
        # AllenNLP decides by the name of the model; the language is the same.
        tags = {"VERB", "AUX"} if self._model.lang == "en" else {"VERB"}
        return [place for place, word in enumerate(document) if word.pos_ in tags]

    @cached_property
    def _model(self) -> Language:
        import spacy

        try:
            return spacy.load(self._name)
        except OSError as error:
            raise RunError(
                f"the model {self._name!r} of spaCy is not installed; install it (python -m spacy "
                f"download {self._name}), pass another one as language=..., or name the "
                "positions of the verbs: predict_json({'sentence': ..., 'predicates': [2]})"
            ) from error
