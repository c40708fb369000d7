"""Formats of predictions, read back by our readers or as their definition says."""

import csv
import io
import re

import pytest

from elmo_framework.data.formats.records import read_records
from elmo_framework.data.inputs import Predicted, PredictionInput
from elmo_framework.data.labels import Classification, LabelSet
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.prediction_formats import PredictionWriter, check_brat_folder
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.metrics.squad import Answer
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.classification.task import (
    ClassifiedText,
    MultiLabelText,
    MultiLabelTextTask,
    TextClassificationTask,
)
from elmo_framework.tasks.coreference.example import Document, Mention
from elmo_framework.tasks.coreference.reader import ConllCoreferenceReader
from elmo_framework.tasks.coreference.task import CoreferenceTask
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.reader import Conll2005Reader
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.reader import Conll2003Reader, UniversalDependenciesPosReader
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask

TAGS = ("B-PER", "I-PER", "O", "B-LOC", "O")
WORDS = ("Anna", "Kov\u00e1cs", "likes", "\U0001f5fc", ".")
TEXT = 'Anna  "Kov\u00e1cs" likes \U0001f5fc.'
PROBABILITIES = [{"PER": 0.75, "LOC": 0.25}, {"LOC": 0.5, "PER": 0.125}]


def tagged(text=TEXT, words=WORDS, tags=TAGS, probabilities=PROBABILITIES, **fields):
    source = PredictionInput(TaggedSentence(words, None), fields, {"sentence": text})
    return Predicted(tags, source, probabilities)


def written(task, name, predictions, labels=(), **options):
    return "".join(PredictionWriter(task, name, labels, **options).pieces(predictions))


def rows(text):
    return [*csv.DictReader(io.StringIO(text, newline=""))]


def test_a_row_of_a_table_is_a_span_with_its_input():
    table = rows(written(TaggingTask(), "csv", [tagged(id="7", stars=[1]), tagged(id="8")]))

    first, second, *_ = table
    assert first == {
        "id": "7",
        "input": "1",
        "text": 'Anna  "Kov\u00e1cs',
        "label": "PER",
        "start": "0",
        "end": "13",
        "probability": "0.75",
    }
    assert TEXT[int(second["start"]) : int(second["end"])] == second["text"] == "\U0001f5fc"
    assert [(row["id"], row["input"]) for row in table] == [("7", "1")] * 2 + [("8", "2")] * 2


def test_runners_up_are_further_columns():
    (first, _) = rows(written(TaggingTask(), "csv", [tagged()], top_k=2))
    assert (first["label_2"], first["probability_2"]) == ("LOC", "0.25")


def test_a_table_of_texts_keeps_their_columns(tmp_path):
    example = ClassifiedText(("=1", "+", "2"), None)
    source = PredictionInput(example, {"id": "a\tb", "label": "x"}, {"review": '=1 +\n"2"'})
    prediction = Classification("good", {"bad": 0.25, "good": 0.75})
    predictions = [Predicted(prediction, source)]

    (row,) = rows(written(TextClassificationTask(), "csv", predictions, top_k=2))
    (tmp_path / "out.tsv").write_text(written(TextClassificationTask(), "tsv", predictions))
    (record,) = read_records(tmp_path / "out.tsv")

    assert row == {
        "id": "a\tb",
        "review": '=1 +\n"2"',
        "label": "good",
        "probability": "0.75",
        "label_2": "bad",
        "probability_2": "0.25",
        "input_label": "x",
    }
    assert (record.values["id"], record.values["review"]) == ("a b", '=1 + "2"')


@pytest.mark.parametrize("texts", [{"text": "rain"}, {}])
def test_labels_that_equal_the_words_are_kept(texts):
    source = PredictionInput(MultiLabelText(("rain",), None), {}, texts)
    prediction = LabelSet(("rain",), {"rain": 0.75})

    (row,) = rows(written(MultiLabelTextTask(), "csv", [Predicted(prediction, source)]))

    assert row["labels"] == '["rain"]'
    assert row[next(iter(texts), "words")] == "rain"


def test_a_carriage_return_in_a_cell_is_read_back():
    text = written(TaggingTask(), "csv", [tagged(id="7\r8")])

    assert {row["id"] for row in rows(text)} == {"7\r8"}
    assert "\r\n" not in text
    assert text.endswith("\n")


def test_a_field_that_begins_later_is_refused():
    with pytest.raises(DataError, match=r"input 2 has the field 'late'.* use jsonl"):
        written(TaggingTask(), "csv", [tagged(), tagged(late=1)])


def test_a_table_without_spans_has_a_header():
    nothing = tagged(tags=("O",) * 5, probabilities=[])
    assert written(TaggingTask(), "csv", [nothing]) == "input,text,label,start,end\n"


