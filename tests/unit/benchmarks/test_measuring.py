from __future__ import annotations

import json
from pathlib import Path

import pytest
from measuring import chosen_sentences, count_words, in_batches, report

SENTENCES = [["a"], ["b", "c", "d"], ["e", "f"]]


def test_sentence_choice_is_repeatable_and_skips_blank_lines(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"sentence {number}" for number in range(50)))
    chosen = chosen_sentences(text, 10)
    assert chosen == chosen_sentences(text, 10)
    assert len({tuple(words) for words in chosen}) == 10
    assert len(chosen_sentences(text, 1000)) == 50


def test_batches_come_as_the_sentences_do_or_longest_first() -> None:
    assert in_batches(SENTENCES, 2, is_sorted=False) == [SENTENCES[:2], SENTENCES[2:]]
    assert in_batches(SENTENCES, 2, is_sorted=True) == [
        [SENTENCES[1], SENTENCES[2]],
        [SENTENCES[0]],
    ]


def test_words_are_counted_over_all_sentences() -> None:
    assert count_words(SENTENCES) == 6


def test_report_is_one_line_with_peak_memory_by_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(bench="one")
    report(bench="other", peak_rss_mib=1.5)
    one, other = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert one["bench"] == "one"
    assert one["peak_rss_mib"] > 1
    assert other["peak_rss_mib"] == 1.5
