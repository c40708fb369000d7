"""ELMo's module on TensorFlow Hub (google/elmo), computed by a biLM of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, final, get_args, overload

import numpy as np
from numpy.typing import NDArray

from elmo_framework.api.arguments import require_list, require_sentences
from elmo_framework.api.encoder import PretrainedEncoder
from elmo_framework.errors import allowed

Signature: TypeAlias = Literal["default", "tokens"]
HubOutputs: TypeAlias = dict[str, NDArray[np.float32]]

_TOKENS = ("tokens", "sequence_len")


@final
class HubModule:
    """A biLM that is called as the module `elmo/2` or `elmo/3`; `load_bilm(...).hub` makes it.

        elmo = load_bilm("original").hub
        elmo(["the cat is on the mat"], signature="default", as_dict=True)["elmo"]
        elmo.signatures["tokens"](tokens=[["a", "cat"], ["it", ""]], sequence_len=[2, 1])["elmo"]

    Tensors are NumPy's, and zero at padding. The outputs are:

    * `word_emb` (batch, tokens, word_dim): the vectors of the words without context
    * `lstm_outputs1`, `lstm_outputs2`, ... (batch, tokens, dim): the layers above
    * `elmo` (batch, tokens, dim): the mean of all layers, the module's mix before training
    * `default` (batch, dim): the mean of `elmo` over the words of a sentence

    Args:
        encoder: computes the layers.
        word_dim: the dimension of a word without context: half of a layer where each direction
            reads it, a whole one where the layers read both sides.
    """

    def __init__(self, encoder: PretrainedEncoder, *, word_dim: int) -> None:
        self._encoder, self._word_dim = encoder, word_dim

    @overload
    def __call__(
        self, inputs: Any, signature: str = "default", as_dict: Literal[True] = True
    ) -> HubOutputs: ...

    @overload
    def __call__(
        self, inputs: Any, signature: str = "default", *, as_dict: Literal[False]
    ) -> NDArray[np.float32]: ...

    def __call__(
        self, inputs: Any, signature: str = "default", as_dict: bool = True
    ) -> HubOutputs | NDArray[np.float32]:
        """Embed sentences.

        Args:
            inputs: for the signature `default`, strings, each split at its spaces; a list of words
                is read as it is. For `tokens`, `{"tokens": ..., "sequence_len": ...}`: the words
                of each sentence, padded to the same length (batch, tokens), and their numbers.
            signature: `default` or `tokens`.
            as_dict: whether to return all outputs; otherwise the one with the name `default`.

        Raises:
            TypeError: the sentences are one string, or a word is not a string.
            ValueError: unknown signature, other keys than those of the signature, or lengths that
                do not fit the words.
        """
        if signature not in get_args(Signature):
            choices = allowed(signature, get_args(Signature))
            raise ValueError(f"signature is {signature!r}; {choices}")
        if signature == "tokens":
            words, width = _given_words(inputs)
        else:
            words, width = _split(inputs), None
        outputs = _outputs(self._encoder.embed(words), self._encoder, width, self._word_dim)
        return outputs if as_dict else outputs["default"]

    @property
    def signatures(self) -> Mapping[str, Callable[..., HubOutputs]]:
        """The signatures as functions, as of a module that `hub.load` of TensorFlow 2 returns."""

        def tokens(tokens: Any, sequence_len: Any) -> HubOutputs:
            return self({"tokens": tokens, "sequence_len": sequence_len}, "tokens")

        def default(strings: Any) -> HubOutputs:
            return self(strings)

        return {"default": default, "tokens": tokens}


def _split(inputs: Any) -> list[Sequence[str]]:
    """Return the words of strings."""
    if isinstance(inputs, Mapping):
        _require_keys(inputs, ("strings",))
        inputs = inputs["strings"]
    require_list(inputs)
    texts = [_text(each) for each in inputs]
    return [
        [word for word in each.split(" ") if word] if isinstance(each, str) else each
        for each in texts
    ]


def _given_words(inputs: Any) -> tuple[list[Sequence[str]], int]:
    """Return the words of each sentence without padding, and the width of the padded ones."""
    if not isinstance(inputs, Mapping):
        raise ValueError("the signature 'tokens' takes a dict with 'tokens' and 'sequence_len'")
    _require_keys(inputs, _TOKENS)
    require_list(inputs["tokens"])
    rows = require_sentences([_words(row) for row in inputs["tokens"]])
    lengths = [int(length) for length in inputs["sequence_len"]]
    width = max(map(len, rows), default=0)
    if any(len(row) != width for row in rows):
        raise ValueError(f"'tokens' must be padded: some rows are shorter than {width}")
    if len(lengths) != len(rows) or not all(0 <= length <= width for length in lengths):
        raise ValueError(
            f"'sequence_len' is {lengths}; expected {len(rows)} numbers from 0 to {width}"
        )
    return [row[:length] for row, length in zip(rows, lengths, strict=True)], width


def _require_keys(inputs: Mapping[str, Any], names: Sequence[str]) -> None:
    if set(inputs) != set(names):
        raise ValueError(f"found the keys {sorted(inputs)}; expected {list(names)}")


def _words(row: Any) -> Any:
    return _text(row) if isinstance(row, str | bytes) else [*map(_text, row)]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value  # strings of TensorFlow


def _outputs(
    layers: Sequence[NDArray[np.float32]],
    encoder: PretrainedEncoder,
    width: int | None,
    word_dim: int,
) -> HubOutputs:
    lengths = [each.shape[1] for each in layers]
    width = max(lengths, default=0) if width is None else width
    padded = np.zeros((encoder.num_layers, len(layers), width, encoder.dim), np.float32)
    for row, each in enumerate(layers):
        padded[:, row, : lengths[row]] = each
    elmo = padded.mean(axis=0)
    num_words = np.maximum(np.array(lengths, np.float32), 1)[:, None]
    return {
        "word_emb": padded[0, :, :, :word_dim],
        **{f"lstm_outputs{layer}": padded[layer] for layer in range(1, encoder.num_layers)},
        "elmo": elmo,
        "default": elmo.sum(axis=1) / num_words,
    }
