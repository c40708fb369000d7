"""The job of `elmo serve`, whose fields are the arguments of the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    ComponentConfig,
    Device,
    Plugins,
    RunBiLms,
)
from elmo_framework.kernels.precision import Precision

TOKEN_VARIABLE = "ELMO_SERVE_TOKEN"


@dataclass(frozen=True, kw_only=True)
class ServingJob:
    """Runs and encoders, where they are served, and what the server accepts.

    Attributes:
        models: finished runs, by folder or archive, and encoders: mini, a published biLM, or the
            folder of a biLM, of the run that trained it or of a transformer; the names of the
            folders are part of the URLs.
        host: the address to listen at (default: %(default)s, this machine only).
        port: 0 takes a free one, which is printed (default: %(default)s).
        token_file: a file with the token that requests must send; by default the token is that of
            the variable ELMO_SERVE_TOKEN; without either, any program of this machine may ask.
        corpus: text with one tokenized sentence per line, in which the page finds neighbors of a
            word.
        max_body: bytes of a request (default: %(default)s).
        max_inputs: inputs of a request (default: %(default)s).
        max_characters: characters of an input (default: %(default)s).
        max_words: words of an input (default: %(default)s).
        max_numbers: numbers in the vectors of a request (default: %(default)s).
        max_waiting: inputs that may wait; further requests get 503 (default: %(default)s).
        timeout: seconds for a request to arrive (default: %(default)s).
        stop_timeout: seconds to finish requests after SIGTERM or Ctrl-C (default: %(default)s).
        batch_size: number of inputs in a batch, of one or more requests (default: %(default)s).
        tokenizer: splits texts for encoders: a registered name, or JSON as in a config (default:
            %(default)s, for tokenized text).
        precision: of encoders (default: %(default)s).
        run_bilms: the new folder of a biLM that a run was trained with; may be given several times.
        packages: import a module that registers components; may be given several times.
    """

    models: Annotated[Sequence[str], Argument("MODEL", is_positional=True)]
    host: str = "127.0.0.1"
    port: Annotated[int, Argument("N")] = 8000
    token_file: Annotated[Path | None, Argument("FILE")] = None
    corpus: Annotated[Path | None, Argument("FILE")] = None
    max_body: AboveZero = 1_000_000
    max_inputs: AboveZero = 256
    max_characters: AboveZero = 20_000
    max_words: AboveZero = 1_000
    max_numbers: AboveZero = 1_000_000
    max_waiting: AboveZero = 1_024
    timeout: AboveZero = 30
    stop_timeout: AboveZero = 30
    batch_size: AboveZero = 32
    tokenizer: ComponentConfig = "whitespace"
    precision: Precision = "float32"
    run_bilms: RunBiLms = ()
    device: Device = "auto"
    packages: Plugins = ()
