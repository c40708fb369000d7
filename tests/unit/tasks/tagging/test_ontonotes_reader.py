from pathlib import Path

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import DataError
from elmo_framework.tasks.tagging import TaggedSentence

LINE = "nw/a 0 {number} {word} NN * - - - - {entity} -"


def file(folder: Path, *sentences: list[tuple[str, str]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "a.gold_conll"
    blocks = (
        "\n".join(
            LINE.format(number=number, word=word, entity=entity)
            for number, (word, entity) in enumerate(sentence)
        )
        for sentence in sentences
    )
    path.write_text("\n\n".join(blocks) + "\n")
    return path


def read(path: Path, **options: object) -> list[TaggedSentence]:
    config = {"type": "ontonotes_ner", **options}
    return list(parse(DatasetReader, config, source="a.jsonnet").build().read(path))


SENTENCE = [("New", "(GPE*"), ("York", "*)"), ("sued", "*"), ("IBM", "(ORG)"), ("/.", "*")]


def test_brackets_become_tags(tmp_path: Path) -> None:
    words = ("New", "York", "sued", "IBM", ".")
    path = file(tmp_path, SENTENCE, [("/?", "*")])
    assert read(path) == [
        TaggedSentence(words, ("B-GPE", "I-GPE", "O", "B-ORG", "O")),
        TaggedSentence(("?",), ("O",)),
    ]
    (first, _) = read(path, coding_scheme="BIOUL")
    assert first.tags == ("B-GPE", "L-GPE", "O", "U-ORG", "O")


def test_documents_of_the_testaments_are_skipped(tmp_path: Path) -> None:
    text = file(tmp_path, SENTENCE).read_text()
    testament = text.replace("nw/a", "pt/nt/40/a").replace("(GPE*", "*").replace("*)", "*")
    for name, documents in {"a": [text, testament], "b": [testament]}.items():
        begun = (f"#begin document ({document.split()[0]})\n{document}" for document in documents)
        (tmp_path / f"{name}.gold_conll").write_text("#end document\n".join(begun))
    (tmp_path / "c.gold_conll").write_text(testament)

    assert len(read(tmp_path)) == 1
    for name in "bc":
        with pytest.raises(DataError, match="entities are not annotated"):
            read(tmp_path / f"{name}.gold_conll")


def test_a_folder_called_pt_is_read(tmp_path: Path) -> None:
    assert len(read(file(tmp_path / "pt", SENTENCE))) == 1


@pytest.mark.parametrize(
    ("cells", "message", "line"),
    [
        (["*", "(GPE*", "*"], "the entity 'GPE' does not end", 2),
        (["*", "GPE)"], "'GPE\\)' is not a valid cell for an entity", 2),
        (["(GPE*", "(ORG)"], "begins inside the entity 'GPE'", 2),
    ],
)
def test_malformed_brackets_have_their_line(
    cells: list[str], message: str, line: int, tmp_path: Path
) -> None:
    path = file(tmp_path, [(f"w{number}", cell) for number, cell in enumerate(cells)])
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert caught.value.line == line


def test_inputs_need_no_entities(tmp_path: Path) -> None:
    reader = parse(DatasetReader, "ontonotes_ner", source="a.jsonnet").build()
    (entry,) = reader.read_inputs(file(tmp_path, SENTENCE))
    assert entry.example == TaggedSentence(("New", "York", "sued", "IBM", "."), None)
    assert entry.fields == {"document_id": "nw/a", "part": "000"}
