import json
from pathlib import Path

from today import table, task_scores, tokens_per_second


def test_a_column_of_any_row_is_a_column_of_the_table() -> None:
    rows = [{"biLM": "gru", "ner": "0.8"}, {"biLM": "lstm", "perplexity": "9"}]
    assert list(table(rows)) == [
        "| biLM | ner | perplexity |",
        "|---|---|---|",
        "| gru | 0.8 |  |",
        "| lstm |  | 9 |",
    ]


def test_speed_counts_the_words_of_all_windows(tmp_path: Path) -> None:
    metrics = {"training_steps": 30, "training_duration": 60.0}
    loader = {"data_loader": {"batch_size": 4, "unroll_steps": 5}}
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "filled_config.json").write_text(json.dumps(loader))
    assert tokens_per_second(tmp_path) == 10


def test_scores_of_a_task_are_means_over_its_records(tmp_path: Path) -> None:
    for seed, score in enumerate([0.5, 0.7]):
        for variant in ("lstm", "none"):
            path = tmp_path / f"results/ner/{variant}/seed-{seed}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            validation = {"f1": score if variant == "lstm" else 0.0, "loss": 9.0}
            record = {"config": "ner", "variant": variant, "metric": "+f1"}
            path.write_text(json.dumps({**record, "validation": validation}))
    assert list(task_scores(tmp_path, "lstm")) == [("ner", "0.6000")]
