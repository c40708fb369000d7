from pathlib import Path

import pytest

from elmo_framework.errors import DataError, found


@pytest.mark.parametrize("text", ["x" * 10**5, "it's " * 500, '"' * 999, "'\"\\" * 500, "é" * 300])
@pytest.mark.parametrize("encode", [str, str.encode])
def test_long_quotation_is_truncated(text: str, encode) -> None:
    quoted = repr(encode(text))
    error = DataError(f"found {quoted}, expected a number", path=Path("a.txt"), line=3)
    assert str(error).startswith(f"a.txt:3: found {quoted[:200]}")
    assert str(error).endswith("..., expected a number")
    assert len(str(error)) < 250


def test_a_long_message_is_not_cut() -> None:
    message = f"the reader's columns are {', '.join(f'{n!r}' for n in map(str, range(200)))} here's"
    assert str(DataError(message)) == message


def test_the_nearest_name_is_found_in_lower_case() -> None:
    assert found("EC", ["ece", "mcc"]) == "found: ece, mcc. Did you mean 'ece'?"
    assert found("LSTM", ["LSTM_2", "lstm"]) == "found: LSTM_2, lstm. Did you mean 'LSTM_2'?"


def test_long_names_are_truncated_in_lists() -> None:
    assert found("label", ["text", "x" * 5000]) == f"found: text, {'x' * 100}...."
