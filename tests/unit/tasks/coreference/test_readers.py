import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import BuildError, DataError
from elmo_framework.tasks.coreference.example import Document

FIXTURES = Path(__file__).parents[3] / "fixtures/coreference"
READERS = {"coref": "train.conll", "coref_jsonlines": "train.jsonlines"}


def read(path: Path, name: str = "coref", **keys: Any) -> list[Document]:
    return list(parse(DatasetReader, {"type": name, **keys}, source="a.jsonnet").build().read(path))


def texts(document: Document) -> list[list[str]]:
    words = document.words
    return [[" ".join(words[m.start : m.end + 1]) for m in held] for held in document.clusters]


def lines_of(path: Path, *cells: str) -> Path:
    """A sentence whose words have these cells, after a first one."""
    rows = [f"a 0 {number} word - * - - - - * {cell}" for number, cell in enumerate(cells)]
    path.write_text("\n".join(["#begin document (a); part 000", *rows, "", "#end document"]))
    return path


def test_columns_are_split_into_document_parts():
    documents = read(FIXTURES / "train.conll")

    assert [(each.key, each.part, each.genre) for each in documents] == [
        ("nw/harbour/harbour_01", "000", "nw"),
        ("bc/talk/talk_01", "000", "bc"),
        ("bc/talk/talk_01", "001", "bc"),
    ]
    assert documents[1].sentences[1] == ("Did", "you", "thank", "her", "?")
    assert documents[1].speakers[1] == ("Ada",) * 5
    assert texts(documents[2]) == [["My", "Ada"], ["My cat", "it"], ["The cat"]]


def test_each_begin_line_starts_a_document(tmp_path: Path):
    block = lines_of(tmp_path / "a.conll", "(1)", "(1)").read_text()
    path = tmp_path / "b.conll"
    path.write_text(f"{block}\n{block}\n")

    assert [each.clusters for each in read(path)] == [(((0, 0), (1, 1)),)] * 2


def test_marks_of_ontonotes_lose_their_stroke(tmp_path: Path):
    path = lines_of(tmp_path / "marks.conll", *"----")
    text = path.read_text()
    for word in ("/.", "/?", "/", "and/or"):
        text = text.replace(" word ", f" {word} ", 1)
    path.write_text(text)

    assert read(path)[0].words == (".", "?", "/", "and/or")


def test_overlapping_clusters_are_read_unchanged():
    # 'The daughter of the smith' is marked as 0 and as 2.
    assert texts(read(FIXTURES / "train.conll")[0]) == [
        ["Anna", "She", "The daughter of the smith"],
        ["the old boat", "it", "it"],
        ["The daughter of the smith"],
        ["the smith", "him"],
    ]


@pytest.mark.parametrize("name", READERS)
def test_repeated_mentions_are_preserved(name: str, tmp_path: Path):
    path = lines_of(tmp_path / "a.conll", "(1)|(2)|(1)", "(2)", "(1|1)")
    if name == "coref_jsonlines":
        clusters = [[[1, 1], [0, 0]], [[2, 2], [0, 0], [0, 0]]]
        path.write_text(json.dumps({"sentences": [["word"] * 3], "clusters": clusters}))

    assert read(path, name)[0].clusters == (((0, 0), (0, 0), (2, 2)), ((0, 0), (1, 1)))


def test_json_lines_count_words_through_the_sentences():
    documents = read(FIXTURES / "train.jsonlines", "coref_jsonlines")

    assert texts(documents[0]) == [["Tom", "him"], ["a lamp", "It"]]
    assert [each.genre for each in documents] == ["nw", "tc"]
    assert documents[0].speakers is None
    assert documents[1].speakers[1] == ("B",) * 4
    assert texts(documents[1]) == [["I", "You"], ["I", "You"], ["you", "me"]]


def test_document_name_may_include_its_part(tmp_path: Path):
    path = tmp_path / "a.jsonlines"
    path.write_text('{"doc_key": "nw/doc_0_12", "sentences": [["Go"]], "clusters": []}\n')

    (whole,) = read(path, "coref_jsonlines")
    (divided,) = read(path, "coref_jsonlines", key_has_part=True)

    assert (whole.key, whole.part, whole.genre) == ("nw/doc_0_12", None, "nw")
    assert (divided.key, divided.part, divided.genre) == ("nw/doc_0", "012", "nw")


def test_genre_of_an_object_has_precedence_everywhere(tmp_path: Path):
    path = tmp_path / "a.jsonlines"
    path.write_text('{"doc_key": "nw/doc", "genre": "tc", "sentences": [["Go"]], "clusters": []}')
    reader = parse(DatasetReader, "coref_jsonlines", source="a.jsonnet").build()

    examples = [*reader.read(path), *(each.example for each in reader.read_inputs(path))]

    assert [each.genre for each in examples] == ["tc", "tc"]


@pytest.mark.parametrize("key", ["nw/doc", "nw/doc_x", "_3", ""])
def test_name_without_a_part_is_refused(key: str, tmp_path: Path):
    path = tmp_path / "a.jsonlines"
    path.write_text(json.dumps({"doc_key": key, "sentences": [["Go"]], "clusters": []}) + "\n")

    with pytest.raises(DataError) as raised:
        read(path, "coref_jsonlines", key_has_part=True)

    expected = "expected a name, '_' and the number of a part"
    assert str(raised.value) == f"{path}:1: 'doc_key' is {key!r}; {expected}"


