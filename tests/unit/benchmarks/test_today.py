import json
from pathlib import Path

import pytest
import today
from today import missing, table, task_scores, tokens_per_second


def write_speeds(run: Path, *speeds: float) -> None:
    lines = [json.dumps({"step": 20, "tokens_per_second": speed}) for speed in speeds]
    (run / "steps.jsonl").write_text("\n".join(lines))


def write_run(run: Path, speed: float, **metrics: float) -> None:
    (run / "bilm").mkdir(parents=True)
    (run / "metrics.json").write_text(json.dumps(metrics))
    write_speeds(run, speed)


def rows_of(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> list[str]:
    """Run the script; return the rows of its table."""
    shown: list[str] = []
    monkeypatch.setattr(today, "say", shown.append)
    monkeypatch.setattr("sys.argv", ["today.py", *map(str, arguments)])
    assert today.main() == 0
    return shown[0].splitlines()[2:]


def test_a_column_of_any_row_is_a_column_of_the_table() -> None:
    rows = [{"biLM": "gru", "ner": "0.8"}, {"biLM": "lstm", "perplexity": "9"}]
    assert list(table(rows)) == [
        "| biLM | ner | perplexity |",
        "|---|---|---|",
        "| gru | 0.8 |  |",
        "| lstm |  | 9 |",
    ]


def test_speed_is_the_median_of_all_records(tmp_path: Path) -> None:
    for name, speeds in (("a", [8, 10, 1]), ("b", [2, 9])):
        (tmp_path / name).mkdir()
        write_speeds(tmp_path / name, *speeds)
    assert tokens_per_second([tmp_path / "a"]) == 8
    assert tokens_per_second([tmp_path / "a", tmp_path / "b"]) == 8
    assert tokens_per_second([tmp_path / "b"]) == 5.5


def test_speeds_can_be_those_of_other_runs(tmp_path, monkeypatch) -> None:
    for name, speed in (("runs/gru", 60), ("rates/1/gru", 70), ("rates/2/gru", 74)):
        write_run(tmp_path / name, speed)
    rows = rows_of(monkeypatch, tmp_path / "runs", "--rates", tmp_path / "rates")
    assert "| gru |  | 72 |" in rows


def test_scores_of_a_task_are_means_over_its_records(tmp_path: Path) -> None:
    for variant, score in (("lstm", 0.5), ("lstm-2", 0.7), ("none", 0.4)):
        path = tmp_path / f"results/ner/{variant}/seed-1.json"
        path.parent.mkdir(parents=True)
        record = {"config": "ner", "variant": variant, "metric": "+f1"}
        path.write_text(json.dumps({**record, "validation": {"f1": score, "loss": 9.0}}))
    assert list(task_scores(tmp_path, "lstm")) == [("ner", "0.6000 ± 0.1414 (2 seeds)")]
    assert list(task_scores(tmp_path, "none")) == [("ner", "0.4000")]


def test_a_masked_model_has_a_row_without_perplexity_and_exams(tmp_path, monkeypatch) -> None:
    for name, score in (("masked_lm", "masked_perplexity"), ("lstm", "perplexity")):
        write_run(tmp_path / name, 60, **{f"best_validation_{score}": 9.0})
    monkeypatch.setattr(today, "_exams", lambda run, data: [("WiC", 0.5)])
    rows = rows_of(monkeypatch, tmp_path, "--exams", tmp_path)
    assert rows[:2] == ["| lstm | 9.00 | 0.500 | 60 |", "| masked_lm |  |  | 60 |"]
    assert "| transformer | not run |  |  |" in rows


def test_seeds_of_a_name_are_one_row(tmp_path, monkeypatch) -> None:
    for name, perplexity, speed in (("gru", 8.0, 60), ("gru-2", 9.0, 66), ("gru-10", 10.0, 63)):
        write_run(tmp_path / name, speed, best_validation_perplexity=perplexity)
    monkeypatch.setattr(
        today, "_exams", lambda run, data: [("WiC", 0.5 if run.name == "gru" else 0.8)]
    )
    assert (
        rows_of(monkeypatch, tmp_path, "--exams", tmp_path)[0]
        == "| gru | 9.00 ± 1.00 (3 seeds) | 0.700 ± 0.173 (3 seeds) | 63 |"
    )


def test_configs_without_a_run_are_listed() -> None:
    names = [row["biLM"] for row in missing(["lstm", "gru"])]
    assert "pieces" in names
    assert not {"lstm", "tasks"} & {*names}
