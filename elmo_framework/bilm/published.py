"""The biLMs that the authors of ELMo published, by name, and how any biLM is named."""

from __future__ import annotations

from pathlib import Path

from elmo_framework.bilm.load import BiLmFiles, bilm_files
from elmo_framework.common.download import local_file
from elmo_framework.common.errors import DataError, allowed

_PREFIX = "https://allennlp.s3.amazonaws.com/models/elmo"

PUBLISHED = {
    "original": "2x4096_512_2048cnn_2xhighway",
    "original-5.5b": "2x4096_512_2048cnn_2xhighway_5.5B",
    "medium": "2x2048_256_2048cnn_1xhighway",
    "small": "2x1024_128_2048cnn_1xhighway",
}
"""The published English models: the names that stand for them here, and their own."""


def options_place(place: str | Path) -> str | Path:
    """Return the URL of the options of a published biLM; a path or a URL as it is."""
    return _url(place, "options.json")


def weights_place(place: str | Path) -> str | Path:
    """Return the URL of the weights of a published biLM; a path or a URL as it is."""
    return _url(place, "weights.hdf5")


def find_bilm(place: str | Path) -> BiLmFiles:
    """Return the files of a biLM, downloaded if they must be.

    Args:
        place: the folder of a biLM, or of the run that trained it, or the name of a published
            one. A folder goes before a name.

    Raises:
        DataError: there is none, or it cannot be downloaded.
    """
    if Path(place).is_dir() or isinstance(place, Path):
        return bilm_files(Path(place))
    if place not in PUBLISHED:
        raise DataError(
            f"{place!r} is neither a folder nor the name of a published biLM; "
            f"{allowed(place, PUBLISHED)}"
        )
    return BiLmFiles(local_file(options_place(place)), local_file(weights_place(place)))


def _url(place: str | Path, kind: str) -> str | Path:
    name = PUBLISHED.get(str(place))
    # A file of this name goes before it, as a folder does in `find_bilm`.
    return place if name is None or Path(place).exists() else f"{_PREFIX}/{name}/elmo_{name}_{kind}"
