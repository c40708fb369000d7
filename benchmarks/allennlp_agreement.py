"""Let AllenNLP 2.10.1 evaluate archives that `elmo export` wrote, and compare all scores with ours.

    PEERS=DIR .venv/bin/python benchmarks/allennlp_agreement.py SCRIPTS

`SCRIPTS` has `allennlp_compat.py`. The models are those of `tests/fixtures/allennlp`, with random
weights, and those of `peer_configs.py` with ELMo, which are trained first. Needs the environment of
AllenNLP in `PEERS`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory

from allennlp_environment import add_scripts_argument, run_allennlp
from archive_agreement import carry
from measuring import say
from peer_configs import CONFIGS
from peer_data import KINDS

from elmo_framework import load
from elmo_framework.commands.main import main as elmo
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.compat.allennlp.export import export_allennlp
from elmo_framework.compat.allennlp.translate import translate_allennlp
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

_WITH_ELMO = [f"{kind} with ELMo" for kind in KINDS]
_BATCH_SIZE = 2
_TOLERANCE = 1e-4


def main() -> int:
    """Print a table of all models; return 1 if scores differ."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add_scripts_argument(parser)
    parser.add_argument("--only", nargs="+", default=[*_FILES, *_WITH_ELMO], metavar="MODEL")
    arguments = parser.parse_args()
    load_plugins(["plugins.allennlp_heads"], asked_by="the benchmark")
    with TemporaryDirectory() as root:
        ours, files = {}, {}
        for kind in arguments.only:
            data = _data(kind.removesuffix(" with ELMo"), Path(root))
            run = Path(root) / kind
            if kind in _WITH_ELMO:
                _train(kind, data, run)
            else:
                import_archive(_ARCHIVES / f"{kind}.tar.gz", run)
            if kind.startswith("coref"):
                _remove_singletons(run)
            files[kind] = (export_allennlp(run, Path(root) / f"{kind}.tar.gz"), data)
            ours[kind] = load(run, device="cpu").evaluate(files[kind][1])
        theirs = _scores_of_allennlp(files, arguments.scripts)
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
        values = [f"{name} ({scores[name]:.4f}, {other[name]:.4f})" for name in differing]
        rows.append((kind, str(len(common)), ", ".join(values) or "none"))
    say(render_table(("model", "scores of both", "that differ"), rows))
    return 0 if are_equal else 1


def _remove_singletons(run: Path) -> None:
    """Leave out clusters of one mention, which AllenNLP does not score."""
    path = run / "filled_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["dataset_reader"]["remove_singletons"] = True
    path.write_text(json.dumps(config), encoding="utf-8")


def _data(kind: str, root: Path) -> Path:
    file = (_DATA / _FILES[kind]).resolve()
    if kind != "coref":
        return file
    text = file.read_text(encoding="utf-8")
    for old, new in _TWICE:
        text = text.replace(old, new)
    (root / file.name).write_text(text, encoding="utf-8")
    return root / file.name


def _train(name: str, data: Path, run: Path) -> None:
    """Train a model whose ELMo continues from batch to batch, as AllenNLP's does."""
    translated = translate_allennlp(CONFIGS[name], name)
    assert translated is not None
    config = translated.raw | dict.fromkeys(("train_data_path", "validation_data_path"), str(data))
    config["plugins"] = ["plugins.allennlp_heads"]
    config["data_loader"] = {"batch_size": 1 if name.startswith("coref") else _BATCH_SIZE}
    config["trainer"] = {"optimizer": "adam", "num_epochs": 12, "device": "cpu"}
    carry(config["model"])
    file = run.with_suffix(".json")
    file.write_text(json.dumps(config), encoding="utf-8")
    if elmo(["train", str(file), "-s", str(run)]):
        raise SystemExit(f"{name} cannot be trained")


def _scores_of_allennlp(
    files: dict[str, tuple[Path, Path]], scripts: Path
) -> dict[str, dict[str, float]]:
    arguments = [
        f"{archive}={file}={_BATCH_SIZE if kind in _WITH_ELMO and 'coref' not in kind else 1}"
        for kind, (archive, file) in files.items()
    ]
    printed = run_allennlp("allennlp_scores.py", arguments, scripts)
    scores: dict[str, dict[str, float]] = json.loads(printed.splitlines()[-1])
    return scores


if __name__ == "__main__":
    sys.exit(main())