def test_answers_are_rows_with_their_characters():
    task = QuestionAnsweringTask()
    texts = {"passage": "It fell in May.", "question": "When?"}
    example = task.example({**texts, "id": "q1"}, WhitespaceTokenizer())
    answer = Answer("in May.", 8, 15, probability=0.5)

    (row,) = rows(written(task, "csv", [Predicted(answer, PredictionInput(example, {}, texts))]))

    assert (row["id"], row["answer"], row["start"], row["end"]) == ("q1", "in May.", "8", "15")
    assert (row["passage"], row["probability"]) == ("It fell in May.", "0.5")


def test_columns_are_read_back_to_the_same_tags(tmp_path):
    path = tmp_path / "out.conll"
    path.write_text(written(TaggingTask(), "conll", [tagged(), tagged()]))

    assert [*Conll2003Reader().read(path)] == [TaggedSentence(WORDS, TAGS)] * 2


def test_conllu_is_read_back_with_its_text_and_ids(tmp_path):
    path = tmp_path / "out.conllu"
    tags = ("PROPN", "PROPN", "VERB", "SYM", "PUNCT")
    path.write_text(written(TaggingTask(), "conllu", [tagged(tags=tags, id="s7")], tags))

    (example,) = UniversalDependenciesPosReader().read(path)
    (again,) = UniversalDependenciesPosReader().read_inputs(path)

    assert example == TaggedSentence(WORDS, tags)
    assert (again.fields["sent_id"], again.fields["text"]) == ("s7", TEXT)
    assert again.fields["misc"] == ["_", "_", "_", "SpaceAfter=No", "_"]


def test_conllu_keeps_other_rows_and_comments(tmp_path):
    path = tmp_path / "in.conllu"
    empty = "\t_"
    words = [f"{number}\t{form}\t_\tX{empty * 6}\n" for number, form in enumerate("abc", start=1)]
    others = [f"{number}\tx{empty * 8}\n" for number in ("0.1", "1-2", "1.1", "3.1", "3.2")]
    comments = "# newdoc id = d\n# newpar\n# sent_id = s1\n# text = abc\n# note = 1\n# note = 2\n"
    body = [others[0], others[1], words[0], others[2], words[1], words[2], *others[3:]]
    path.write_text(comments + "".join(body) + "\n")

    inputs = UniversalDependenciesPosReader().read_inputs(path)
    predictions = [Predicted(("X",) * 3, each) for each in inputs]

    assert written(TaggingTask(), "conllu", predictions, ("X",)) == path.read_text()


def test_conllu_begins_with_missing_comments(tmp_path):
    path = tmp_path / "in.conllu"
    row, comments = "1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n", "# newpar\n# text_en = the\n"
    path.write_text(comments + row)

    (entry,) = UniversalDependenciesPosReader().read_inputs(path)
    text = written(TaggingTask(), "conllu", [Predicted(("X",), entry)], ("X",))

    assert text == "# sent_id = 1\n# text = a\n" + comments + row


@pytest.mark.parametrize(
    ("labels", "column", "cell"),
    [(("O", "U-PER"), "misc", "NER=B-PER"), (("NN", "VB"), "xpos", "NN"), (("X",), "upos", "X")],
)
def test_labels_of_the_model_determine_the_column(labels, column, cell, tmp_path):
    path = tmp_path / "out.conllu"
    tag = "U-PER" if column == "misc" else cell
    prediction = tagged("Anna", ("Anna",), (tag,), lemma=["anna"])
    path.write_text(written(TaggingTask(), "conllu", [prediction], labels))

    (again,) = UniversalDependenciesPosReader().read_inputs(path)

    assert again.fields[column] == [cell]
    assert again.fields["lemma"] == ["anna"]


def test_roles_are_read_back_from_their_columns(tmp_path):
    path = tmp_path / "out.conll"
    propositions = (
        Proposition(1, ("B-ARG0", "B-V", "O")),
        Proposition(2, ("O", "B-ARGM-TMP", "B-V")),
    )
    source = PredictionInput(SrlExample(("She", "left", "home"), None), {})
    path.write_text(written(SrlTask(), "conll", [Predicted(propositions, source)]))

    (sentence,) = Conll2005Reader(target_column=1).sentences(path)

    assert sentence.words == ("She", "left", "home")
    assert sentence.propositions == propositions


def test_clusters_are_read_back_from_their_columns(tmp_path):
    path = tmp_path / "out.conll"
    document = Document((("Eva", "slept", "."), ("She", "woke", ".")), None, key="a")
    clusters = ((Mention(0, 0), Mention(3, 3)),)
    prediction = Predicted(Resolution(clusters, ()), PredictionInput(document, {}))
    path.write_text(written(CoreferenceTask(), "conll", [prediction]))

    (again,) = ConllCoreferenceReader().read(path)

    assert (again.sentences, again.clusters) == (document.sentences, clusters)


def standoff(predictions, task=None, **options):
    return dict(PredictionWriter(task or TaggingTask(), "brat", **options).files(predictions))


