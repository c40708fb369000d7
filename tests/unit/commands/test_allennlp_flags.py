"""Flags of AllenNLP's commands."""

from __future__ import annotations

import pytest

from elmo_framework.commands.allennlp_flags import translated_flags
from elmo_framework.commands.main import _parse, main
from elmo_framework.errors import RunError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "evaluate run x.txt --output-file m.json --predictions-output-file p.jsonl "
            "--cuda-device -1",
            "evaluate run x.txt --output-file m.json --predictions-file p.jsonl --device cpu",
        ),
        ("evaluate run x.txt --cuda-device=0", "evaluate run x.txt --device cuda"),
        (
            "predict run x.jsonl --use-dataset-reader --dataset-reader-choice validation "
            "--predictor sentence-tagger --silent --output-file y.jsonl",
            "predict run x.jsonl --use-dataset-reader --output-file y.jsonl",
        ),
        ("train c.jsonnet -s run -f --file-friendly-logging", "train c.jsonnet -s run -f"),
        ("train c.jsonnet -s run -r --node-rank=0 -o {}", "train c.jsonnet -s run -r -o {}"),
        (
            "evaluate run x.txt --weights-file w.th --batch-size 4 --batch-weight-key n",
            "evaluate run x.txt --weights-file w.th --batch-size 4",
        ),
        (
            "predict run x.txt --weights-file w.th --batch-size 4 --file-friendly-logging",
            "predict run x.txt --weights-file w.th --batch-size 4",
        ),
        (
            "train c.jsonnet -s run --cache-directory c --cache-prefix p -f",
            "train c.jsonnet -s run -f",
        ),
        (
            "print-results runs -k a b -m metrics.json --keys c d --format csv",
            "print-results runs -k a -k b --keys c --keys d --format csv",
        ),
        (
            "--offline print-results --traceback runs -k a b",
            "--offline print-results --traceback runs -k a -k b",
        ),
        ("print-results -k a runs", "print-results -k a runs"),
        ("embed mini x --cuda-device 0", "embed mini x --cuda-device 0"),
    ],
)
def test_flags_of_allennlp_are_those_of_ours(line: str, expected: str) -> None:
    command = next(word for word in line.split() if not word.startswith("-"))
    assert translated_flags(command, line.split())[0] == expected.split()
    if command != "embed":
        assert _parse(line.split()) == _parse(expected.split())


def test_flags_without_effect_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    _, notes = translated_flags("predict", ["predict", "run", "--predictor", "x", "--silent"])
    assert notes == [
        "--predictor has no effect: the run knows its task",
        "--silent has no effect: nothing is printed with --output-file",
    ]
    assert main(["predict", "no-such-run", "--silent"]) == 2
    assert capsys.readouterr().err.startswith("--silent has no effect: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train c.jsonnet -s run --node-rank 1", "torchrun --node-rank"),
        ("evaluate run x --auto-names a,b", "pass several files"),
        ("predict run x --predictor-args {}", "another tokenizer with --tokenizer"),
        ("predict run x -o {}", "the config that it was trained with"),
        ("predict run x --cuda-device 1", "CUDA_VISIBLE_DEVICES"),
        ("predict run x --cuda-device", "CUDA_VISIBLE_DEVICES"),
        ("print-results runs -m other.json", "each run has metrics.json"),
        ("predict run x --dataset-reader-choice train", "pass another one with --reader"),
    ],
)
def test_other_meanings_are_refused_with_what_to_use(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunError, match=message):
        translated_flags(line.split()[0], line.split())
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err