def test_documents_without_clusters_are_for_predictions_only(tmp_path: Path):
    path = tmp_path / "new.jsonlines"
    path.write_text('\n{"sentences": [["Go", "!"]]}\n')
    reader = parse(DatasetReader, "coref_jsonlines", source="a.jsonnet").build()

    assert [each.example for each in reader.read_inputs(path)] == [Document((("Go", "!"),), None)]
    with pytest.raises(DataError) as raised:
        list(reader.read(path))
    assert str(raised.value).startswith(f"{path}:2: missing key 'clusters'; found: sentences")


def test_singletons_can_be_removed():
    assert texts(read(FIXTURES / "train.conll", remove_singletons=True)[2]) == [
        ["My", "Ada"],
        ["My cat", "it"],
    ]


@pytest.mark.parametrize("name", READERS)
def test_documents_can_be_cut(name: str):
    (document,) = read(FIXTURES / READERS[name], name, max_sentences=1, max_instances=1)

    assert len(document.sentences) == 1
    assert all(mention.end < len(document.words) for held in document.clusters for mention in held)
    assert texts(document) == {"coref": [["Anna"], ["the old boat"]]}.get(
        name, [["Tom"], ["a lamp"]]
    )


def test_repeated_mention_in_a_cluster_counts_once(tmp_path: Path):
    path = lines_of(tmp_path / "a.conll", "(1)|(1)", "(2)", "(2)")

    assert read(path, remove_singletons=True)[0].clusters == (((1, 1), (2, 2)),)


def test_truncation_precedes_removal_of_singletons():
    (document,) = read(
        FIXTURES / "train.conll", max_sentences=1, max_instances=1, remove_singletons=True
    )

    assert document.clusters == ()


def test_the_genre_is_the_match_of_the_pattern():
    path = FIXTURES / "train.conll"

    assert {each.genre for each in read(path, genre_pattern="/([a-z]+)/")} == {"harbour", "talk"}
    assert {each.genre for each in read(path, genre_pattern="(x+)")} == {None}
    assert {each.genre for each in read(path, genre_pattern=None)} == {None}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a+", "genre_pattern is 'a+' with 0 groups; use one group in parentheses for the genre"),
        ("(a", "genre_pattern is '(a': missing ), unterminated subpattern at position 0"),
    ],
)
def test_a_bad_pattern_is_refused(pattern: str, message: str):
    with pytest.raises(BuildError) as raised:
        read(FIXTURES / "train.conll", genre_pattern=pattern)

    assert str(raised.value).endswith(message)


@pytest.mark.parametrize(
    ("cells", "line", "message"),
    [
        (["-", "(3", "-"], 3, "'(3' is not closed in its sentence"),
        (["-", "-", "3)"], 4, "'3' is closed but was not opened"),
    ],
)
def test_malformed_bracket_is_reported_with_its_line(
    cells: list[str], line: int, message: str, tmp_path: Path
):
    path = lines_of(tmp_path / "bad.conll", *cells)

    with pytest.raises(DataError) as raised:
        read(path)

    assert str(raised.value) == f"{path}:{line}: {message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object: Expecting property name"),
        ("[]", "expected a JSON object, not []"),
        ('{"sentence": [["a"]]}', "missing key 'sentences'; found: sentence. Did you mean"),
        ('{"sentences": ["a"]}', "'sentences' is ['a']; expected a list of lists of strings"),
        ('{"sentences": [["a"]], "doc_key": 3}', "'doc_key' is 3; expected a string"),
        (
            '{"sentences": [["a"]], "clusters": [[0, 0]]}',
            "'clusters' is [[0, 0]]; expected a list of clusters such as [[0, 0], [4, 5]]",
        ),
        (
            '{"sentences": [["a"]], "clusters": [[[0, 1]]]}',
            "[0, 1] is not a valid mention [first word, last word] in a document of 1 word",
        ),
        (
            '{"sentences": [["a"]], "speakers": [["A", "B"]]}',
            "the number of speakers differs from the number of words of a sentence",
        ),
    ],
)
def test_malformed_line_is_reported(line: str, message: str, tmp_path: Path):
    path = tmp_path / "bad.jsonlines"
    path.write_text(json.dumps({"sentences": [["a"]], "clusters": []}) + "\n" + line + "\n")

    with pytest.raises(DataError) as raised:
        read(path, "coref_jsonlines")

    assert str(raised.value).startswith(f"{path}:2: {message}")


def test_a_file_without_documents_is_refused(tmp_path: Path):
    (tmp_path / "empty.jsonlines").write_text("\n")

    with pytest.raises(DataError, match="this file has no examples"):
        read(tmp_path / "empty.jsonlines", "coref_jsonlines")


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ('{"sentences": [], "clusters": []}', None),
        ('{"sentences": [], "clusters": [], "speakers": []}', ((),)),
    ],
)
def test_document_without_sentences_has_an_empty_one(
    text: str, speakers: tuple[tuple[str, ...], ...] | None, tmp_path: Path
):
    (tmp_path / "a.jsonlines").write_text(text)

    (document,) = read(tmp_path / "a.jsonlines", "coref_jsonlines")

    assert (document.sentences, document.speakers) == (((),), speakers)


def test_litbank_documents_are_read(tmp_path: Path):
    words = {"The": "(0", "town": "0)|(1)", "grew": "", ".": ""}
    rows = ["\t".join(["1_x_brat", "0", "0", word, *"________", words[word]]) for word in words]
    path = tmp_path / "1_x_brat.conll"
    path.write_text("\n".join(["#begin document (1_x_brat); part 0", *rows, "", "#end document"]))

    (document,) = read(path, genre_pattern=None)

    assert (document.key, document.part, document.words) == ("1_x_brat", "0", tuple(words))
    assert texts(document) == [["The town"], ["town"]]
