"""Formats of pretrained encoders that plugins add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import torch

from elmo_framework.config.registry import Registrable, members
from elmo_framework.errors import DataError
from elmo_framework.io.files import digest
from elmo_framework.io.remote import as_path
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.cache.cached_layers import CacheDtype
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.shared_source import shared_source
from elmo_framework.model.part import Reference


class EncoderFormat(Registrable, ABC):
    """A kind of folder with a pretrained encoder, in addition to biLMs and transformers.

    `elmo embed`, `elmo neighbors`, `load_encoder` and runs recognize a folder of a registered
    format by its options file. A member has no parameters.

    Attributes:
        options_file: the name of the file that identifies the format.
        weights_file: the name of the file with the weights.
    """

    class_attributes = ("options_file", "weights_file")
    options_file: ClassVar[str]
    weights_file: ClassVar[str]

    @abstractmethod
    def read(self, folder: Path, precision: Precision, fingerprint: Reference) -> LayerSource:
        """Read a frozen encoder; under the device `meta`, without its weights.

        Args:
            folder: of its files.
            precision: of its products.
            fingerprint: of its files, for the source.

        Raises:
            DataError: a file is missing or damaged.
            ValueError: the encoder does not have the precision.
        """

    def open(
        self,
        folder: Path,
        *,
        cache: Literal["disk", "memory", "none"] = "none",
        cache_dtype: CacheDtype = "float16",
        precision: Precision = "float32",
    ) -> LayerSource:
        """Open a frozen encoder; one that is in use is shared by all that open equal files.

        Args:
            folder: of its files.
            cache: where layers are cached.
            cache_dtype: the type of cached numbers.
            precision: of its products.

        Raises:
            DataError, ValueError: see `read`.
        """
        fingerprint = self.reference(folder)
        return shared_source(
            fingerprint,
            lambda: self.read(folder, precision, fingerprint),
            partial(self.open, folder, precision=precision),
            cache=cache,
            cache_dtype=cache_dtype,
            precision=precision,
        )

    def files(self, folder: Path) -> list[Path]:
        """Return the files of an encoder, the options first."""
        return [folder / self.options_file, folder / self.weights_file]

    def reference(self, folder: Path) -> Reference:
        """Return the path and the digest of an encoder; under the device `meta`, by its options.

        Raises:
            DataError: a file is missing or cannot be read.
        """
        paths = self.files(folder)
        if torch.get_default_device().type == "meta":
            paths = paths[:1]
        try:
            return Reference(folder.absolute(), digest(paths))
        except OSError as error:
            raise DataError(f"cannot read the encoder: {error}", path=folder) from error


def encoder_format(place: str | Path) -> EncoderFormat | None:
    """Return the registered format of a folder; None for a biLM, a transformer or no folder."""
    for member in members(EncoderFormat).values():
        encoder_format = member()
        assert isinstance(encoder_format, EncoderFormat)
        if (as_path(place) / encoder_format.options_file).is_file():
            return encoder_format
    return None
