"""A run in other programs: as a component of spaCy, in threads, as a pickle."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import spacy

import elmo_framework.integrations.spacy_factories  # noqa: F401
from elmo_framework import load
from elmo_framework.errors import RunError
from elmo_framework.experiment.assembly import Assembly
from tests.experiment.jobs import DATA

SENTENCES = [
    " ".join(line.split("\t")[0] for line in lines.splitlines())
    for lines in (DATA / "train.txt").read_text().split("\n\n")[:24]
]


@pytest.fixture(scope="module")
def run(tagger: Path) -> Assembly:
    return load(tagger, device="cpu")


def test_entities_are_the_spans_of_the_tagger(
    tagger: Path, run: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tags(words: Sequence[str]) -> list[str]:  # a tagger this small finds nothing
        return ["B-PER" if word[:1].isupper() else "O" for word in words]

    predict = lambda _, output, batch: [tags(each.words) for each in batch.examples]  # noqa: E731
    monkeypatch.setattr(type(run.model), "predict", predict)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo_ner", config={"run": str(tagger), "device": "cpu"})
    texts = ["", " ", *SENTENCES, "  ".join(SENTENCES[:6])]
    num_entities = 0
    for doc in nlp.pipe(texts, batch_size=5):
        expected = []
        for sentence in doc.sents:
            words = [token for token in sentence if not token.is_space]
            if words:
                (output,) = run.predict([{"words": [token.text for token in words]}])
                expected += [
                    (words[span["start"]].idx, words[span["end"] - 1], span["label"])
                    for span in output["spans"]
                ]
        found = [(entity.start_char, entity[-1], entity.label_) for entity in doc.ents]
        assert found == expected
        for entity in doc.ents:
            assert doc.text[entity.start_char : entity.end_char] == entity.text
        num_entities += len(found)
    assert num_entities > 30
    component = nlp.get_pipe("elmo_ner")
    component.from_bytes(component.to_bytes())


def test_run_without_tags_is_no_component(bilm: Path) -> None:
    with pytest.raises(RunError, match="predicts no labels"):
        spacy.blank("en").add_pipe("elmo_ner", config={"run": str(bilm)})


def test_threads_predict_as_one_thread(run: Assembly) -> None:
    batches = [SENTENCES[start : start + 4] for start in range(0, 24, 4)]
    expected = [run.predict(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(run.predict, batches)) == expected


def test_pickled_run_predicts_the_same(run: Assembly) -> None:
    content = pickle.dumps(run)
    assert len(content) < 1000
    copied = pickle.loads(content)
    assert copied.predict(SENTENCES[:4]) == run.predict(SENTENCES[:4])
