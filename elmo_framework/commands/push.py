"""`elmo push`: upload a run or a biLM to the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.commands.share import ShareCommand
from elmo_framework.config.arguments import Argument
from elmo_framework.io.outputs import Input
from elmo_framework.io.remote import as_path


@final
@dataclass(frozen=True, kw_only=True)
class Push(ShareCommand):
    """Upload a run or a biLM to the Hugging Face Hub.

    Attributes:
        run_or_bilm: the folder or archive of a run, or the folder of a biLM.
        place: hf://OWNER/NAME, or hf://OWNER/NAME@BRANCH.
        private: if the repository does not exist, create a private one.
    """

    name = "push"
    epilog = """\
examples:
  elmo push runs/ner hf://me/ner --license cc-by-4.0
  elmo predict hf://me/ner sentences.txt
  elmo evaluate hf://me/ner@5f0c7d6b1a2e valid.txt

Log in once with `hf auth login`; the token stays with huggingface_hub. The repository has the files
of `elmo archive`, one by one. Elsewhere, name it wherever a run or a biLM is named, with a branch,
a tag or a commit after @. The command prints the new commit.
"""

    run_or_bilm: Annotated[str, Argument("RUN", is_positional=True)]
    place: Annotated[str, Argument("PLACE", is_positional=True)]
    private: bool = False

    def inputs(self) -> Sequence[Input]:
        return [*run_inputs(as_path(self.run_or_bilm), "RUN"), *run_bilm_inputs(self.run_bilms)]

    def run(self) -> int:
        from elmo_framework.experiment.archive import push

        print(push(self.run_or_bilm, self.place, is_private=self.private, **self.options()))
        return 0
