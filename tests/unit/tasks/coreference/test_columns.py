from pathlib import Path

import pytest

from elmo_framework.data.formats.columns import CellError
from elmo_framework.errors import DataError
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.tasks.coreference.columns import Bracketed, colored, conll2012, decode, encode
from elmo_framework.tasks.coreference.example import Document
from elmo_framework.tasks.coreference.reader import ConllCoreferenceReader

FIXTURES = Path(__file__).parents[3] / "fixtures/coreference"


def test_gold_clusters_are_written_and_read_back(tmp_path: Path):
    reader = ConllCoreferenceReader()
    documents = list(reader.read(FIXTURES / "train.conll"))
    path = tmp_path / "written.conll"

    path.write_text("".join(conll2012((Resolution(each.clusters, ()), each) for each in documents)))

    assert list(reader.read(path)) == documents


def test_the_lines_are_those_of_the_shared_task():
    document = Document((("She", "left"), ("He", "saw", "her")), None, key="nw/a", part="003")
    resolution = Resolution((((0, 0), (4, 4)), ((2, 4),)), ())

    lines = "".join(conll2012([(resolution, document)])).split("\n")

    assert lines[0] == "#begin document (nw/a); part 003"
    assert lines[1].split("\t") == ["nw/a", "3", "0", "She", *"-*----*", "(0)"]
    assert [line.rpartition("\t")[2] for line in lines[1:]] == [
        "(0)",
        "-",
        "",
        "(1",
        "-",
        "(0)|1)",
        "",
        "#end document",
        "",
    ]


@pytest.mark.parametrize("begin", ["(nw/a)", "(x); part 0", "(nw/a); part 000", "(nw/a); part 012"])
def test_document_header_is_written_as_read(begin: str, tmp_path: Path):
    path = tmp_path / "read.conll"
    path.write_text(f"#begin document {begin}\nnw/a 0 0 She - * - - - - * (1)\n\n#end document\n")
    documents = ConllCoreferenceReader().read(path)

    first, *_ = conll2012((Resolution((), ()), each) for each in documents)

    assert first == f"#begin document {begin}\n"


def test_documents_without_a_name_get_distinct_ones(tmp_path: Path):
    path = tmp_path / "written.conll"
    clusters = (((0, 0), (2, 2)),)
    documents = [Document((("She", "left", "her"),), None, key=key) for key in ("", "a", "")]

    path.write_text("".join(conll2012((Resolution(clusters, ()), held) for held in documents)))

    again = list(ConllCoreferenceReader().read(path))
    assert [(held.key, held.clusters) for held in again] == [
        ("-_1", clusters),
        ("a", clusters),
        ("-_3", clusters),
    ]


def test_documents_with_equal_names_are_refused():
    parts = ("000", "001", None, "000")
    pairs = [(Resolution((), ()), Document((("Go",),), None, key="a", part=each)) for each in parts]

    assert len(list(conll2012(pairs[:3]))) == 9
    with pytest.raises(DataError, match=r"two documents have the name \(a\); part 000; names must"):
        list(conll2012(pairs))


def test_word_speaker_and_name_are_one_cell_each():
    words = ("10 000", "\n", "a\tb", "")
    speakers = ("Mr. Smith", "\t", "", "x\ny")
    document = Document((words,), None, key="my talk", speakers=(speakers,))

    lines = "".join(conll2012([(Resolution((), ()), document)])).split("\n")

    assert lines[0] == "#begin document (my talk)"
    assert [line.split("\t") for line in lines[1:5]] == [
        ["my_talk", "0", str(number), word, *"-*---", speaker, "*", "-"]
        for number, (word, speaker) in enumerate(
            [("10_000", "Mr._Smith"), ("_", "_"), ("a_b", "_"), ("_", "x_y")]
        )
    ]
    assert lines[5:] == ["", "#end document", ""]


