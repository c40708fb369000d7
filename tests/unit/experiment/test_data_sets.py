from pathlib import Path

from elmo_framework import components
from elmo_framework.common.build import parse
from elmo_framework.corpus.prepare import PreparationJob, prepare
from elmo_framework.experiment.data_sets import count_vocabularies, read_examples
from elmo_framework.experiment.experiment import Experiment

components.load()


def test_a_share_of_a_prepared_corpus_keeps_the_vocabulary_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"common word{i} .\n" for i in range(40)))
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nzebra\ncommon\nword7\n")
    text, vocabulary = tmp_path / "text.txt", tmp_path / "vocab.txt"
    prepare(PreparationJob([text], tmp_path / "corpus", held_out=0.0, vocabulary=vocabulary))
    shares = [
        parse(
            Experiment,
            {
                "dataset_reader": reader,
                "train_data_path": str(path),
                "model": {"type": "bilm", "context_layers": "elmo_lstm"},
                "train_fraction": 0.1,
            },
            source="test",
        ).build()
        for reader, path in (
            ("prepared_corpus", tmp_path / "corpus/training"),
            ("language_modeling", text),
        )
    ]
    of_corpus, of_text = (sorted(held.words for held in read_examples(s, "train")) for s in shares)
    assert of_corpus == of_text
    assert len(of_corpus) == 4
    counted = count_vocabularies(shares[0], shares[0].model.factory).counted("words")
    assert list(counted) == ["zebra", "common", "word7"]
