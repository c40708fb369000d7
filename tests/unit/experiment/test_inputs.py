"""Files to predict for: with labels, without, and those that a run does not read."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.corpus.manifest import Manifest
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.inputs import InputForm, InputReader, dataset_reader, run_tokenizer
from elmo_framework.tasks.classification.task import TextClassificationTask
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.entailment.task import EntailmentTask
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggingTask

TASKS = {
    task.example_type: task
    for task in (
        TaggingTask(),
        TextClassificationTask(),
        EntailmentTask(),
        SrlTask(),
        CoreferenceTask(),
        QuestionAnsweringTask(),
    )
}
CONLL2012 = (
    "#begin document (nw/a); part 000\n"
    "nw/a 0 0 Ann NNP (TOP* - - - {speaker} * {gold} {entity}\n"
    "nw/a 0 1 fed VBD *) feed 01 1 {speaker} * {verb} -\n\n"
    "#end document\n"
)
SQUAD = {"context": "Ann fed cats", "qas": [{"id": "q1", "question": "Who fed ?", "hard": True}]}


def reader_of(config: str | dict[str, Any]) -> InputReader:
    reader = parse(DatasetReader, config, source="test").build()
    if reader.tokenizer is not None:
        reader.tokenizer = WhitespaceTokenizer()
    return InputReader(TASKS[reader.example_type], reader, WhitespaceTokenizer())


def read(
    tmp_path: Path,
    config: str | dict[str, Any],
    name: str,
    content: str,
    form: InputForm = "auto",
) -> list[tuple[Any, dict[str, Any]]]:
    path = tmp_path / name
    path.write_text(content)
    inputs = reader_of(config).read(path, form)
    return [(each.example, dict(each.fields)) for each in inputs]


@pytest.mark.parametrize(
    ("config", "name", "content", "words", "fields"),
    [
        (
            "conll2003",
            "a.txt",
            "-DOCSTART- -X- O\n\nAnn NNP I-NP Q-WHAT\nfed VBD I-VP O\n",
            ["Ann", "fed"],
            {"pos": ["NNP", "VBD"], "chunk": ["I-NP", "I-VP"], "ner": ["Q-WHAT", "O"]},
        ),
        ("conll2003", "a.conll", "Ann\nfed\n", ["Ann", "fed"], {}),
        ("conll2003", "a.tsv", "Ann\tB-PER\nfed\tO\n", ["Ann", "fed"], {"ner": ["B-PER", "O"]}),
        ("conll2000", "a.conll", "Ann NNP\n", ["Ann"], {"pos": ["NNP"]}),
        (
            "universal_dependencies_pos",
            "a.conllu",
            "# sent_id = s1\n1\tAnn\tann\tX\tY\t_\t0\troot\t_\t_\n",
            ["Ann"],
            {"sent_id": "s1", "lemma": ["ann"], "upos": ["X"], "xpos": ["Y"], "head": ["0"]},
        ),
        ("sequence_tagging", "a.txt", "Ann###A fed###B\n", ["Ann", "fed"], {"tags": ["A", "B"]}),
        (
            {"type": "tagging_table", "word_column": "word", "tag_column": "tag"},
            "a.csv",
            "n,word\n1,Ann\n2,fed\n",
            ["Ann", "fed"],
            {"n": ["1", "2"]},
        ),
        ("tagging_table", "a.csv", "Ann\nfed\n", ["Ann", "fed"], {}),
        ("tagging_table", "a.csv", "Ann,7\nfed,8\n", ["Ann", "fed"], {"column_1": ["7", "8"]}),
        ("tagging_json", "a.jsonl", '{"tokens": ["Ann"], "tags": 3}\n', ["Ann"], {"tags": 3}),
        ("text_classification_json", "a.csv", "id,text\n7,Ann fed\n", ["Ann", "fed"], {"id": "7"}),
        (
            {"type": "text_classification_json", "text_key": "body", "max_sequence_length": 1},
            "a.tsv",
            "body\tlabel\nAnn fed\tnews\n",
            ["Ann"],
            {"label": "news"},
        ),
        (
            {"type": "sst_tokens", "granularity": "2-class", "use_subtrees": True},
            "a.txt",
            "(2 (2 Ann) (3 fed))\n",
            ["Ann", "fed"],
            {"label": "2"},
        ),
    ],
)
def test_a_data_file_is_read_without_its_labels(tmp_path, config, name, content, words, fields):
    ((example, found),) = read(tmp_path, config, name, content)

    assert list(example.words) == words
    assert getattr(example, "tags", None) is getattr(example, "label", None) is None
    assert {key: found[key] for key in fields} == fields
    assert set(found) - set(fields) <= {"feats", "deprel", "deps", "misc"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "pairID\tsentence1\tsentence2\tgold_label\n7\tAnn\tfed\t-\n"),
        ("a.jsonl", '{"pairID": "7", "sentence1": "Ann", "sentence2": "fed", "gold_label": "-"}\n'),
        ("a.csv", "pairID,premise,hypothesis,gold_label\n7,Ann,fed,-\n"),
    ],
)
def test_pairs_are_read_with_the_keys_of_the_reader_or_the_task(tmp_path, name, content):
    config = {"type": "snli", "only": {"split": "dev"}}

    ((example, fields),) = read(tmp_path, config, name, content)

    assert (example.premise, example.hypothesis, example.label) == (("Ann",), ("fed",), None)
    assert fields == {"pairID": "7", "gold_label": "-"}


@pytest.mark.parametrize(
    ("config", "name", "content"),
    [
        ("srl", "a.gold_conll", CONLL2012.format(speaker="x", gold="(((", verb="(V*)", entity="-")),
        (
            {"type": "conll2005", "target_column": 1},
            "a.conll",
            "Ann -\nfed feed\n",
        ),
        ("deep_srl", "a.txt", "1 Ann fed ||| what\n"),
        (
            "conllu_plus_srl",
            "a.conllup",
            "# global.columns = ID FORM UP:PRED\n1\tAnn\t_\n2\tfed\tfeed.01\n",
        ),
    ],
)
def test_a_sentence_comes_once_with_its_predicates(tmp_path, config, name, content):
    ((example, _),) = read(tmp_path, {"max_sentence_length": 1, **as_object(config)}, name, content)

    assert (example.words, example.predicates) == (("Ann", "fed"), (1,))
    assert example.propositions is None


@pytest.mark.parametrize(
    ("config", "name", "header", "row", "none", "verb"),
    [
        ("srl", "a.gold_conll", "", "a 0 0 Go VB * {} - - * -\n", "- -", "go 01"),
        ({"type": "conll2005", "target_column": 1}, "a.conll", "", "Go {}\n", "-", "go"),
        (
            "conllu_plus_srl",
            "a.conllup",
            "# global.columns = ID FORM UP:PRED\n",
            "1\tGo\t{}\n",
            "_",
            "go.01",
        ),
    ],
)
def test_predicates_are_unknown_if_the_file_marks_none(
    tmp_path, config, name, header, row, none, verb
):
    def predicates(*marks: str) -> list[object]:
        content = header + "\n".join(map(row.format, marks))
        return [example.predicates for example, _ in read(tmp_path, config, name, content)]

    assert predicates(none, none) == [None, None]
    assert predicates(none, verb) == [(), (0,)]


def test_a_folder_with_marked_predicates_has_sentences_without(tmp_path):
    reader = parse(DatasetReader, {"type": "conll2005", "target_column": 1}, source="").build()
    for number, mark in enumerate(("-", "go")):
        (tmp_path / f"{number}.conll").write_text(f"Go {mark}\n")

    found = [each.example.predicates for each in reader.read_inputs(tmp_path)]

    assert found == [(), (0,)]


def as_object(config: str | dict[str, Any]) -> dict[str, Any]:
    return {"type": config} if isinstance(config, str) else config


def test_conllu_plus_without_predicate_column_has_no_predicates(tmp_path):
    content = "# global.columns = ID FORM\n1\tAnn\n"

    ((example, _),) = read(tmp_path, "conllu_plus_srl", "a.conllup", content)

    assert example.predicates is None


def test_documents_are_read_without_clusters(tmp_path):
    columns = CONLL2012.format(speaker="x", gold="*", verb="*", entity="((")
    ((first, fields),) = read(tmp_path, "coref", "a.conll", columns)
    line = {"doc_key": "nw/b_0", "sentences": [["Ann", "fed"]], "clusters": 3, "id": 7}
    ((second, others),) = read(tmp_path, "coref_jsonlines", "a.jsonlines", json.dumps(line))

    assert first.sentences == second.sentences == (("Ann", "fed"),)
    assert first.clusters is second.clusters is None
    assert (first.genre, first.speakers, second.genre) == ("nw", (("x", "x"),), "nw")
    assert fields == {"doc_key": "nw/a", "part": "000"}
    assert others == {"doc_key": "nw/b_0", "clusters": 3, "id": 7}


@pytest.mark.parametrize("indent", [None, 1])
def test_questions_need_no_answers(tmp_path, indent):
    content = json.dumps({"data": [{"title": "A", "paragraphs": [SQUAD]}]}, indent=indent)
    config = {"type": "squad", "passage_length_limit": 1}

    ((example, fields),) = read(tmp_path, config, "a.json", content)

    assert (example.id, example.question.words) == ("q1", ("Who", "fed", "?"))
    assert (example.answers, example.span) == (None, None)
    assert fields == {"title": "A", "hard": True}


def test_squad_reader_accepts_single_json_objects(tmp_path):
    content = '{"question": "Who?", "passage": "Ann fed cats", "id": 7, "level": 2}\n'

    ((example, fields),) = read(tmp_path, "squad", "a.json", content)

    assert (example.id, fields) == ("7", {"level": 2})


def test_rows_of_a_table_may_have_the_keys_of_the_task(tmp_path):
    ((example, fields),) = read(tmp_path, "conll2003", "a.csv", "id,sentence\n7,Ann fed\n")

    assert (example.words, fields) == (("Ann", "fed"), {"id": "7"})


def test_nothing_is_left_out(tmp_path):
    config = {"type": "text_classification_json", "max_instances": 1}

    assert len(read(tmp_path, config, "a.csv", "text\nAnn\nBob\n")) == 2


def test_a_folder_and_a_pattern_are_read_by_the_reader(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "b.csv").write_text("text\nBob\n")
    (folder / "a.csv").write_text("text\nAnn\n")
    reader = reader_of("text_classification_json")

    for path in (folder, folder / "*.csv"):
        assert [each.example.words for each in reader.read(path)] == [("Ann",), ("Bob",)]


@pytest.mark.parametrize(
    ("config", "name", "content", "expected"),
    [
        (
            "conll2003",
            "a.csv",
            "id,body\n7,Ann\n",
            "{path}: this looks like a table, which the run's dataset reader 'conll2003' does not "
            "read; name one that does with --reader NAME (of this task: tagging_table), or pass "
            "--sentences if each line is a sentence",
        ),
        ("conll2003", "a.conllu", "Ann\n", "{path}: this looks like CoNLL-U, which the run's"),
        ("conll2003", "a.txt", "<corpus>\n", "{path}: this looks like XML, which the run's"),
        ("conll2003", "a.json", '{\n"data": []}\n', "{path}: this looks like a JSON document, "),
        ("sst_tokens", "a.csv", "a,b\n", "{path}: this looks like a table, which the run's"),
        ("text_classification_json", "a.conll", "Ann O\n", "{path}: this looks like columns with"),
        (
            {"type": "text_classification_json", "text_key": "body"},
            "a.csv",
            "id,bodies\n7,Ann\n",
            "{path}: this looks like a table without a column of texts: found ['id', 'bodies'], "
            "choose from body, sentence, text, tokens, words. Did you mean 'body'? Name a dataset "
            "reader with --reader NAME, or pass --sentences if each line is a sentence",
        ),
        ("text_classification_json", "a.csv", "", "{path}: this file is empty"),
        (
            "text_classification_json",
            "a.txt",
            "Ann\tfed\nBob\tran\n",
            "{path}: this looks like a t",
        ),
        (
            "text_classification_json",
            "a.csv",
            "id|text\n",
            "{path}:1: found 1 column, called 'id|t",
        ),
        (
            "tagging_json",
            "a.jsonl",
            '["Ann"]\n',
            "{path}:1: expected a JSON object, found '[\"Ann\"]'; pass --sentences if each line ",
        ),
        ("conll2003", "a.json", '{"tokens": ["Ann"]}\nAnn fed\n', "{path}:2: expected a JSON obj"),
        (
            {"type": "text_classification_json", "text_key": "body"},
            "a.jsonl",
            '{"bodies": "Ann"}\n',
            "{path}:1: expected one key with a text, found 'bodies'; choose from sentence, "
            "text, tokens, words. The run's dataset reader takes 'body'.",
        ),
        (
            "snli",
            "a.txt",
            "Ann fed\n",
            '{path}:1: a plain sentence is not enough; pass {{"premise": "...", "hypothesis": '
            "\"...\"}}. The run's dataset reader takes 'sentence1', 'sentence2'.",
        ),
        ("conll2003", "a.conll", "a b c d e\n", "{path}:1: found 5 columns, expected 1 to 4 to "),
        ("tagging_table", "a.csv", "Ann,O\n ,O\n", "{path}:2: a word is missing"),
    ],
)
def test_other_data_is_refused_with_both_ways(tmp_path, config, name, content, expected):
    with pytest.raises(DataError) as raised:
        read(tmp_path, config, name, content)

    assert str(raised.value).startswith(expected.format(path=tmp_path / name))


@pytest.mark.parametrize("content", ["(NP (NN rain))\n(S (VP (VB go)))\n", "( (NP (NN rain)) )\n"])
def test_bracketed_trees_are_read_by_their_reader(tmp_path, content):
    (example, fields), *_ = read(tmp_path, "constituents", "a.txt", content)

    assert (example.words, example.tags, fields) == (("rain",), None, {"tags": ["NP"]})


@pytest.mark.parametrize("content", ["(NP\n  (NN rain))\n", "(NP (NN rain))\n(NP (NN snow)\n"])
def test_broken_trees_are_no_sentences(tmp_path, content):
    with pytest.raises(DataError, match="unclosed brackets"):
        read(tmp_path, "constituents", "a.mrg", content)


def test_sentences_in_brackets_are_no_trees(tmp_path):
    found = read(
        tmp_path, "constituents", "a.txt", "(Applause) Go on.\n(in Rome) It rains.\nYes.\n"
    )

    assert [example.words[0] for example, _ in found] == ["(Applause)", "(in", "Yes."]
    ((example, _),) = read(tmp_path, "constituents", "b.txt", "(But he left early.)\n")
    assert example.words[0] == "(But"


def test_text_may_have_objects_and_sentences(tmp_path):
    objects = read(tmp_path, "conll2003", "a.txt", '{"tokens": ["Ann"]}\nAnn fed\n')

    assert [example.words for example, _ in objects] == [("Ann",), ("Ann", "fed")]


def test_forms_can_be_forced(tmp_path):
    content = "text\nAnn fed\n"

    ((forced, _),) = read(tmp_path, "conll2003", "a.txt", "Ann\nfed\n", "dataset")
    first, second = read(tmp_path, "text_classification_json", "a.csv", content, "sentences")

    assert forced.words == ("Ann", "fed")
    assert (first[0].words, second[0].words) == (("text",), ("Ann", "fed"))


def test_a_sentence_that_begins_with_a_brace_can_be_forced(tmp_path):
    ((example, fields),) = read(tmp_path, "conll2003", "a.jsonl", "{Ann}\n", "sentences")

    assert (example.words, fields) == (("{Ann}",), {})


def test_data_on_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Ann B-PER\nfed O\n")))
    reader = reader_of("conll2003")

    with pytest.raises(DataError) as raised:
        list(reader.read(Path("-")))

    assert str(raised.value) == (
        "standard input looks like columns with one word per line, which is read from a file: "
        "name the file, or pass --sentences if each line is a sentence"
    )
    with pytest.raises(DataError, match="reads files, not standard input; name the file"):
        list(reader.read(Path("-"), "dataset"))


def test_a_key_like_one_of_the_task_is_reported_once(caplog):
    reader = reader_of("srl")
    caplog.set_level(logging.WARNING)

    for _ in range(2):
        assert reader.of({"sentence": "Ann fed", "predicate": [1], "idx": 3}).fields == {
            "predicate": [1],
            "idx": 3,
        }

    (record,) = caplog.records
    assert record.getMessage() == "the key 'predicate' is not read; did you mean 'predicates'?"


def test_a_reader_of_another_task_is_refused():
    with pytest.raises(RunError, match="'snli' reads SentencePair, but the model takes TaggedSent"):
        dataset_reader("snli", TaggingTask())
    with pytest.raises(RunError, match=r"unknown dataset reader 'conll203'; .*'conll2003'"):
        dataset_reader("conll203", TaggingTask())


GERMAN = {"type": "spacy", "language": "de"}
WHITESPACE = {"type": "whitespace"}


@pytest.mark.parametrize(
    ("filled", "expected"),
    [
        ({"tokenizer": GERMAN, "dataset_reader": {"tokenizer": "spacy"}}, GERMAN),
        ({"tokenizer": None, "dataset_reader": {"tokenizer": GERMAN}}, GERMAN),
        (
            {
                "dataset_reader": {"tokenizer": GERMAN},
                "validation_dataset_reader": {"type": "sst_tokens"},
            },
            GERMAN,
        ),
        ({"dataset_reader": {"tokenizer": WHITESPACE}}, None),
        ({"dataset_reader": {"type": "conll2003"}, "model": {"dropout": 0.5}}, None),
    ],
)
def test_config_of_a_run_tells_its_tokenizer(filled: dict[str, Any], expected: object):
    assert run_tokenizer(filled) == expected


def test_prepared_corpus_tells_its_tokenizer(tmp_path: Path):
    manifest = Manifest({"tokenizer": GERMAN}, {}, ())
    (tmp_path / "corpus.json").write_text(manifest.text())

    assert run_tokenizer({"train_data_path": str(tmp_path / "training")}) == GERMAN
    (tmp_path / "corpus.json").write_text("{")
    assert run_tokenizer({"train_data_path": str(tmp_path / "training")}) is None


@pytest.mark.parametrize("inner", ["", "bilm"])
def test_run_of_the_bilm_tells_its_tokenizer(tmp_path: Path, inner: str):
    (tmp_path / "metadata.json").write_text(json.dumps({"tokenizer": GERMAN}))
    elmo = {"type": "elmo_token_embedder", "bilm": str(tmp_path / inner)}
    filled = {"model": {"embedders": [{"elmo": elmo}]}, "dataset_reader": {"type": "conll2003"}}

    assert run_tokenizer(filled) == GERMAN
    (tmp_path / "metadata.json").write_text("[]")
    assert run_tokenizer(filled) is None
