"""`elmo new FILE` recognizes data, writes a config that passes the check, or says what to do."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.data.formats.compressed import SUFFIXES
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.scaffold.language import guess_language
from elmo_framework.scaffold.rendering import as_jsonnet

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NUM = 40
LABELS = ("good", "bad")
ASPECTS = ("food", "service", "food, service", "service, price")
Writer = Callable[[], None]


def text(number: int) -> str:
    return f"The {number}th of the letters was not too short"


def file(name: str, content: str, encoding: str = "utf-8") -> Writer:
    def write() -> None:
        Path(name).write_text(content, encoding=encoding)

    return write


def table(name: str, header: str, row: Callable[[int], str], encoding: str = "utf-8") -> Writer:
    lines = [header, *map(row, range(NUM))]
    return file(name, "".join(f"{line}\n" for line in lines), encoding)


def objects(name: str, make: Callable[[int], dict[str, Any]]) -> Writer:
    return table(name, "", lambda number: json.dumps(make(number)))


def label(number: int) -> str:
    return LABELS[number % 2]


def folder() -> None:
    for number in range(NUM):
        path = Path("data", label(number), f"{number}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(number))


def squad() -> None:
    passages = [
        {
            "context": f"Town {number} is a port. It lies in the north.",
            "qas": [
                {
                    "id": str(number),
                    "question": "Where does it lie?",
                    "answers": [
                        {
                            "answer_start": len(f"Town {number} is a port. It lies in the "),
                            "text": "north",
                        }
                    ],
                    "is_impossible": False,
                }
            ],
        }
        for number in range(NUM)
    ]
    passages[0]["qas"][0] |= {"answers": [], "is_impossible": True}  # type: ignore[index]
    Path("data.json").write_text(json.dumps({"data": [{"title": "a", "paragraphs": passages}]}))


CONLLU = "\t".join(["{}", "{}", "_", "{}", "NN", "_", "0", "root", "_", "_"])
TEXTS = {"type": "text_classification_json", "text_key": "text", "label_key": "label"}
PAIRS = {"type": "snli", "label_key": "label"}
DATA: dict[str, tuple[Writer, str, dict[str, Any]]] = {
    "comma": (table("data.csv", "id,text,label", lambda n: f"{n},{text(n)},{label(n)}"), "", TEXTS),
    "line separators": (
        table("data.csv", "my\u2028text,la\x85bel", lambda n: f"{text(n)},{label(n)}"),
        "--text my\u2028text --label la\x85bel",
        {"text_key": "my\u2028text", "label_key": "la\x85bel"},
    ),
    "semicolon": (
        table(
            "data.csv",
            "Text;Größe;Klasse",
            lambda n: f'"{text(n)}; ja";1,{50 + n};{n % 3}',
            "utf-8-sig",
        ),
        "",
        {"text_key": "Text", "label_key": "Klasse"},
    ),
    "empty cells": (
        table("data.tsv", "text\tlabel", lambda n: f"{text(n)}\t{label(n) if n % 9 else ''}"),
        "",
        {**TEXTS, "skip_incomplete": True},
    ),
    "other columns": (
        table(
            "data.csv", "text,label,title,site", lambda n: f"{text(n)},{label(n)},a b c {n},{n % 2}"
        ),
        "--text title --label site",
        {"text_key": "title", "label_key": "site"},
    ),
    "json": (objects("data.jsonl", lambda n: {"text": text(n), "label": n % 2}), "", TEXTS),
    "german": (
        table(
            "data.csv",
            "text,label",
            lambda n: f"Der Patient ist {n} und die Wunde nicht rot,{label(n)}",
        ),
        "",
        {"tokenizer": {"type": "spacy", "language": "de"}},
    ),
    "folder": (folder, "", {"type": "text_classification_folder"}),
    "trees": (
        table("data.txt", "(1 (2 Too) (2 bad))", lambda n: f"({n % 5} (2 Fine) (2 {n}))"),
        "",
        {"type": "sst_tokens"},
    ),
    "pairs": (
        objects(
            "data.jsonl", lambda n: {"premise": text(n), "hypothesis": "It was", "label": label(n)}
        ),
        "",
        {**PAIRS, "premise_key": "premise", "hypothesis_key": "hypothesis"},
    ),
    "pairs by name": (
        table("data.csv", "question,answer,label", lambda n: f"{text(n)},No it is {n},{label(n)}"),
        "--text question --text answer",
        {**PAIRS, "premise_key": "question", "hypothesis_key": "answer"},
    ),
    "columns": (
        table("data.conll", "Ann NNP B-PER\nran VBD O\n", lambda n: f"Bob NNP B-PER\nw{n} NN O\n"),
        "",
        {"type": "conll2003", "tag_label": "ner", "coding_scheme": "BIOUL"},
    ),
    "parts of speech": (
        table("data.conll", "Ann NNP B-PER\nran VBD O\n", lambda n: f"Bob NNP B-PER\nw{n} NN O\n"),
        "--label pos",
        {"type": "conll2003", "tag_label": "pos", "coding_scheme": None},
    ),
    "conllu": (
        table(
            "data.conllu",
            "# text = a",
            lambda n: CONLLU.format(1, f"w{n}", ["NOUN", "VERB"][n % 2]) + "\n",
        ),
        "",
        {"type": "universal_dependencies_pos"},
    ),
    "table of words": (
        table(
            "data.csv",
            "Sentence #,Word,POS,Tag",
            lambda n: f"Sentence: {n},w{n},NN,O\n,Bob,NNP,B-PER\n,Kim,NNP,I-PER",
        ),
        "",
        {"word_column": "Word", "tag_column": "Tag", "sentence_column": "Sentence #"},
    ),
    "lists of words": (
        objects("data.jsonl", lambda n: {"tokens": ["w", str(n)], "ner_tags": ["B-X", "O"]}),
        "",
        {"type": "tagging_json", "tokens_key": "tokens", "tags_key": "ner_tags"},
    ),
    "several labels": (
        table("data.csv", "text,aspects", lambda n: f'{text(n)},"{ASPECTS[n % 4]}"'),
        "",
        {"type": "multi_label_json", "labels_key": "aspects", "separator": ","},
    ),
    "lists of labels": (
        objects("data.jsonl", lambda n: {"text": text(n), "labels": ASPECTS[n % 4].split(", ")}),
        "--task multi_label",
        {"type": "multi_label_json", "labels_key": "labels"},
    ),
    "commas in a label": (
        table("data.csv", "text,label", lambda n: f'{text(n)},"{["yes, very", "no"][n % 2]}"'),
        "",
        TEXTS,
    ),
    "numbers": (
        table("data.csv", "text,stars", lambda n: f"{text(n)},{n / 10}"),
        "",
        {"type": "text_regression_json", "value_key": "stars"},
    ),
    "whole numbers": (
        table("data.csv", "text,site,stars", lambda n: f"{text(n)},{label(n)},{n % 5}"),
        "--task regression",
        {"type": "text_regression_json", "value_key": "stars"},
    ),
    "numbers of pairs": (
        objects("data.jsonl", lambda n: {"text1": text(n), "text2": "It was", "value": n / 7}),
        "",
        {"type": "pair_regression_json", "value_key": "value", "premise_key": "text1"},
    ),
    "squad": (squad, "", {"type": "squad"}),
}


@pytest.fixture(autouse=True)
def _in_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def data_path() -> Path:
    return next(Path().glob("data*"))


def new(flags: str = "") -> tuple[int, Path]:
    data = data_path()
    return main(["new", str(data), *shlex.split(flags)]), Path("data.jsonnet")


@pytest.mark.parametrize("kind", DATA)
def test_config_fits_the_data(kind: str, capsys: pytest.CaptureFixture[str]):
    write, flags, reader = DATA[kind]
    write()

    code, path = new(flags)

    printed = capsys.readouterr()
    assert code == 0, printed.err
    raw = Config.load(path).raw
    assert "\n\n" not in path.read_text()
    experiment = parse(Experiment, raw, source="config").build()
    splits = [list(experiment.examples(split)) for split in ("train", "validation", "test")]
    assert all(splits)
    filled = {**raw["dataset_reader"], "coding_scheme": raw["dataset_reader"].get("coding_scheme")}
    filled.setdefault("tag_label", "ner")
    assert reader.items() <= filled.items()
    assert "\n  elmo train data.jsonnet -s runs/data\n" in printed.out
    assert raw["model"].get("no_answer", False) == (kind == "squad")
    has_words = "tokens" in raw["model"]["embedder"]["token_embedders"]
    assert has_words == (kind == "german")


def test_partners_and_rare_labels_change_the_config():
    rows = [f"{text(number)},{label(number)}" for number in range(NUM)]
    for name, labels in (("train", [*rows, "once or twice it was,rare"]), ("dev", rows)):
        Path(f"{name}-1.csv").write_text("\n".join(["text,label", *labels]))

    assert main(["new", "train-1.csv", "--label", "label"]) == 0

    raw = Config.load(Path("train-1.jsonnet")).raw
    assert raw["validation_data_path"] == "dev-1.csv"
    assert "validation_fraction" not in raw
    assert raw["datasets_for_vocab_creation"] == ["train", "validation", "test"]
    assert raw["trainer"]["validation_metric"] == "-loss"


def test_long_texts_are_cut_and_the_output_says_so(capsys: pytest.CaptureFixture[str]):
    long = " ".join(["word"] * 501)
    table("short.csv", "text,label", lambda n: f"{text(n)},{label(n)}")()
    table("long.csv", "text,label", lambda n: f"{text(n)} {long * (n < 2)},{label(n)}")()

    assert main(["new", "short.csv"]) == 0
    assert "more than 500 words" not in capsys.readouterr().out
    assert "max_sequence_length" not in Config.load(Path("short.jsonnet")).raw["dataset_reader"]

    assert main(["new", "long.csv"]) == 0
    assert "  2 of them have more than 500 words, and only the first 500 are read" in (
        capsys.readouterr().out
    )
    assert Config.load(Path("long.jsonnet")).raw["dataset_reader"]["max_sequence_length"] == 500


def test_data_without_labels_next_to_it_is_not_used(capsys: pytest.CaptureFixture[str]):
    table("train.csv", "text,label", lambda n: f"{text(n)},{label(n)}")()
    table("test.csv", "text", text)()
    table("valid.csv", "text,label", lambda n: f"{text(n)},{label(n)}")()

    assert main(["new", "train.csv"]) == 0

    said = capsys.readouterr().out
    assert "valid.csv is next to it, and taken for validation data" in said
    assert "test.csv is next to it, but not used as test data: test.csv:2: missing key" in said
    raw = Config.load(Path("train.jsonnet")).raw
    assert raw["validation_data_path"] == "valid.csv"
    assert "test_data_path" not in raw
    assert raw["test_fraction"] > 0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_copy_of_a_compressed_text_is_not_compressed(suffix: str):
    table("data.csv", "text;label", lambda n: f"Übel war es {n} mal;{label(n)}", "cp1252")()
    content = data_path().read_bytes()
    data_path().unlink()
    packers = {".gz": gzip, ".bz2": bz2, ".xz": lzma, ".zst": zstd}
    Path(f"data.csv{suffix}").write_bytes(packers[suffix].compress(content))

    assert main(["new", f"data.csv{suffix}", "--encoding", "cp1252"]) == 0

    assert Path("data.utf8.csv").read_bytes() == content.decode("cp1252").encode()


def test_text_in_another_encoding_is_copied_on_request(capsys: pytest.CaptureFixture[str]):
    table("data.csv", "text;label", lambda n: f"Übel war es {n} mal;{label(n)}", "cp1252")()
    before = data_path().read_bytes()

    assert new()[0] == 2
    assert "data.csv:2: this is not UTF-8 text. In cp1252" in (said := capsys.readouterr().err)
    assert "'Übel war es 0 mal;good'" in said
    assert said.endswith("add: --encoding cp1252\n")
    assert new("--encoding cp1252")[0] == 0

    assert Path("data.csv").read_bytes() == before
    assert Path("data.utf8.csv").read_bytes() == before.decode("cp1252").encode()
    assert Config.load(Path("data.jsonnet")).raw["train_data_path"] == "data.utf8.csv"


def test_plain_text_becomes_a_corpus_that_the_config_trains_on(capsys: pytest.CaptureFixture[str]):
    Path("data").mkdir()
    for number in range(NUM):
        Path(f"data/{number}.txt").write_text(f"{text(number)}. It was {number}.\n")

    assert new()[0] == 0

    prepare = capsys.readouterr().out.partition("next:\n  elmo ")[2].splitlines()[0]
    assert main([*prepare.split(), "--processes", "1"]) == 0
    assert main(["check", "data.jsonnet"]) == 0


def test_keys_that_jsonnet_cannot_read_are_quoted():
    value = {"word": 1, "self": 2, "wörter": 3, "a b": 4, "_1": 5, "import": {"local": [True]}}
    written = as_jsonnet(value)
    assert written.startswith("{ word: 1, 'self': 2, 'wörter': 3, 'a b': 4, _1: 5, 'import': {")
    Path("config.jsonnet").write_text(written, encoding="utf-8")
    assert Config.load(Path("config.jsonnet")).raw == value


def test_existing_config_is_kept_unless_forced(capsys: pytest.CaptureFixture[str]):
    DATA["comma"][0]()
    Path("data.jsonnet").write_text("{}")

    assert new()[0] == 2
    assert "data.jsonnet already exists; pass --force" in capsys.readouterr().err
    assert Path("data.jsonnet").read_text() == "{}"
    assert new("--force")[0] == 0


ERRORS: dict[str, tuple[Writer, str, str]] = {
    "booleans": (
        objects("data.jsonl", lambda n: {"text": text(n), "label": n % 2 == 0}),
        "",
        "'label': true and false; write them as strings, such as 'yes' and 'no'",
    ),
    "booleans by name": (
        objects("data.jsonl", lambda n: {"text": text(n), "label": n % 2 == 0}),
        "--label label",
        "the column 'label' has true and false; write them as strings, such as 'yes' and 'no'",
    ),
    "no header of short values": (
        table("data.csv", "yes,good", lambda n: f"{['yes', 'no'][n % 2]},{label(n)}"),
        "",
        "data.csv:1: the first line looks like data, not like names of columns ('yes', 'good')",
    ),
    "no header": (
        table("data.tsv", f"{text(0)}\tonce", lambda n: f"{text(n)}\t{label(n)}"),
        "",
        "data.tsv:1: the first line looks like data, not like names of columns",
    ),
    "codes": (
        table("data.csv", "text,code", lambda n: f"{text(n)},C{n}"),
        "--label code",
        "the column 'code' has a different value in most rows (40 values: C0, C1, C2, C3, ...)",
    ),
    "no label": (
        table("data.csv", "text,code", lambda n: f"{text(n)},C{n}"),
        "",
        "no column looks like labels, which are few and occur several times each; name it: --label",
    ),
    "measurement": (
        table("data.csv", "text;size", lambda n: f"{text(n)};1,{10 + n}"),
        "--label size",
        "has 40 different numbers: a measurement, not a label",
    ),
    "comma before decimals": (
        table("data.csv", "text;size", lambda n: f"{text(n)};1,{10 + n}"),
        "--label size --task regression",
        "expected different numbers, with a point before the decimals",
    ),
    "one label": (
        table("data.csv", "text,label", lambda n: f"{text(n)},good"),
        "--label label",
        "has only one value ('good'): nothing to learn",
    ),
    "no text": (
        table("data.csv", "a,label", lambda n: f"x{n},{label(n)}"),
        "",
        "no column looks like texts; name it: --text COLUMN; columns:\n  'a': 40 values: x0, x1,",
    ),
    "unknown column": (
        DATA["comma"][0],
        "--label labl",
        "--label: data.csv: unknown column 'labl'; choose from id, label, text. Did you mean 'lab",
    ),
    "few": (
        file("data.csv", "text,label\na b c,x\na b d,y\n"),
        "--label label",
        "a different value in most rows",
    ),
    "too few": (
        file("data.csv", "text,label\n" + "a b c,x\na b d,y\n" * 6),
        "",
        "found 12 examples; a part of them is held out, so at least 20 are needed",
    ),
    "equal texts": (
        table("data.csv", "text,label", lambda n: f"it was so,{label(n)}"),
        "--text text",
        "no examples can be held out, since too many of them have the same text",
    ),
    "another task": (
        DATA["columns"][0],
        "--task classification",
        "which is data for the task 'tagging', not 'classification'",
    ),
    "numbers of tags": (
        objects("data.jsonl", lambda n: {"tokens": ["w"], "tags": [1]}),
        "",
        "'tags' is not a list of strings; write the names of the tags",
    ),
    "json document": (
        file("data.json", '[{"text": "a"}]\n'),
        "",
        "this is a JSON document, of which only SQuAD's form is read",
    ),
    "roles": (
        table("data.txt", "2 The man left ||| O O B-V", lambda n: "1 It rains ||| O B-V"),
        "",
        "elmo new --task srl --from elmo",
    ),
    "empty": (
        lambda: Path("data.csv").write_text("\n") and None,
        "",
        "data.csv: this file is empty",
    ),
    "unknown task": (DATA["comma"][0], "--task clasification", "Did you mean 'classification'?"),
    "two things": (DATA["comma"][0], "--plugin a", "FILE and --plugin: pass one of them"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_message_says_what_to_do(kind: str, capsys: pytest.CaptureFixture[str]):
    write, flags, message = ERRORS[kind]
    write()

    code, path = new(flags)

    assert code == 2
    assert message in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("the house of the king was not far", "en"),
        ("das Haus und der König ist nicht weit", "de"),
        ("la maison est dans la forêt et le roi", "fr"),
        ("今日は良い天気です", "characters"),
        ("Дом короля был недалеко", "xx"),
        ("w w w w i i i i", "en"),
    ],
)
def test_language_is_guessed_by_frequent_words_and_script(sentence: str, language: str):
    assert guess_language([sentence.split()]) == language
