"""The trials of searches, which follow from their arguments alone."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import components
from elmo_framework.config.parse import check, parse
from elmo_framework.errors import BuildError
from elmo_framework.study.distribution import Distribution
from elmo_framework.study.search import PrunedError, Search, Trial
from elmo_framework.training.state import TrainingState

components.load()

SPACE = {
    "model.dropout": {"type": "uniform", "low": 0.1, "high": 0.5},
    "trainer.optimizer.lr": {"type": "log_uniform", "low": 1e-4, "high": 1e-1},
    "model.hidden_dim": {"type": "integer", "low": 50, "high": 200, "step": 50},
    "model.encoder": {"values": ["lstm", None, {"type": "gru", "bias": False}]},
}


def search(**raw: Any) -> Search:
    return parse(Search, raw, source="study").build()


def trials(
    search: Search, folder: Path, scores: Mapping[str, float | None] = {}
) -> Sequence[Trial]:
    return search.trials(scores, folder=folder, num_open=1)


def overrides(search: Search, folder: Path) -> list[Mapping[str, Any]]:
    return [trial.overrides for trial in trials(search, folder)]


def in_sequence(
    search: Search, folder: Path, *, number: int, scores: dict[str, float | None]
) -> Sequence[Trial]:
    """Run up to `number` trials whose score is best at a dropout of 0.2; add to `scores`."""
    for trial in (result := trials(search, folder, scores)):
        if trial.name not in scores and len(scores) < number:
            scores[trial.name] = -abs(trial.overrides["model.dropout"] - 0.2)
            return in_sequence(search, folder, number=number, scores=scores)
    return result


def test_grid_has_every_combination_once(tmp_path: Path) -> None:
    space: dict[str, list[Any]] = {"a": [1, 2, 3], "b": [None, {"c": 1}], "d": ["x", "y"]}
    result = overrides(search(type="grid", space=space), tmp_path)
    expected = [{"a": a, "b": b, "d": d} for a in space["a"] for b in space["b"] for d in "xy"]
    assert result == expected


def test_trials_of_a_grid_have_different_names(tmp_path: Path) -> None:
    result = trials(search(type="grid", space={"a": [1, 2], "b": [3, 4]}), tmp_path)
    assert [trial.name for trial in result] == ["000", "001", "002", "003"]


def test_list_is_tried_as_it_is(tmp_path: Path) -> None:
    listed = [{}, {"a.b": 1}, {"c": [1, 2]}]
    assert overrides(search(type="list", trials=listed), tmp_path) == listed


def test_random_trials_follow_from_the_seed(tmp_path: Path) -> None:
    first, again, other = (
        overrides(search(type="random", space=SPACE, num_trials=5, seed=seed), tmp_path)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert not any(each in other for each in first)


def test_more_random_trials_keep_the_first(tmp_path: Path) -> None:
    few, many = (
        overrides(search(type="random", space=SPACE, num_trials=number), tmp_path)
        for number in (4, 9)
    )
    assert few == many[:4]


def test_random_combinations_differ(tmp_path: Path) -> None:
    space = {"a": {"values": [1, 2]}, "b": {"type": "integer", "low": 1, "high": 3}}
    result = overrides(search(type="random", space=space, num_trials=6), tmp_path)
    assert len({(each["a"], each["b"]) for each in result}) == 6


def test_random_search_of_a_small_space_is_refused() -> None:
    with pytest.raises(BuildError, match="num_trials is 3, but the space has only 2 comb"):
        search(type="random", space={"a": {"values": [1, 2]}}, num_trials=3)


def draw(raw: Any) -> list[Any]:
    distribution = parse(Distribution, raw, source="study").build()
    return [distribution.sample(random.Random(seed)) for seed in range(4_000)]


def test_uniform_draws_have_the_right_quartiles() -> None:
    result = sorted(draw({"type": "uniform", "low": 2, "high": 6}))
    assert [result[1_000], result[2_000], result[3_000]] == pytest.approx([3, 4, 5], abs=0.1)
    assert 2 <= result[0] < result[-1] <= 6


def test_log_uniform_draws_have_the_right_quartiles() -> None:
    result = sorted(draw({"type": "log_uniform", "low": 1e-4, "high": 1}))
    assert [result[1_000], result[2_000], result[3_000]] == pytest.approx(
        [1e-3, 1e-2, 1e-1], rel=0.2
    )
    assert 1e-4 <= result[0] < result[-1] <= 1


def test_integer_draws_include_both_ends_equally() -> None:
    result = Counter(draw({"type": "integer", "low": 10, "high": 30, "step": 10}))
    assert result.keys() == {10, 20, 30}
    assert min(result.values()) > 1_200


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"type": "uniform", "low": 2, "high": 1}, "low must be below high, not 2.0 and 1.0"),
        ({"type": "log_uniform", "low": 0, "high": 1}, "low must be positive, not 0"),
        ({"type": "integer", "low": 1, "high": 4, "step": 2}, "step must divide the range of 3"),
        ({"values": []}, "values is empty"),
        ({"values": [1, {"b": 1, "a": 2}, {"a": 2, "b": 1}]}, "occurs twice"),
    ],
)
def test_impossible_distributions_are_refused(raw: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        parse(Distribution, raw, source="study").build()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"type": "grid", "space": {}}, "space is empty"),
        ({"type": "grid", "space": {"a": []}}, "space.a is empty"),
        ({"type": "grid", "space": {str(n): [1, 2] for n in range(14)}}, "16,384 combinations"),
        ({"type": "list", "trials": []}, "trials is empty"),
        ({"type": "random", "space": {}}, "space is empty"),
    ],
)
def test_impossible_searches_are_refused(raw: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        search(**raw)


def test_unknown_types_have_a_nearest_match() -> None:
    problems = check(Search, {"type": "gird", "space": {}}, source="study").problems
    assert "Did you mean 'grid'?" in str(problems[0])
    raw = {"type": "random", "space": {"a": {"type": "unifrom", "low": 0, "high": 1}}}
    problems = check(Search, raw, source="study").problems
    assert str(problems[0]).startswith("space.a.type")
    assert "Did you mean 'uniform'?" in str(problems[0])


def test_examples_are_the_ends_and_all_choices() -> None:
    result = list(search(type="random", space=SPACE).examples())
    assert ("space.trainer.optimizer.lr", {"trainer.optimizer.lr": 1e-4}) in result
    assert ("space.trainer.optimizer.lr", {"trainer.optimizer.lr": 1e-1}) in result
    assert ("space.model.encoder", {"model.encoder": None}) in result
    assert len(result) == 2 + 2 + 2 + 3


def test_optuna_returns_earlier_trials_unchanged(tmp_path: Path) -> None:
    def new() -> Search:
        return search(type="optuna", space=SPACE, num_trials=6, num_startup_trials=2, seed=3)

    scores: dict[str, float | None] = {}
    result = in_sequence(new(), tmp_path, number=4, scores=scores)
    again = trials(new(), tmp_path, scores)
    assert [*again] == [*result][: len(again)]
    assert len(in_sequence(new(), tmp_path, number=6, scores=scores)) == 6
    assert len(trials(new(), tmp_path, scores)) == 6


def test_optuna_after_a_restart_equals_one_without(tmp_path: Path) -> None:
    def run(folder: Path, *, restarts: bool) -> list[Trial]:
        scores: dict[str, float | None] = {}
        searcher = search(type="optuna", space=SPACE, num_trials=8, num_startup_trials=3)
        for number in range(1, 9):
            fresh = search(type="optuna", space=SPACE, num_trials=8, num_startup_trials=3)
            in_sequence(fresh if restarts else searcher, folder, number=number, scores=scores)
        return [*trials(searcher, folder, scores)]

    result = run(tmp_path / "one", restarts=False)
    assert result == run(tmp_path / "two", restarts=True)
    assert len({str(trial.overrides) for trial in result}) == 8


def test_optuna_learns_from_the_scores(tmp_path: Path) -> None:
    searcher = search(type="optuna", space=SPACE, num_trials=18, num_startup_trials=6)
    result = in_sequence(searcher, tmp_path, number=18, scores={})
    distances = [abs(trial.overrides["model.dropout"] - 0.2) for trial in result]
    assert sum(distances[12:]) / 6 < sum(distances[:6]) / 6


def test_optuna_opens_as_many_trials_as_can_run(tmp_path: Path) -> None:
    searcher = search(type="optuna", space=SPACE, num_trials=5)
    assert len(searcher.trials({}, folder=tmp_path, num_open=3)) == 3
    assert len(searcher.trials({}, folder=tmp_path, num_open=3)) == 3
    assert len(searcher.trials({"001": 0.5}, folder=tmp_path, num_open=3)) == 4
    assert len(searcher.trials({"001": 0.5, "000": None}, folder=tmp_path, num_open=9)) == 5


def test_optuna_ignores_a_trial_whose_creation_was_killed(tmp_path: Path) -> None:
    searcher: Any = search(type="optuna", space=SPACE, num_trials=3)
    searcher._open(tmp_path).ask()
    assert [trial.name for trial in trials(searcher, tmp_path)] == ["000"]


def test_optuna_reads_past_a_line_that_was_cut_off(tmp_path: Path) -> None:
    searcher = search(type="optuna", space=SPACE, num_trials=3)
    before = trials(searcher, tmp_path)
    journal = tmp_path / "optuna.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:17])
    assert trials(searcher, tmp_path) == before
    assert len(trials(searcher, tmp_path, {"000": 1.0})) == 2


def test_optuna_never_empties_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = search(type="optuna", space=SPACE, num_trials=3)
    trials(searcher, tmp_path)
    journal = tmp_path / "optuna.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:17])
    monkeypatch.setattr(Path, "write_bytes", lambda *_: pytest.fail("empties it first"))
    trials(searcher, tmp_path)
    assert journal.read_bytes().startswith(whole + b"{")


def progress(*scores: float) -> TrainingState:
    return replace(TrainingState(), scores=scores)


def train(search: Search, folder: Path, trial: str, scores: Sequence[float]) -> int:
    """Return how many evaluations of a run are made before it is pruned."""
    callback = search.callback(trial, folder=folder)
    assert callback is not None
    for number in range(1, len(scores) + 1):
        try:
            callback.scores(progress(*scores[:number]), {})
        except PrunedError:
            return number
    return len(scores)


def pruning_search(pruner: str, **options: Any) -> Search:
    return search(type="optuna", space=SPACE, num_trials=5, pruner=pruner, **options)


def test_a_run_below_the_median_is_pruned(tmp_path: Path) -> None:
    searcher = pruning_search("median", num_startup_trials=2)
    scores: dict[str, float | None] = {}
    for name, curve in (("000", [0.4, 0.5, 0.6]), ("001", [0.3, 0.5, 0.7])):
        trials(searcher, tmp_path, scores)
        assert train(searcher, tmp_path, name, curve) == 3
        scores[name] = max(curve)
    trials(searcher, tmp_path, scores)
    assert train(searcher, tmp_path, "002", [0.4, 0.2, 0.9]) == 2
    scores["002"] = None
    trials(searcher, tmp_path, scores)
    assert train(searcher, tmp_path, "003", [0.4, 0.6, 0.7]) == 3


def test_warmup_evaluations_are_not_pruned(tmp_path: Path) -> None:
    searcher = pruning_search("median", num_startup_trials=1, num_warmup_evaluations=2)
    trials(searcher, tmp_path)
    train(searcher, tmp_path, "000", [0.4, 0.5, 0.6, 0.7])
    trials(searcher, tmp_path, {"000": 0.7})
    assert train(searcher, tmp_path, "001", [0.1, 0.1, 0.1, 0.1]) == 3


def test_a_resumed_run_is_pruned_again(tmp_path: Path) -> None:
    searcher = pruning_search("median", num_startup_trials=1)
    trials(searcher, tmp_path)
    train(searcher, tmp_path, "000", [0.4, 0.5])
    trials(searcher, tmp_path, {"000": 0.5})
    assert train(searcher, tmp_path, "001", [0.1]) == 1
    assert train(searcher, tmp_path, "001", [0.1]) == 1


def test_optuna_stores_pruned_and_failed_trials(tmp_path: Path) -> None:
    searcher: Any = pruning_search("median", num_startup_trials=1)
    searcher.trials({}, folder=tmp_path, num_open=3)
    train(searcher, tmp_path, "000", [0.4])
    trials(searcher, tmp_path, {"000": 0.4})
    train(searcher, tmp_path, "001", [0.1])
    trials(searcher, tmp_path, {"000": 0.4, "001": None, "002": None})
    states = [trial.state.name for trial in searcher._open(tmp_path).trials]
    assert states[:3] == ["COMPLETE", "PRUNED", "FAIL"]


def test_successive_halving_stops_hopeless_runs(tmp_path: Path) -> None:
    searcher = pruning_search("successive_halving")
    searcher.trials({}, folder=tmp_path, num_open=5)
    for number in range(4):
        train(searcher, tmp_path, f"{number:03}", [0.5] * 20)
    assert train(searcher, tmp_path, "004", [0.1] * 20) < 20


def test_without_a_pruner_there_is_no_callback(tmp_path: Path) -> None:
    searcher = pruning_search("none")
    assert searcher.callback(trials(searcher, tmp_path)[0].name, folder=tmp_path) is None


@pytest.mark.parametrize("sampler", ["gp", "random"])
def test_other_samplers_suggest_different_values(sampler: str, tmp_path: Path) -> None:
    searcher = search(
        type="optuna", space=SPACE, num_trials=4, sampler=sampler, num_startup_trials=4
    )
    result = in_sequence(searcher, tmp_path, number=4, scores={})
    assert len({str(trial.overrides) for trial in result}) == 4


def test_without_optuna_the_message_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BuildError, match=r"optuna is not installed; run: pip install .*\[sweep\]"):
        search(type="optuna", space=SPACE)
