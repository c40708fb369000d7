"""`elmo serve`: predictions of runs over HTTP, and a page that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from elmo_framework.commands.command import Command
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.io.outputs import Input
from elmo_framework.serve.job import ServingJob


@final
@dataclass(frozen=True, kw_only=True)
class Serve(ServingJob, Command):
    """Serve predictions of runs over HTTP, with a page that shows them."""

    name = "serve"
    epilog = """\
examples:
  elmo serve runs/ner
  elmo serve runs/ner topics.tar.gz --port 0 --corpus news.txt
  elmo serve runs/ner --host 0.0.0.0 --token-file token.txt

  curl http://127.0.0.1:8000/predict -H 'Content-Type: application/json' \\
      -d '{"inputs": ["Anna Kovacs moved to Lisbon."]}'

The page is at /, the description of the interface at /openapi.json, metrics for Prometheus at
/metrics. SIGTERM and Ctrl-C finish the requests that were accepted; the exit code is then 0.
"""

    def inputs(self) -> Sequence[Input]:
        runs = [each for run in self.runs for each in run_inputs(run, "RUN")]
        return [*runs, *run_bilm_inputs(self.run_bilms)]

    def run(self) -> int:
        from elmo_framework.serve.server import serve

        serve(self, announce=lambda address: print(address, flush=True))
        return 0
