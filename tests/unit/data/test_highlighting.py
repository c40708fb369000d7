from rich.text import Text

from elmo_framework.data.highlighting import COLORS, bracketed, color_of, colored
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask


def test_pieces_are_written_in_another_way_between_the_words():
    words = ["Anna", "left", "New", "York", "."]

    text = bracketed(
        words, [(0, 1, "A"), (2, 4, "B")], lambda inside, label: Text(f"[{inside}:{label}]")
    )

    assert text.plain == "[Anna:A] left [New York:B] ."


def test_a_label_has_one_color():
    assert color_of("PER") == color_of("PER")
    assert {color_of(str(number)) for number in range(50)} == set(COLORS)


def test_spans_are_in_brackets():
    text = colored(
        ["Maria", "Lund", "left", "Oslo", "today"], ["B-PER", "I-PER", "O", "B-LOC", "O"]
    )

    assert text.plain == "[Maria Lund PER] left [Oslo LOC] today"


def test_neighboring_spans_are_apart():
    assert colored(["Oslo", "Norway"], ["U-LOC", "U-LOC"]).plain == "[Oslo LOC] [Norway LOC]"


def test_a_label_has_one_color_and_words_outside_have_none():
    text = colored(["Oslo", "is", "not", "Turku"], ["B-LOC", "O", "O", "B-LOC"])

    spans = [(span.start, span.end, span.style) for span in text.spans]
    first, second = (style for start, _, style in spans if start in (0, 18))
    assert first == second
    assert not any(start < 11 < end for start, end, _ in spans)


def test_tags_without_a_scheme_follow_their_words():
    assert colored(["Rain", "fell"], ["NN", "VBD"]).plain == "Rain/NN fell/VBD"


def test_brackets_in_the_text_are_text():
    assert colored(["[bold]", "x"], ["O", "O"]).plain == "[bold] x"
    assert colored([], []).plain == ""


def test_the_task_shows_predictions_so():
    example = TaggedSentence(("Oslo",), None)

    assert TaggingTask().pretty(("U-LOC",), example).plain == "[Oslo LOC]"
