"""Scores of AllenNLP for archives, as JSON; `allennlp_agreement.py` runs it.

    PYTHONPATH=SCRIPTS PEERS/an/bin/python benchmarks/allennlp_scores.py ARCHIVE=FILE=BATCH ...

The columns of CoNLL-2012 get parses, which AllenNLP's readers need.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from allennlp_peer import import_allennlp, parsed
from measuring import say

_SUFFIXES = (".conll", ".gold_conll")


def main() -> int:
    """Print the scores of each archive."""
    import_allennlp()
    # An archive has plain JSON, and its environment need not have jsonnet.
    import_module("allennlp.common.params").evaluate_file = lambda path, **_: Path(path).read_text()
    scores = {}
    for argument in sys.argv[1:]:
        archive, file, batch_size = argument.rsplit("=", 2)
        scores[archive] = _scores(archive, Path(file), int(batch_size))
    say(json.dumps(scores))
    return 0


def _scores(archive: str, file: Path, batch_size: int) -> dict[str, float]:
    from allennlp.data.data_loaders import SimpleDataLoader
    from allennlp.evaluation import SimpleEvaluator
    from allennlp.models.archival import load_archive

    loaded = load_archive(archive)
    loaded.model.eval()
    with TemporaryDirectory() as root:
        kind = loaded.config["model"]["type"]
        data = file
        if file.suffix in _SUFFIXES:
            data = parsed(Path(root), kind, file)
        examples = list(loaded.validation_dataset_reader.read(str(data)))
    loader = SimpleDataLoader(examples, batch_size)
    loader.index_with(loaded.model.vocab)
    scores = SimpleEvaluator()(loaded.model, loader)
    return {name: float(score) for name, score in scores.items() if isinstance(score, int | float)}


if __name__ == "__main__":
    sys.exit(main())