def test_crossing_mentions_of_a_cluster_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    crossing = ((0, 3), (1, 4), (3, 5), (1, 1), (2, 3))
    document = Document((("a", "b", "c", "d", "e", "f"),), None, key="a")
    path = tmp_path / "written.conll"

    path.write_text("".join(conll2012([(Resolution((crossing, ((2, 5),)), ()), document)])))

    (again,) = ConllCoreferenceReader().read(path)
    assert again.clusters == (((0, 3), (1, 1), (2, 3)), ((2, 5),))
    expected = "left out 2 mentions crossing another one of their cluster, which CoNLL-2012 cannot"
    assert caplog.messages == [f"{expected} represent"]


def test_mentions_are_in_colored_brackets():
    document = Document((("Ann", "met", "her", "son"), ("He", "left")), None)

    text = colored(Resolution((((0, 0), (2, 2)), ((2, 3), (4, 4))), ()), document)

    assert text.plain == "[Ann]0 met [[her]0 son]1\n[He]1 left\n"
    styles = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert styles["Ann"] == styles["her"] != styles["son"] == styles["He"]
    assert "met" not in styles


def decoded(*cells: str) -> list[tuple[str, int, int]]:
    return sorted(tuple(held) for held in decode(cells))


def test_mentions_may_be_nested():
    assert decoded("(1|(2", "(3)", "2)", "1)") == [("1", 0, 3), ("2", 0, 2), ("3", 1, 1)]


def test_mentions_of_two_entities_may_cross():
    assert decoded("(1", "(2", "1)", "2)") == [("1", 0, 2), ("2", 1, 3)]


def test_brackets_of_one_entity_nest():
    assert decoded("(1", "(1", "1)", "1)") == [("1", 0, 3), ("1", 1, 2)]


def test_all_openings_of_a_cell_come_before_its_closings():
    assert decoded("(1", "1)|(1", "1)") == [("1", 0, 2), ("1", 1, 1)]
    assert decoded("1)|(1") == [("1", 0, 0)]
    assert decoded("(1", "1)|(2", "2)") == [("1", 0, 1), ("2", 1, 2)]


def test_bracket_around_one_word_is_a_mention():
    assert decoded("(1|1)") == decoded("(1)") == [("1", 0, 0)]
    assert decoded("(1", "(1|1)", "1)") == [("1", 0, 2), ("1", 1, 1)]
    assert decoded("(1|(1|1)", "1)") == [("1", 0, 0), ("1", 0, 1)]


def test_mention_may_occur_twice():
    assert decoded("(1)|(2)|(1)") == [("1", 0, 0), ("1", 0, 0), ("2", 0, 0)]


def test_empty_cells_have_no_bracket():
    assert decoded("-", "(1", "_", "", "1)") == [("1", 1, 4)]


@pytest.mark.parametrize(
    ("cells", "index", "message"),
    [
        (["-", "(1", "-"], 1, "'(1' is not closed in its sentence"),
        (["(1", "2)"], 1, "'2' is closed but was not opened"),
        (["-", "1"], 1, "found '1', expected pieces such as '(3', '3)' and '(3)' with '|' between"),
        (["(1))"], 0, "found '(1))', expected pieces"),
        (["*"], 0, "found '*', expected pieces"),
        (["(1)|"], 0, "found '(1)|', expected pieces"),
        (["1)|(2)"], 0, "'1' is closed but was not opened"),
        (["(1|(1", "1)"], 0, "'(1' is not closed in its sentence"),
    ],
)
def test_malformed_cell_is_reported(cells: list[str], index: int, message: str):
    with pytest.raises(CellError) as raised:
        decode(cells)

    assert str(raised.value).startswith(message)
    assert raised.value.position == index


def test_written_brackets_are_read_back():
    mentions = [("0", 0, 4), ("0", 0, 1), ("2", 1, 3), ("0", 1, 1), ("3", 4, 4), ("12", 2, 2)]

    cells = encode([Bracketed(*held) for held in mentions], 6)

    assert decoded(*cells) == sorted(mentions)
    assert cells[0] == "(0|(0"
    assert cells[5] == "-"
