from rich.text import Text

from elmo_framework.data.highlighting import COLORS, bracketed, color_of


def test_pieces_are_written_in_another_way_between_the_words():
    words = ["Anna", "left", "New", "York", "."]

    text = bracketed(
        words, [(0, 1, "A"), (2, 4, "B")], lambda inside, label: Text(f"[{inside}:{label}]")
    )

    assert text.plain == "[Anna:A] left [New York:B] ."


def test_a_label_has_one_colour():
    assert color_of("PER") == color_of("PER")
    assert {color_of(str(number)) for number in range(50)} == set(COLORS)
