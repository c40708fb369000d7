"""A small valid file for each registered reader."""

from __future__ import annotations

from pathlib import Path

_FIXTURES = Path(__file__).parents[1] / "fixtures"


def _tabs(*rows: str) -> bytes:
    return "".join(row.replace(" ", "\t") + "\n" for row in rows).encode()


_CONLL2005 = _tabs(
    "Ann NNP * * - (A0*)",
    "fed VBD * * feed (V*)",
    "cats NNS * * - (A1*)",
    "",
    "Dogs NNS * * - (A0*) *",
    "hunt VBP * * hunt (V*) *",
    "what WP * * - (A1* (R-A1*)",
    "they PRP * * - * (A0*)",
    "like VBP * * like *) (V*)",
    "",
)
_CONLL2012 = (
    b"#begin document (weather); part 000\n"
    b"weather 0 0 Ann NNP * - - - - (PERSON) -\n"
    b"weather 0 1 left VBD * - - - - * -\n"
    b"weather 0 2 New NNP * - - - - (GPE* -\n"
    b"weather 0 3 York NNP * - - - - *) -\n"
    b"\n"
    b"#end document\n"
)
_CONLLU_PLUS = b"# global.columns = ID FORM UPOS UP:PRED UP:ARGHEADS UP:ARGSPANS\n" + _tabs(
    "1 Ann PROPN _ _ _",
    "2 fed VERB feed.01 A0:1|A1:3 A0:1-1|A1:3-3",
    "3 cats NOUN _ _ _",
    "",
)
_CONLLU = b"# sent_id = 1\n" + _tabs(
    "1 Rain rain NOUN NN _ 2 nsubj _ _",
    "2-3 fellnow _ _ _ _ _ _ _ _",
    "2 fell fall VERB VBD _ 0 root _ _",
    "3 now now ADV RB _ 2 advmod _ _",
    "",
    "1 Stop stop VERB VB _ 0 root _ _",
    "",
)
_SENSES = b"""\
{"tokens": ["the", "bank", "paid"], "senses": {"1": ["bank%1:17:00::"]}}
{"tokens": ["a", "bank"], "pos": ["DT", "NN"], "senses": {"1": ["bank%1:14:00::"]}}
"""


def _fixture(name: str) -> tuple[str, bytes]:
    path = _FIXTURES / name
    return path.name, path.read_bytes()


SAMPLES: dict[str, list[tuple[str, bytes]]] = {
    "conll2000": [("chunks.txt", b"He PRP B-NP\nran VBD B-VP\n\nIt PRP B-NP\nrained VBD B-VP\n\n")],
    "conll2003": [_fixture("ner/train.txt")],
    "conll2005": [("props.txt", _CONLL2005)],
    "constituents": [("trees.txt", b"(S (NP (NN Rain)) (VP (VBD fell)))\n" * 2)],
    "conllu_plus_srl": [("roles.conllup", _CONLLU_PLUS)],
    "coref": [_fixture("coreference/train.conll")],
    "coref_jsonlines": [_fixture("coreference/train.jsonlines")],
    "deep_srl": [("roles.txt", b"1 Ann fed cats ||| B-A0 B-V B-A1\n0 Stop now ||| B-V B-AM-TMP\n")],
    "language_modeling": [_fixture("lm/train.txt")],
    "sequence_tagging": [("tags.txt", b"The###DT rain###NN stopped###VBD\nIt###PRP fell###VBD\n")],
    "snli": [
        _fixture("snli/pairs.jsonl"),
        ("pairs.tsv", b"gold_label\tsentence1\tsentence2\nneutral\tIt rained.\tIt fell.\n"),
    ],
    "ontonotes_ner": [("entities.conll", _CONLL2012)],
    "semcor": [("senses.jsonl", _SENSES)],
    "semcor_lemmas": [("senses.jsonl", _SENSES * 10)],
    "squad": [_fixture("squad/train.json")],
    "srl": [_fixture("srl/sentences.gold_conll")],
    "sst_tokens": [_fixture("sst/trees.txt")],
    "tagging_json": [
        ("tags.jsonl", b'{"tokens": ["Rain", "fell"], "tags": ["NN", "VBD"]}\n' * 2),
    ],
    "tagging_table": [("tags.tsv", b"Rain\tNN\nfell\tVBD\n\nIt\tPRP\nrained\tVBD\n\n")],
    "multi_label_json": [
        ("aspects.csv", b'text,labels\nSnow fell.,"cold,white"\nA goal.,\n'),
        ("aspects.jsonl", b'{"text": "Snow fell.", "labels": ["cold", "white"]}\n'),
    ],
    "text_regression_json": [
        ("degrees.csv", b"text,value\nSnow fell.,-3.5\nIt is warm.,21\n"),
        ("degrees.jsonl", b'{"text": "Snow fell.", "value": -3.5}\n{"text": "A goal."}\n'),
    ],
    "pair_regression_json": [
        ("pairs.csv", b"sentence1,sentence2,value\nSnow fell.,It is cold.,4.5\n"),
        ("pairs.jsonl", b'{"sentence1": "Snow fell.", "sentence2": "A goal.", "value": 1}\n'),
    ],
    "text_classification_folder": [("topics/weather/1.txt", b"Snow fell.\nIt is cold.\n")],
    "text_classification_json": [
        _fixture("text_classification/topics.csv"),
        ("topics.jsonl", b'{"text": "Snow fell.", "label": "weather"}\n{"text": "A goal."}\n'),
    ],
    "universal_dependencies_pos": [("words.conllu", _CONLLU)],
}
"""Names and contents of files by the name of the reader; of `a/b/c.txt` the reader reads `a`.

Prepared corpora are a target of their own."""