def spans_of(files, name):
    """The spans of an .ann file, each with the characters of its .txt and the words it shows."""
    lines = (line.split("\t") for line in files[f"{name}.ann"].splitlines() if line[0] == "T")
    for _, place, shown in lines:
        label, _, pieces = place.partition(" ")
        ends = [tuple(map(int, piece.split())) for piece in pieces.split(";")]
        yield label, " ".join(files[f"{name}.txt"][start:end] for start, end in ends), shown


def test_offsets_of_brat_slice_its_text():
    files = standoff([tagged(), tagged(" x\r\n" + TEXT)], document="notes")

    assert sorted(files) == ["notes.ann", "notes.txt"]
    found = [*spans_of(files, "notes")]
    assert [label for label, _, _ in found] == ["PER", "LOC"] * 2
    assert all(sliced == shown for _, sliced, shown in found)
    assert [shown for _, _, shown in found] == ['Anna  "Kov\u00e1cs', "\U0001f5fc"] * 2
    numbers = re.findall(r"^T(\d+)", files["notes.ann"], re.MULTILINE)
    assert numbers == ["1", "2", "3", "4"]
    assert "#1\tAnnotatorNotes T1\tPER 0.7500, LOC 0.2500\n" in files["notes.ann"]


def test_ids_are_documents_of_brat():
    files = standoff([tagged(id="../a b"), tagged(id="../a b"), tagged(id=2)])
    assert sorted(files) == ["2.ann", "2.txt", "_a_b.ann", "_a_b.txt"]
    with pytest.raises(DataError, match="two documents have the name '2'"):
        standoff([tagged(id=2), tagged(id=3), tagged(id=2)])
    with pytest.raises(DataError, match="two documents have the name 'a_b'"):
        standoff([tagged(id="a/b"), tagged(id="a b")])


def test_a_long_id_is_shortened():
    ids = ["\u00e9" * 300, "\u00e9" * 301]
    files = standoff([tagged(id=each) for each in ids])
    assert len(files) == 4
    assert all(len(name.encode()) < 255 and name.startswith("\u00e9" * 80) for name in files)


def test_spans_without_characters_are_not_in_brat():
    words, tags = ("Anna", "", "Oslo"), ("B-PER", "B-MISC", "B-LOC")
    ranked = [{"PER": 0.5}, {"MISC": 0.6}, {"LOC": 0.7}]
    prediction = Predicted(tags, PredictionInput(TaggedSentence(words, None), {}), ranked)

    files = standoff([prediction])

    assert [*spans_of(files, "predictions")] == [("PER", "Anna", "Anna"), ("LOC", "Oslo", "Oslo")]
    assert "#2\tAnnotatorNotes T2\tLOC 0.7000\n" in files["predictions.ann"]
    assert "MISC" not in files["predictions.ann"]


def test_a_span_over_two_lines_has_two_pieces():
    files = standoff([tagged("New\nYork", ("New", "York"), ("B-LOC", "I-LOC"), [{"LOC": 1.0}])])
    assert [*spans_of(files, "predictions")] == [("LOC", "New York", "New York")]


def test_roles_are_relations_and_clusters_equivalences():
    source = PredictionInput(SrlExample(("She", "left"), None), {}, {"sentence": "She left"})
    roles = standoff([Predicted((Proposition(1, ("B-ARG0", "B-V")),), source)], SrlTask())
    document = Document((("Eva", "slept"), ("She", "woke")), None)
    clusters = Resolution(((Mention(0, 0), Mention(2, 2)),), ())
    links = standoff([Predicted(clusters, PredictionInput(document, {}))], CoreferenceTask())

    assert "R1\tARG0 Arg1:T2 Arg2:T1\n" in roles["predictions.ann"]
    assert links["predictions.ann"].endswith("*\tCoreference T1 T2\n")
    assert [shown for _, _, shown in spans_of(links, "predictions")] == ["Eva", "She"]


def test_roles_without_their_predicate_are_not_coreferent():
    source = PredictionInput(SrlExample(("She", "left", "home"), None), {})
    propositions = (Proposition(1, ("B-ARG0", "O", "B-ARG1")),)

    annotations = standoff([Predicted(propositions, source)], SrlTask())["predictions.ann"]

    assert [line[:2] for line in annotations.splitlines()] == ["T1", "T2"]


def test_brat_replaces_only_its_own_files(tmp_path):
    (tmp_path / "a.txt").touch()
    check_brat_folder(tmp_path)
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(RunError, match=r"other files than those of brat: thesis\.doc"):
        check_brat_folder(tmp_path)


def test_another_format_is_refused_with_those_of_the_task():
    with pytest.raises(RunError, match="choose from csv, glue, jsonl, tsv"):
        PredictionWriter(TextClassificationTask(), "conllu")
    with pytest.raises(RunError, match="choose from brat, conll, conllu, csv, jsonl, tsv"):
        PredictionWriter(TaggingTask(), "xml")
