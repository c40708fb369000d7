from collections import Counter
from pathlib import Path

import pytest

from elmo_framework.data.formats.conll2012 import read_conll2012
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.conllu_plus import ConlluPlusSrlReader
from elmo_framework.tasks.srl.example import (
    SrlExample,
    example_predicates,
)
from elmo_framework.tasks.srl.reader import Conll2005Reader, PropositionReader, SrlReader
from elmo_framework.tasks.srl.task import SrlTask

TASK = SrlTask()
FILE = Path(__file__).parents[3] / "fixtures/srl/sentences.gold_conll"
WORDS = ("Cats", "hunt", "and", "sleep")
HUNT = Proposition(1, ("B-A0", "B-V", "O", "O"))
SLEEP = Proposition(3, ("B-A0", "O", "O", "B-V"))
EXAMPLE = SrlExample(WORDS, (HUNT, SLEEP))
WANT = SrlExample(("Want", "to", "want", "to", "want"), (Proposition(0, ("B-V", *"OOOO")),))


def example(**inputs: object) -> SrlExample:
    return TASK.example(inputs, WhitespaceTokenizer())


def forms(*splits: list[SrlExample]) -> frozenset[str]:
    """What is taken for a predicate after some splits were counted."""
    total: dict[str, Counter[str]] = {}
    for split in splits:
        for name, counted in TASK.count(split).items():
            total.setdefault(name, Counter()).update(counted)
    return predicate_forms(Vocabularies(total))


def predicate_forms(counts: Vocabularies) -> frozenset[str]:
    words = tuple(counts.counted("predicates"))
    places = example_predicates(SrlExample(words, None), counts)
    return frozenset(words[place] for place in places if place is not None)


def test_words_count_per_sentence_and_tags_per_predicate():
    rain = SrlExample(("Rain",), (Proposition(None, ("O",)),))

    counts = TASK.count([SrlExample(WORDS, (HUNT,)), rain, SrlExample(WORDS, (SLEEP,))])

    assert counts == {
        "words": Counter(["Rain", *WORDS]),
        "labels": Counter({"O": 5, "B-A0": 2, "B-V": 2, "I-A0": 0, "I-V": 0}),
        "forms": Counter(["cats", "hunt", "and", "sleep", "rain"]),
        "predicates": Counter(["hunt", "sleep"]),
    }


def test_a_model_without_counts_asks_for_predicates():
    with pytest.raises(DataError, match=r"which words are predicates in 'Cats .*pass their"):
        example_predicates(SrlExample(WORDS, None), Vocabularies({}))
    assert example_predicates(SrlExample(WORDS, None, (1,)), Vocabularies({})) == (1,)
    trained = Vocabularies({"forms": Counter(["cats"]), "predicates": Counter()})
    assert example_predicates(SrlExample(WORDS, None), trained) == (None,)


def test_predicates_are_words_marked_half_of_the_time():
    go = SrlExample(("Go", "and", "go"), (Proposition(0, ("B-V", "O", "O")),))

    assert forms([go, WANT]) == {"go"}


def test_predicate_rates_are_counted_over_all_data():
    wants = SrlExample(("Want", "want"), tuple(Proposition(at, ("B-V", "O")) for at in (0, 1)))
    unmarked = SrlExample(("to", "want", "want"), (Proposition(None, ("O", "O", "O")),))

    assert forms([wants]) == {"want"}
    assert forms([WANT], [SrlExample(("want",), (Proposition(0, ("B-V",)),))]) == {"want"}
    assert forms([WANT], [wants]) == {"want"}
    assert forms([WANT], [wants], [unmarked]) == frozenset()


def test_predicates_do_not_depend_on_limited_vocabularies():
    counts = {**TASK.count([EXAMPLE]), "words": Counter[str]()}
    pruned = {**TASK.count([WANT]), "words": Counter({"to": 2})}

    assert predicate_forms(Vocabularies(counts)) == {"hunt", "sleep"}
    assert predicate_forms(Vocabularies(pruned)) == frozenset()


def test_the_sentence_is_cached():
    assert list(TASK.sentences(EXAMPLE)) == [WORDS]
    assert TASK.num_tokens(EXAMPLE) == 8


