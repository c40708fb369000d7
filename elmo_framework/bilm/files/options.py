"""bilm-tf's `options.json`: what a biLM is made of, without its weights."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.config.parse import parse
from elmo_framework.config.types import Lazy
from elmo_framework.data.characters import NUM_CHARACTERS
from elmo_framework.errors import DataError, shown

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class BiLmTfOptions:
    """The content of `options.json`.

    Attributes:
        path: the file.
        content: the object in it; keys that are not known are left alone.
    """

    path: Path
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> BiLmTfOptions:
        """Read the file.

        Raises:
            DataError: it is not a JSON object, or it describes a unidirectional language model.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"not the options of a biLM: {error}", path=path) from error
        if not isinstance(content, dict):
            raise DataError(
                f"not the options of a biLM: {shown(content)} is not an object", path=path
            )
        options = cls(path, content)
        if not options._get("bidirectional", True):
            raise DataError("'bidirectional' is false; a biLM reads both ways", path=path)
        num_ids = options._get("char_cnn.n_characters", NUM_CHARACTERS)
        # Files for training leave id 0 out.
        if num_ids not in (NUM_CHARACTERS - 1, NUM_CHARACTERS):
            _LOG.warning("%s: n_characters is %r; read as %d", path, num_ids, NUM_CHARACTERS)
        return options

    @property
    def fills_projection(self) -> bool:
        """Whether the filters are as many as a projection of them would be wide.

        bilm-tf has no projection then, and AllenNLP's files have one.
        """
        try:
            num_filters = sum(num for _, num in self._get("char_cnn.filters"))
        except (TypeError, ValueError):
            return False
        return bool(num_filters == self._get("lstm.projection_dim"))

    def bilm(self, *, has_projection: bool) -> Lazy[BiLm]:
        """Return the biLM, not built yet.

        Raises:
            DataError: an option is missing.
            ConfigError: an option is of the wrong kind.
        """
        get = self._get
        token_encoder = {
            "type": "char_cnn",
            "embedding_dim": get("char_cnn.embedding.dim"),
            "filters": get("char_cnn.filters"),
            "num_highway": get("char_cnn.n_highway", 0),
            "projection_dim": get("lstm.projection_dim") if has_projection else None,
            "activation": get("char_cnn.activation", "relu"),
            "max_characters_per_token": get("char_cnn.max_characters_per_token"),
        }
        context_layers = {
            "type": "elmo_lstm",
            "cell_size": get("lstm.dim"),
            "projection_dim": get("lstm.projection_dim"),
            "num_layers": get("lstm.n_layers", 1),
            "cell_clip": get("lstm.cell_clip", None),
            "projection_clip": get("lstm.proj_clip", None),
            "use_skip_connections": get("lstm.use_skip_connections", False),
        }
        raw = {"token_encoder": token_encoder, "context_layers": context_layers}
        return parse(BiLm, raw, source=str(self.path))

    def _get(self, name: str, *default: Any) -> Any:
        """Return a value by its dotted name; without a default it has to be there."""
        value: Any = self.content
        for key in name.split("."):
            if not isinstance(value, Mapping):
                message = f"cannot read {name!r}: expected an object, found {value!r}"
                raise DataError(message, path=self.path)
            if key not in value and default:
                return default[0]
            if key not in value:
                message = f"{name!r} is missing: no {key!r} among {', '.join(sorted(value))}"
                raise DataError(message, path=self.path)
            value = value[key]
        return value


def options_of(bilm: BiLm) -> dict[str, Any]:
    """Return the content of `options.json` for a biLM that bilm-tf's files can represent."""
    words, context = bilm.description["token_encoder"], bilm.description["context_layers"]
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": words["activation"],
            "embedding": {"dim": words["embedding_dim"]},
            "filters": words["filters"],
            "max_characters_per_token": words["max_characters_per_token"],
            "n_characters": NUM_CHARACTERS,
            "n_highway": words["num_highway"],
        },
        "lstm": {
            "cell_clip": context["cell_clip"],
            "dim": context["cell_size"],
            "n_layers": context["num_layers"],
            "proj_clip": context["projection_clip"],
            "projection_dim": bilm.token_encoder.output_dim,
            "use_skip_connections": context["use_skip_connections"],
        },
    }
