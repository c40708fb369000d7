"""Writes a biLM as it is before training: the random control of a pretrained one of its shape.

Parts and sizes are those of another biLM. With the default seed of a config the weights are those
that its pretraining starts from.

Such a biLM is a weak control: its vectors are small and nearly the same for all words. With
`--text FILE`, each layer is also scaled to the root mean square that the layer of the other biLM
has on these sentences, and the vectors without context are centered. No weights are copied.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from measuring import Sentence, chosen_sentences, say
from torch import Tensor

from elmo_framework import components
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ElmoLstmContextLayers
from elmo_framework.bilm.files.load import read_bilm, save_bilm
from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.bilm.token_encoder import CharCnnTokenEncoder
from elmo_framework.config.parse import parse
from elmo_framework.console import ProgressBar
from elmo_framework.data.text import collate_text
from elmo_framework.errors import ElmoFrameworkError
from elmo_framework.training.seeds import seed_everything

_SEED = 13370
"""The default of `random_seed` in a config."""

_NUM_SENTENCES = 200
_NUM_PASSES = 50
_TOLERANCE = 0.003


def main() -> int:
    """Write the biLM; return 2 where its model cannot be read or a folder is in the way."""
    arguments = _arguments()
    components.load()
    try:
        text = () if arguments.text is None else chosen_sentences(arguments.text, _NUM_SENTENCES)
        write_random_bilm(arguments.bilm, arguments.output_dir, seed=arguments.seed, text=text)
    except ElmoFrameworkError as error:
        say(f"error: {error}", file=sys.stderr)
        return 2
    say(str(arguments.output_dir))
    return 0


def write_random_bilm(
    model: str | Path, directory: Path, *, seed: int = _SEED, text: Sequence[Sentence] = ()
) -> None:
    """Write a biLM with the parts and sizes of another and initial weights.

    Args:
        model: the folder or the name of the other.
        directory: where the files go; it must not exist.
        seed: of the weights.
        text: sentences to match the scale of its layers on; without them it is not changed.

    Raises:
        DataError: there is no such biLM.
        ElmoFrameworkError: something is in the way.
    """
    if directory.exists():
        raise ElmoFrameworkError(f"{directory} already exists; choose another folder")
    with torch.device("meta"):
        parts = read_bilm(resolve_bilm(model)).description
    seed_everything(seed)
    bilm = parse(BiLm, parts, source=str(model)).build()
    if text:
        match_scale(bilm, read_bilm(resolve_bilm(model)), text)
    save_bilm(bilm, directory)


@torch.no_grad()
def match_scale(bilm: BiLm, model: BiLm, text: Sequence[Sentence]) -> None:
    """Give each layer of a biLM the scale that it has in another, by its projections alone.

    The vectors without context become those of mean zero and the other's root mean square; then
    each layer of each direction, from the first, has the other's root mean square. As in Mishkin
    and Matas (2016), but with the variances of a trained model.

    Args:
        bilm: it is changed.
        model: of the same parts and sizes.
        text: some sentences.

    Raises:
        ElmoFrameworkError: it has other parts than bilm-tf's, or layers without a projection.
    """
    encoder, context = bilm.token_encoder, bilm.context_layers
    if (
        not isinstance(encoder, CharCnnTokenEncoder)
        or encoder.projection is None
        or not isinstance(context, ElmoLstmContextLayers)
        or any(cell.projection_weight is None for cell in context.forward_lstm.cells)
    ):
        raise ElmoFrameworkError("the scale is matched by projections, which this biLM lacks")
    targets = _word_layers(model, text)
    words = _word_layers(bilm, text)[0, :, : encoder.output_dim]
    mean = words.mean(dim=0)
    factor = _rms(targets[0]) / _rms(words - mean)
    encoder.projection.weight *= factor
    encoder.projection.bias.copy_((encoder.projection.bias - mean) * factor)
    halves = slice(None, context.output_dim), slice(context.output_dim, None)
    cells = [
        (layer, half, cell)
        for half, lstm in zip(halves, (context.forward_lstm, context.backward_lstm), strict=True)
        for layer, cell in enumerate(lstm.cells, start=1)
    ]
    with ProgressBar("matching the scale", total=len(cells), unit="layer") as progress:
        for layer, half, cell in cells:
            for _ in range(_NUM_PASSES):
                # The output is fed back to the gates, and is a part of the next layer.
                current = _word_layers(bilm, text)[layer, :, half]
                factor = _rms(targets[layer, :, half]) / _rms(current)
                if abs(factor - 1) < _TOLERANCE:
                    break
                cell.projection_weight *= factor
            progress.advance(1)


def _word_layers(bilm: BiLm, text: Sequence[Sentence]) -> Float[Tensor, "layers words dim"]:
    """Return the layers of all words of some sentences, without boundaries."""
    indexer = bilm.token_encoder.indexer
    batch = collate_text([tuple(words) for words in text], [indexer])
    layers, mask = bilm(batch.ids[indexer.key]).layers[:, :, 1:-1], batch.mask
    return layers[:, mask]


def _rms(vectors: Float[Tensor, "words dim"]) -> Tensor:
    return vectors.square().mean().sqrt()


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("bilm", metavar="BILM", help="the folder or the name of a biLM")
    parser.add_argument("--output-dir", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="match the scale of each layer on these sentences, one per line, words by spaces",
    )
    parser.add_argument("--seed", type=int, default=_SEED, help="of the weights (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
