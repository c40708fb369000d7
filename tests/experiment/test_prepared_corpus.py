"""From text to a trained biLM by way of a prepared corpus, and what a kill leaves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.corpus import tokenized_blocks
from tests.experiment.jobs import DATA, PRETRAINING, evaluations, run_python, train

CONFIG = "experiments/pretrain/demo.jsonnet"
PREPARED = {"type": "prepared_corpus"}
BLOCK_BYTES = 2000


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join((DATA / "lm_train.txt").read_text().splitlines(keepends=True)[:80]))
    return path


def pretrained(directory: Path, text: Path, **changes: Any) -> Path:
    """Train a tiny biLM for an epoch."""
    assert train(CONFIG, directory, settings(text, **changes)) == 0
    return directory


def settings(text: Path, **changes: Any) -> dict[str, Any]:
    """What a test changes in the demo's config to train on a text and to be scored on it."""
    kept = {key: held for key, held in PRETRAINING.items() if "dataset_reader" not in key}
    paths = {"train_data_path": str(text), "validation_data_path": str(text)}
    return {**kept, "trainer.num_epochs": 1, **paths, **changes}


def contents(corpus: Path) -> dict[str, bytes]:
    return {str(p.relative_to(corpus)): p.read_bytes() for p in corpus.rglob("*") if p.is_file()}


def test_training_on_a_prepared_corpus_is_training_on_its_text(text: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    assert main(["prepare", str(text), "--output-dir", str(corpus), "--held-out", "0"]) == 0
    few = {"trainer.num_steps": 10}
    of_text = pretrained(tmp_path / "of_text", text, **few)
    of_corpus = pretrained(
        tmp_path / "of_corpus", corpus / "training", dataset_reader=PREPARED, **few
    )
    vocabularies = [run / "bilm/vocabulary.txt" for run in (of_text, of_corpus)]
    assert vocabularies[0].read_text() == vocabularies[1].read_text()
    for one, other in zip(evaluations(of_text), evaluations(of_corpus), strict=True):
        assert one == pytest.approx(other, rel=1e-4)


def test_plain_text_trains_with_a_bilm_tf_vocabulary_file(text: Path, tmp_path: Path) -> None:
    listed = tmp_path / "vocab.txt"
    listed.write_text("<S>\n</S>\n<UNK>\nzebra\n.\nthe\n!!!MAXTERMID\n")
    changes = {"vocabulary": {"words_file": str(listed)}, "datasets_for_vocab_creation": []}
    run = pretrained(tmp_path / "run", text, **changes, **{"trainer.num_steps": 1})
    known = (run / "bilm/vocabulary.txt").read_text()
    assert known == "<S>\n</S>\n<UNK>\nzebra\n.\nthe\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "<S>\n</S>\n<UNK>\nzebra\ngnu\n",
            "the vocabulary holds none of the words of the training",
        ),
        ("<S>\n</S>\nthe\n.\n", "'the' in place of <UNK>"),
    ],
)
def test_an_unsuitable_vocabulary_is_refused_before_training(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    listed = tmp_path / "vocab.txt"
    listed.write_text(words)
    changes = {"vocabulary": {"words_file": str(listed)}, "datasets_for_vocab_creation": []}
    assert train(CONFIG, tmp_path / "run", settings(text, **changes)) == 2
    assert message in capsys.readouterr().err


def test_a_corpus_smaller_than_one_batch_is_reported(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text.write_text("one\nline\nor\nfour\n")
    corpus = tmp_path / "corpus"
    assert main(["prepare", str(text), "--output-dir", str(corpus)]) == 0
    changes = settings(corpus / "training", dataset_reader=PREPARED)
    assert train(CONFIG, tmp_path / "run", changes) == 2
    assert "one batch of 4 rows and 10 steps needs 40" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_preparation_resumes_and_leaves_no_process(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = text.read_text().splitlines(keepends=True)
    text.write_text("".join([*lines[:60], "KILL\n", *lines[60:]]))
    tokenizer = f'{{"type": "killing", "marker": "{tmp_path / "killed"}"}}'
    command = ["prepare", str(text), "--tokenizer", tokenizer, "--held-out", "0.1"]
    command += ["--include-package", "tests.experiment.killing_tokenizer", "--output-dir"]
    code = (
        "import sys; from elmo_framework.corpus import tokenized_blocks; "
        "from elmo_framework.commands.main import main; "
        f"tokenized_blocks.BLOCK_BYTES = {BLOCK_BYTES}; sys.exit(main(sys.argv[1:]))"
    )
    corpora = tmp_path / "killed_corpus", tmp_path / "whole_corpus"
    # This returns when the last process with the pipe for its output has ended.
    done = run_python("-c", code, *command, str(corpora[0]), "--processes", "2")
    assert (done.returncode, corpora[0].exists()) == (-9, False)

    monkeypatch.setattr(tokenized_blocks, "BLOCK_BYTES", BLOCK_BYTES)
    assert main([*command, str(corpora[0]), "--resume", "--processes", "1"]) == 0
    assert main([*command, str(corpora[1]), "--processes", "1"]) == 0
    assert contents(corpora[0]) == contents(corpora[1])
