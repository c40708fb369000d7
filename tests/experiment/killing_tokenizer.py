"""A plugin whose tokenizer kills the process that asked for its work."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import final

from elmo_framework.data.tokenizer import Tokenizer


@final
@Tokenizer.register("killing")
class KillingTokenizer(Tokenizer):
    """Words between spaces; at the first sentence with KILL the parent process is killed.

    Args:
        marker: a file that remembers that this was done.
    """

    def __init__(self, marker: str) -> None:
        self._marker = Path(marker)

    def sentences(self, text: str) -> list[str]:
        return [text]

    def words(self, sentence: str) -> list[str]:
        if "KILL" in sentence and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getppid(), signal.SIGKILL)
        return sentence.split()
