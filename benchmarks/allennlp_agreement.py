"""Let AllenNLP 2.10.1 evaluate archives that `elmo export` wrote, and compare all scores with ours.

    PEERS=DIR .venv/bin/python benchmarks/allennlp_agreement.py SCRIPTS

`SCRIPTS` has `allennlp_compat.py`. The models are those of `tests/fixtures/allennlp`, with random
weights, and a tagger with ELMo that is trained first. Needs the environment of AllenNLP in `PEERS`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory

from allennlp_environment import add_scripts_argument, run_allennlp
from measuring import say

from elmo_framework import load
from elmo_framework.commands.main import main as elmo
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.compat.allennlp.export import export_allennlp
from elmo_framework.config.plugins import load_plugins
from elmo_framework.console import render_table

_ROOT = Path(__file__).parents[1]
_ARCHIVES = _ROOT / "tests/fixtures/allennlp"
_DATA = _ROOT / "tests/fixtures/first_version/data"
_FILES = {
    **dict.fromkeys(("crf_tagger", "simple_tagger", "characters", "bytes", "stacked"), "ner.txt"),
    **dict.fromkeys(("esim", "decomposable_attention"), "snli.jsonl"),
    **dict.fromkeys(("bcn", "basic_classifier"), "sst.txt"),
    "bidaf": "squad.json",
    "srl": "srl.gold_conll",
    "coref": "coreference.conll",
    **dict.fromkeys(
        ("constituency_parser", "constituency_parser_tags"), "../../allennlp/trees.mrg"
    ),
}
_DEFINED_OTHERWISE = {"loss", "accuracy3"}
"""AllenNLP has the mean loss of batches, and of a CRF the third score of the tags it predicts."""

_TWICE = [("(0|(2", "(0"), ("2)|0)", "0)")]
"""A mention of two clusters, which AllenNLP merges before it scores."""

_ELMO, _BATCH_SIZE = "crf_tagger with ELMo", 2
_TOLERANCE = 1e-4


def main() -> int:
    """Print a table of all models; return 1 if scores differ."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add_scripts_argument(parser)
    scripts = parser.parse_args().scripts
    load_plugins(["plugins.allennlp_heads"], asked_by="the benchmark")
    with TemporaryDirectory() as root:
        ours, files = {}, {}
        for kind in [*_FILES, _ELMO]:
            run = _trained(Path(root)) if kind == _ELMO else Path(root) / kind
            if kind != _ELMO:
                import_archive(_ARCHIVES / f"{kind}.tar.gz", run)
            if kind == "coref":
                _remove_singletons(run)
            archive = export_allennlp(run, Path(root) / f"{kind}.tar.gz")
            files[kind] = (archive, _data(kind, Path(root)))
            ours[kind] = load(run, device="cpu").evaluate(files[kind][1])
        theirs = _scores_of_allennlp(files, scripts)
    rows, are_equal = [], True
    for kind, scores in ours.items():
        other = theirs[str(files[kind][0])]
        common = sorted(scores.keys() & other.keys() - _DEFINED_OTHERWISE)
        differing = [
            name
            for name in common
            if not isclose(scores[name], other[name], rel_tol=0, abs_tol=_TOLERANCE)
        ]
        are_equal &= bool(common) and not differing
        rows.append((kind, str(len(common)), ", ".join(differing) or "none"))
    say(render_table(("model", "scores of both", "that differ"), rows))
    return 0 if are_equal else 1


def _remove_singletons(run: Path) -> None:
    """Leave out clusters of one mention, which AllenNLP does not score."""
    path = run / "filled_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["dataset_reader"]["remove_singletons"] = True
    path.write_text(json.dumps(config), encoding="utf-8")


def _data(kind: str, root: Path) -> Path:
    file = (_DATA / _FILES.get(kind, "ner.txt")).resolve()
    if kind != "coref":
        return file
    text = file.read_text(encoding="utf-8")
    for old, new in _TWICE:
        text = text.replace(old, new)
    (root / file.name).write_text(text, encoding="utf-8")
    return root / file.name


def _trained(root: Path) -> Path:
    """Return a run of a tagger whose ELMo continues from batch to batch, as AllenNLP's does."""
    mini = _ROOT / "elmo_framework/bilm/mini"
    words = {
        "type": "elmo_token_embedder",
        "options_file": str(mini / "options.json"),
        "weight_file": str(mini / "weights.hdf5"),
        "state": "carry",
    }
    config = {
        "dataset_reader": {"type": "conll2003"},
        "train_data_path": str(_DATA / "ner.txt"),
        "validation_data_path": str(_DATA / "ner.txt"),
        "model": {
            "type": "crf_tagger",
            "embedder": {"token_embedders": {"elmo": words}},
            "encoder": {"type": "lstm", "hidden_size": 8, "bidirectional": True},
        },
        "data_loader": {"batch_size": _BATCH_SIZE},
        "trainer": {"optimizer": "adam", "num_epochs": 6, "device": "cpu"},
    }
    (root / "config.json").write_text(json.dumps(config))
    if elmo(["train", str(root / "config.json"), "-s", str(root / "elmo")]):
        raise SystemExit("the tagger cannot be trained")
    return root / "elmo"


def _scores_of_allennlp(
    files: dict[str, tuple[Path, Path]], scripts: Path
) -> dict[str, dict[str, float]]:
    arguments = [
        f"{archive}={file}={_BATCH_SIZE if kind == _ELMO else 1}"
        for kind, (archive, file) in files.items()
    ]
    printed = run_allennlp("allennlp_scores.py", arguments, scripts)
    scores: dict[str, dict[str, float]] = json.loads(printed.splitlines()[-1])
    return scores


if __name__ == "__main__":
    sys.exit(main())
