"""`elmo serve`: predictions of runs and vectors of encoders over HTTP, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from elmo_framework.commands.command import Command, register_components
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.io.outputs import Input
from elmo_framework.io.remote import as_path
from elmo_framework.serve.job import ServingJob


@final
@dataclass(frozen=True, kw_only=True)
class Serve(ServingJob, Command):
    """Serve predictions of runs, and vectors of encoders, over HTTP, with a page."""

    name = "serve"
    epilog = """\
examples:
  elmo serve runs/ner
  elmo serve runs/ner topics.tar.gz --port 0 --corpus news.txt
  elmo serve runs/ner --host 0.0.0.0 --token-file token.txt
  elmo serve mini --precision int8

  curl http://127.0.0.1:8000/predict -H 'Content-Type: application/json' \\
      -d '{"inputs": ["Anna Kovacs moved to Lisbon."]}'
  curl http://127.0.0.1:8000/embed -H 'Content-Type: application/json' \\
      -d '{"inputs": ["Anna Kovacs moved to Lisbon ."], "layers": "average", "pool": "mean"}'

The page is at /, the description of the interface at /openapi.json, metrics for Prometheus at
/metrics. SIGTERM and Ctrl-C finish the requests that were accepted; the exit code is then 0.
"""

    def inputs(self) -> Sequence[Input]:
        runs = [each for place in self.models for each in run_inputs(as_path(place), "MODEL")]
        return [*runs, *run_bilm_inputs(self.run_bilms)]

    def run(self) -> int:
        register_components(self.packages)

        from elmo_framework.serve.server import serve

        serve(self, announce=lambda address: print(address, flush=True))
        return 0