def test_gold_is_the_propositions_of_the_example():
    assert TASK.gold(EXAMPLE) == (HUNT, SLEEP)
    with pytest.raises(DataError, match="a sentence without arguments cannot be scored: 'Rain'"):
        TASK.gold(SrlExample(("Rain",), None))


def test_inputs_are_sentences_with_or_without_predicates():
    assert example(sentence="Cats hunt") == SrlExample(("Cats", "hunt"), None)
    assert example(tokens=["Cats", "hunt"], predicates=[1]) == SrlExample(
        ("Cats", "hunt"), None, (1,)
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"sentence": "Rain", "predicates": [1]},
            "'predicates' is [1]; expected a list of positions",
        ),
        (
            {"sentence": "Rain", "predicates": 0},
            "'predicates' is 0; expected a list of positions of ",
        ),
        ({"sentence": 3}, "'sentence' is 3; expected a string or a list of strings"),
        ({}, "expected one key with a text, found none"),
    ],
)
def test_a_malformed_input_is_refused(inputs, message):
    with pytest.raises(DataError) as raised:
        example(**inputs)

    assert message in str(raised.value)


def test_json_output_lists_arguments_by_predicate():
    found = TASK.to_json((HUNT, Proposition(None, ("O",) * 4)), EXAMPLE)

    assert found == {
        "words": list(WORDS),
        "verbs": [
            {
                "verb": "hunt",
                "predicate": 1,
                "description": "[A0: Cats] [V: hunt] and sleep",
                "tags": ["B-A0", "B-V", "O", "O"],
                "arguments": [
                    {"start": 0, "end": 1, "label": "A0", "text": "Cats"},
                    {"start": 1, "end": 2, "label": "V", "text": "hunt"},
                ],
            }
        ],
    }


def test_pretty_output_has_one_line_per_predicate():
    found = TASK.pretty((HUNT, SLEEP), EXAMPLE)

    assert found.plain == "[A0: Cats] [V: hunt] and sleep\n[A0: Cats] hunt and [V: sleep]"
    assert "bold green" in {str(span.style) for span in found.spans}
    assert TASK.pretty((), EXAMPLE).plain == "Cats hunt and sleep"


def test_predictions_are_in_the_official_format():
    pairs = [((SLEEP, HUNT), EXAMPLE), ((), SrlExample(("Rain", "."), None))]

    assert "".join(TASK.formats["srl"](pairs)) == (
        "-\t(A0*)\t(A0*)\nhunt\t(V*)\t*\n-\t*\t*\nsleep\t*\t(V*)\n\n-\n-\n\n"
    )


def test_one_block_per_sentence_even_if_equal():
    first, second = SrlExample(WORDS, (HUNT,)), SrlExample(WORDS, (SLEEP,))
    again = SrlExample((*WORDS,), (SLEEP,))
    block = "-\t(A0*)\t(A0*)\nhunt\t(V*)\t*\n-\t*\t*\nsleep\t*\t(V*)\n\n"
    alone = "-\t(A0*)\n-\t*\n-\t*\nsleep\t(V*)\n\n"

    pairs = [((SLEEP,), second), ((HUNT,), first), ((SLEEP,), again)]

    assert "".join(TASK.formats["srl"](pairs)) == block + alone
    assert "".join(TASK.formats["srl_gold"](pairs)) == block + alone
    assert "".join(TASK.formats["srl"]([])) == ""


def test_written_blocks_are_the_sentences_of_a_corpus():
    examples = list(SrlReader().read(FILE))

    written = "".join(TASK.formats["srl_gold"](((), example) for example in examples))

    blocks = [block.splitlines() for block in written.removesuffix("\n\n").split("\n\n")]
    sentences = list(read_conll2012(FILE))
    assert [len(block) for block in blocks] == [len(held.words) for held in sentences]
    columns = [len(block[0].split("\t")) - 1 for block in blocks]
    assert columns == [len(held.predicates) for held in sentences]


def props(*rows: str) -> str:
    """Rows of a sentence in the columns that `srl-eval.pl` reads."""
    return "".join("\t".join(row.split()) + "\n" for row in rows) + "\n"


