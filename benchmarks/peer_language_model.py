"""Language models of AllenNLP with our parameters: names, order of the gates and of the words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmo_framework import components
from elmo_framework.compat.allennlp.archive import AllenNlpArchive
from elmo_framework.compat.allennlp.parameter_names import Pair
from elmo_framework.compat.allennlp.tensors import translated_weights
from elmo_framework.compat.allennlp.translate import translate_allennlp
from elmo_framework.config.parse import parse
from elmo_framework.corpus.vocabulary_file import UNKNOWN_WORD
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.tasks.language_modeling.bi_language_model import BiLanguageModel
from elmo_framework.tasks.language_modeling.vocabulary import TargetIndexer

_THEIR_UNKNOWN_WORD = "@@UNKNOWN@@"
_CHARACTERS = "_text_field_embedder.token_embedder_elmo"
_TABLE = f"{_CHARACTERS}._embedding._module.weight"
_CNN, _OUR_CNN = f"{_CHARACTERS}._encoder._module", "bilm.token_encoder"
_LAYERS, _OUR_LAYERS = "_contextualizer._module", "bilm.context_layers"
_DIRECTIONS = {"forward": "", "backward": "_reverse"}
_NUM_FILTERS, _NUM_HIGHWAY_LAYERS = 4, 2
_STACKED_NAMES = {
    "input_linearity.weight": "input_weight",
    "state_linearity.weight": "recurrent_weight",
    "state_linearity.bias": "bias",
}
_LSTM_NAMES = {
    "weight_ih": "input_weight",
    "weight_hh": "recurrent_weight",
    "bias_ih": "bias",
    "bias_hh": "",
}
_SOFTMAX = {"_softmax_loss.softmax_w": "weight", "_softmax_loss.softmax_b": "bias"}


class Imported(NamedTuple):
    """Our model with the weights of an archive.

    Attributes:
        model: in evaluation mode.
        pairs: AllenNLP's name and ours of each parameter.
        columns: the class of each of our words in AllenNLP's softmax.
    """

    model: BiLanguageModel
    pairs: list[Pair]
    columns: list[int]


def language_model(archive: Path) -> Imported:
    """Return our model with the weights of an archive of AllenNLP."""
    read = AllenNlpArchive.read(archive)
    translation = translate_allennlp(read.config, str(archive))
    assert translation is not None
    components.load()
    experiment = parse(Experiment, translation.raw, source=str(archive)).build()
    model = experiment.model.build(vocabularies=experiment.count_vocabularies())
    assert isinstance(model, BiLanguageModel)
    pairs = [*_pairs(read.config["model"]["contextualizer"]["type"])]
    (words,) = (each for each in model.indexers if isinstance(each, TargetIndexer))
    columns = _columns(read.vocabulary["tokens"], words.vocabulary.items)
    theirs = _arranged(read.weights, columns)
    ours = dict(model.named_parameters())
    model.load_state_dict(model.state_dict() | translated_weights(pairs, theirs, ours))
    return Imported(model.eval(), pairs, columns)


def word_logits(model: BiLanguageModel, sentences: Sequence[Sequence[str]]) -> list[NDArray[Any]]:
    """Return the logits of the next and of the former word at each position of each sentence."""
    indexer = model.bilm.token_encoder.indexer
    rows = [torch.from_numpy(indexer.ids(words)) for words in sentences]
    top = model.bilm(pad_sequence(rows, batch_first=True)).layers[-1]
    tops = torch.stack(top.chunk(2, -1), dim=1)
    logits = tops @ model.softmax.weight.T + model.softmax.bias
    return [*logits.detach().double().numpy()]


def _columns(vocabulary: Sequence[str], words: Sequence[str]) -> list[int]:
    """Return the class of each of our words; AllenNLP's first one is the unknown word."""
    numbers = {word: number for number, word in enumerate(vocabulary)}
    return [numbers[_THEIR_UNKNOWN_WORD if word == UNKNOWN_WORD else word] for word in words]


def _pairs(contextualizer: str) -> Iterator[Pair]:
    """Yield AllenNLP's name and ours of each parameter."""
    yield _TABLE, f"{_OUR_CNN}.char_cnn.table"
    yield from ((name, f"softmax.{ours}") for name, ours in _SOFTMAX.items())
    for name in ("weight", "bias"):
        yield f"{_CNN}._projection.{name}", f"{_OUR_CNN}.projection.{name}"
        for number in range(_NUM_FILTERS):
            ours = f"{_OUR_CNN}.char_cnn.convolutions.{number}.{name}"
            yield f"{_CNN}.char_conv_{number}.{name}", ours
        for number, gate in product(range(_NUM_HIGHWAY_LAYERS), ("carry", "transform")):
            ours = f"{_OUR_CNN}.highway.layers.{number}.{gate}.{name}"
            yield f"{_CNN}._highways._layers.{number}.{name}", ours
    names = _LSTM_NAMES if contextualizer == "lstm" else _STACKED_NAMES
    for direction, (name, kind) in product(_DIRECTIONS, names.items()):
        end, prefix = _DIRECTIONS[direction], f"{direction}_layer_0.cell."
        theirs = f"{name}_l0{end}" if contextualizer == "lstm" else prefix + name
        yield f"{_LAYERS}.{theirs}", kind and f"{_OUR_LAYERS}.{direction}_lstm.cells.0.{kind}"


def _arranged(weights: Mapping[str, Tensor], columns: Sequence[int]) -> dict[str, Tensor]:
    """Return weights without the row of padding, with our order of words and of gates."""
    theirs = dict(weights)
    del theirs["_last_average_loss"]
    theirs[_TABLE] = theirs[_TABLE][1:]
    for name in _SOFTMAX:
        theirs[name] = theirs[name][..., columns].t()
    for name in [name for name in theirs if name.startswith(_LAYERS)]:
        if "bias_ih" in name:
            theirs[name] = theirs[name] + theirs[name.replace("_ih_", "_hh_")]
        if "bias_ih" in name or name.endswith("bias"):
            theirs[name] = _without_one(theirs[name])
        if "_l0" in name:  # PyTorch's order; that of the other layers is known
            gates = theirs[name].chunk(4)
            theirs[name] = torch.cat([gates[0], gates[2], gates[1], gates[3]])
    return theirs


def _without_one(bias: Tensor) -> Tensor:
    """Return a bias without the 1 that our forget gate, the second there, adds when it runs."""
    added = torch.zeros(4, 1)
    added[1] = 1
    return (bias.view(4, -1) - added).flatten()
