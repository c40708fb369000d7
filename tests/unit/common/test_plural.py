from elmo_framework.common.plural import plural, plural_of


def test_one_is_singular_and_all_others_are_plural() -> None:
    assert plural(1, "sentence") == "1 sentence"
    assert plural(0, "sentence") == "0 sentences"
    assert plural(1200, "more line") == "1,200 more lines"


def test_a_sibilant_takes_another_ending() -> None:
    assert plural(2, "batch") == "2 batches"
    assert plural_of("loss") == "losses"