def written_gold(reader: PropositionReader, file: Path) -> str:
    return "".join(TASK.formats["srl_gold"](((), example) for example in reader.read(file)))


def test_gold_of_conll_2012_equals_the_corpus():
    blocks = [
        props(
            *(
                " ".join([cells[6] if cells[7] != "-" else "-", *cells[11:-1]])
                for cells in map(str.split, block.splitlines())
                if not cells[0].startswith("#")
            )
        )
        for block in FILE.read_text().removesuffix("#end document\n").strip().split("\n\n")
    ]

    assert "feed\t(V*)" in blocks[0]
    assert written_gold(SrlReader(), FILE) == "".join(blocks)


def test_gold_of_conll_2005_equals_the_corpus(tmp_path):
    rows = ["- (A0*) *", "- * *", "come (V*) *", "- * *", "go * (V*)"]
    words = ["She", "-", "came", "and", "went"]
    file = tmp_path / "file"
    file.write_text("".join(f"{word} {row}\n" for word, row in zip(words, rows, strict=True)))

    assert written_gold(Conll2005Reader(target_column=1), file) == props(*rows)


def test_gold_of_conllu_plus_has_the_senses_of_the_corpus(tmp_path):
    file = tmp_path / "file"
    rows = ["1 She _ _", "2 came come.01 A0:1-1"]
    header = "# global.columns = ID FORM UP:PRED UP:ARGSPANS\n"
    file.write_text(header + props(*rows))

    assert written_gold(ConlluPlusSrlReader(), file) == props("- (A0*)", "come.01 (V*)")


def test_predictions_name_a_predicate_as_the_corpus_does(tmp_path):
    file = tmp_path / "file"
    file.write_text("a 0 0 Rains N * rain - - - * (A1*) -\na 0 1 fell V * fall 01 - - * (V*) -\n")
    (example,) = SrlReader().read(file)
    predicted = (Proposition(1, ("B-A1", "B-V")),)

    assert "".join(TASK.formats["srl"]([(predicted, example)])) == props("- (A1*)", "fall (V*)")


def test_a_predicate_without_a_lemma_is_written_as_its_word(tmp_path):
    file = tmp_path / "file"
    file.write_text("a 0 0 Go VB * - 01 - - * (V*) -\n")

    assert written_gold(SrlReader(), file) == props("Go (V*)")


def test_predicate_is_one_cell_other_than_the_empty_mark():
    example = SrlExample(("10 000", "-"), None)
    found = (Proposition(0, ("B-V", "O")), Proposition(1, ("O", "B-V")))

    assert "".join(TASK.formats["srl"]([(found, example)])) == "10_000\t(V*)\t*\n_\t*\t(V*)\n\n"


def test_predicate_listed_twice_has_one_column():
    assert "".join(TASK.formats["srl"]([((SLEEP, SLEEP), EXAMPLE)])) == (
        "-\t(A0*)\n-\t*\n-\t*\nsleep\t(V*)\n\n"
    )


def test_a_predicate_has_one_proposition():
    other = Proposition(3, ("O", "O", "O", "B-V"))

    with pytest.raises(DataError, match="the word 'sleep' has two predicates in 'Cats hunt and"):
        list(TASK.formats["srl"]([((SLEEP, other), EXAMPLE)]))


def test_a_sentence_without_words_has_no_block():
    empty, rain = SrlExample((), None), SrlExample(("Rain",), None)
    none = (Proposition(None, ()),)

    found = TASK.formats["srl"]([(none, empty), ((), rain), (none, empty), ((), rain)])

    assert "".join(found) == "-\n\n-\n\n"


def test_unlabeled_sentences_cannot_be_written_as_gold():
    with pytest.raises(DataError, match="a sentence without arguments cannot be scored: 'Rain'"):
        list(TASK.formats["srl_gold"]([((), SrlExample(("Rain",), None))]))


def test_gold_is_written_in_the_same_format():
    pairs = [((), EXAMPLE), ((), SrlExample(("Rain",), (Proposition(None, ("O",)),)))]

    assert "".join(TASK.formats["srl_gold"](pairs)) == (
        "-\t(A0*)\t(A0*)\nhunt\t(V*)\t*\n-\t*\t*\nsleep\t*\t(V*)\n\n-\n\n"
    )
