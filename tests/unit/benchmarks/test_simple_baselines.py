from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from baseline_classifiers import BagOfWords, MajorityLabel, WordClassifier
from baseline_rules import EqualMentions, KnownNames, NearestPhrase
from simple_baselines import main

from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.metrics.srl import Proposition
from elmo_framework.study.record import read_records
from elmo_framework.tasks.classification.task import ClassifiedText
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.entailment.task import SentencePair
from elmo_framework.tasks.question_answering.example import PassageQuestion, TokenizedText
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.tagging.task import TaggedSentence

FIXTURES = Path(__file__).parents[2] / "fixtures"


def tagged(text: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(tuple(text.split()), None if tags is None else tuple(tags.split()))


def document(*sentences: str, speakers: str | None = None) -> Document:
    words = tuple(tuple(sentence.split()) for sentence in sentences)
    names = None
    if speakers is not None:
        pairs = zip(words, speakers, strict=True)
        names = tuple((name,) * len(sentence) for sentence, name in pairs)
    return Document(words, None, speakers=names)


def linked(*sentences: str, speakers: str | None = None) -> list[list[str]]:
    example = document(*sentences, speakers=speakers)
    (resolution,) = EqualMentions().predict([example])
    return [
        [" ".join(example.words[start : end + 1]) for start, end in cluster]
        for cluster in resolution.clusters
    ]


def question(text: str, passage: str) -> PassageQuestion:
    tokenizer = WhitespaceTokenizer()
    texts = (TokenizedText.of(each, tokenizer) for each in (passage, text))
    return PassageQuestion("q", *texts, answers=None, span=None)


def test_known_names_prefer_longest_and_most_frequent() -> None:
    names = KnownNames()
    names.fit(
        [
            tagged("New York won", "B-LOC I-LOC O"),
            tagged("York", "B-PER"),
            tagged("Paris Paris Paris", "B-LOC B-PER B-LOC"),
        ]
    )
    predicted = names.predict([tagged("in New York and York with Paris")])
    assert predicted == [("O", "B-LOC", "I-LOC", "O", "B-PER", "O", "B-LOC")]


def test_known_names_keep_the_scheme_of_the_tags() -> None:
    names = KnownNames()
    names.fit([tagged("New York won", "B-LOC L-LOC O"), tagged("Ann", "U-PER")])
    assert names.predict([tagged("Ann saw New York")]) == [("U-PER", "O", "B-LOC", "L-LOC")]


def test_without_spans_words_have_most_frequent_tags() -> None:
    names = KnownNames()
    names.fit([tagged("dogs run", "NOUN VERB"), tagged("a run", "DET VERB")])
    assert names.predict([tagged("dogs swim")]) == [("NOUN", "VERB")]


def test_equal_mentions_link_names_pronouns_and_definites() -> None:
    assert linked(
        "We met Ann Lee .", "Ann Lee saw the dog .", "The dog saw her , and she ran ."
    ) == [
        ["Ann Lee", "Ann Lee"],
        ["the dog", "The dog"],
        ["her", "she"],
    ]


def test_first_word_is_a_name_only_if_seen_elsewhere() -> None:
    assert linked("Dogs bark .", "Dogs run .") == []
    assert linked("Ann ran .", "I saw Ann 's dog .") == [["Ann", "Ann 's"]]


def test_first_person_is_linked_for_one_speaker() -> None:
    sentences = ("I ran .", "I hid .", "I won .")
    assert linked(*sentences, speakers="aba") == [["I", "I"]]


def test_nearest_phrase_is_of_the_kind_asked_for() -> None:
    passage = "In 1810 , Chopin was born in Warsaw . He died in 1849 in Paris ."
    rule = NearestPhrase()
    rule.fit([question("x", passage), question("x", "In other words , he was not born .")])
    questions = [
        question("When was Chopin born ?", passage),
        question("Where was Chopin born ?", passage),
        question("When did he die in Paris ?", passage),
    ]
    answers = rule.predict(questions)
    assert [answer.text for answer in answers] == ["1810", "Warsaw", "1849"]
    assert passage[answers[0].start : answers[0].end] == "1810"


def test_nearest_phrase_answers_if_there_is_no_phrase() -> None:
    rule = NearestPhrase()
    rule.fit([])
    (answer,) = rule.predict([question("the ?", "the of")])
    assert answer.text == "the"


def test_majority_label_has_the_shares_of_the_labels() -> None:
    majority = MajorityLabel()
    majority.fit(
        [ClassifiedText(("a",), label) for label in "bba"] + [ClassifiedText(("a",), None)]
    )
    (prediction,) = majority.predict([ClassifiedText(("x",), None)])
    assert prediction.label == "b"
    assert prediction.probabilities == pytest.approx({"a": 1 / 3, "b": 2 / 3})


def test_bag_of_words_learns_words_of_texts() -> None:
    texts = [("good film", "+"), ("good fun", "+"), ("bad film", "-"), ("bad taste", "-")]
    bag = BagOfWords()
    bag.fit([ClassifiedText(tuple(text.split()), label) for text, label in texts])
    (good, bad) = bag.predict(
        [ClassifiedText(("Good", "taste"), None), ClassifiedText(("bad",), None)]
    )
    assert (good.label, bad.label) == ("+", "-")
    assert sum(good.probabilities.values()) == pytest.approx(1)


def test_bag_of_words_uses_both_sentences_of_a_pair() -> None:
    same = [SentencePair(("a", word), (word,), "yes") for word in "bcdefgh"]
    other = [SentencePair(("a", word), ("z",), "no") for word in "bcdefgh"]
    bag = BagOfWords()
    bag.fit(same + other)
    pairs = [SentencePair(("x", "z"), ("x",), None), SentencePair(("x",), ("z",), None)]
    assert [each.label for each in bag.predict(pairs)] == ["yes", "no"]


def test_word_classifier_uses_neighbors_of_a_word() -> None:
    classifier = WordClassifier()
    training = [tagged(f"Mr {name} ran", "O B-PER O") for name in ("Li", "Moe", "Ray")]
    training += [tagged(f"the {word} ran", "O O O") for word in ("Dog", "Cat", "Hen")]
    classifier.fit(training)
    assert classifier.predict([tagged("Mr Dog ran"), tagged("the Li ran")]) == [
        ("O", "B-PER", "O"),
        ("O", "O", "O"),
    ]


def test_word_classifier_labels_each_predicate() -> None:
    def example(text: str, *propositions: tuple[int, str]) -> SrlExample:
        own = tuple(Proposition(place, tuple(tags.split())) for place, tags in propositions)
        return SrlExample(tuple(text.split()), own)

    classifier = WordClassifier()
    first = example("Ann saw Bob leave", (1, "B-A0 B-V B-A1 O"), (3, "O O B-A0 B-V"))
    classifier.fit([first] * 3)
    second = example("Ann saw Eve leave", (1, "O O O O"), (3, "O O O O"))
    (predicted,) = classifier.predict([second])
    assert predicted == (
        Proposition(1, ("B-A0", "B-V", "B-A1", "O")),
        Proposition(3, ("O", "O", "B-A0", "B-V")),
    )
    assert classifier.predict([example("It rains")]) == [()]


def test_a_classifier_needs_two_labels() -> None:
    with pytest.raises(DataError, match="all have the label 'O'"):
        WordClassifier().fit([tagged("it rains", "O O")])
    with pytest.raises(DataError, match="all have the label '1'"):
        BagOfWords().fit([ClassifiedText(("a",), "1")])


DATA = {
    "ner": "ner/train.txt",
    "sst": "sst/trees.txt",
    "snli": "snli/pairs.jsonl",
    "srl": "srl/sentences.gold_conll",
    "coreference": "coreference/train.conll",
    "squad": "squad/train.json",
}


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr("sys.argv", ["simple_baselines.py", *map(str, arguments)])
    return main()


@pytest.mark.parametrize("task", DATA)
def test_every_task_has_baselines_with_its_metric(
    task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Path(__file__).parents[3] / "experiments" / task / "baseline.jsonnet"
    overrides = [f"{key}_data_path={FIXTURES / DATA[task]}" for key in ("train", "validation")]
    overrides += ["dataset_reader.tokenizer=whitespace"] if task == "snli" else []
    options = [part for override in overrides for part in ("-o", override)]
    assert run(monkeypatch, config, *options) == 0, capsys.readouterr().err
    _, _, *rows = capsys.readouterr().out.splitlines()
    scores = [float(row.split()[5]) for row in rows]
    assert scores
    assert all(0 <= score <= 100 for score in scores)
    assert max(scores) > 0


def study(folder: Path, **keys: Any) -> Path:
    sentences = [[f"Ann{index}"] * (1 + index % 5) for index in range(30)]
    lines = [
        "ran O O O\n" + "".join(f"{word} O O B-PER\n" for word in words) for words in sentences
    ]
    (folder / "names.txt").write_text("\n".join(lines))
    data = str(folder / "names.txt")
    config = {
        "dataset_reader": "conll2003",
        "train_data_path": data,
        "validation_data_path": data,
        "test_fraction": 0.3,
        "model": {
            "type": "crf_tagger",
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
            "encoder": {"type": "lstm", "hidden_size": 4},
        },
        "trainer": {"validation_metric": "+f1-measure-overall"},
    }
    variants = {"first": {}, "second": {"model": {"dropout": 0.1}}}
    content = {"configs": {"ner": {"config": config, "variants": variants}}, "seeds": [1, 2]}
    path = folder / "study.json"
    path.write_text(json.dumps({**content, **keys}))
    return path


def test_a_study_has_a_record_of_each_baseline_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, study(tmp_path), "-s", tmp_path / "out", "--final") == 0
    results = tmp_path / "out" / "results"
    records = read_records(results)
    assert {(each.config, each.variant, each.seed) for each in records} == {
        ("ner", name, seed) for name in ("known_names", "word_classifier") for seed in (1, 2)
    }
    for record in records:
        assert record.test is not None
        assert record.score() > 0
        assert not {"command", "working_directory"} & record.versions.keys()
        scores = score_function(record.experiment, source="test")
        for split, own in (("validation", record.validation), ("test", record.test)):
            terms = ExampleTerms.load(results / f"{record.name}.{split}.npz")
            assert scores(terms.sums())["f1-measure-overall"] == own["f1-measure-overall"]


def test_each_seed_draws_its_own_fraction_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study(tmp_path, fractions=[0.3, 1.0])
    assert run(monkeypatch, path, "-s", tmp_path / "out") == 0
    scores: dict[float, set[float]] = {}
    for record in read_records(tmp_path / "out" / "results"):
        assert record.test is None
        if record.variant == "known_names":
            scores.setdefault(record.fraction, set()).add(record.score())
    assert [len(scores[fraction]) for fraction in (0.3, 1.0)] == [2, 1]


def test_a_study_needs_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, study(tmp_path)) == 2
    assert "pass -s DIR" in capsys.readouterr().err
