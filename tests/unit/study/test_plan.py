"""From a study to the configs of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.config.overrides import with_merged
from elmo_framework.errors import ConfigError
from elmo_framework.study.check import (
    LoadedStudy,
    cell_problems,
    load_study,
    require_sound,
    search_problems,
)
from elmo_framework.study.search import Trial
from tests.experiment.studies import record_of, state_of, study, tagger, write


def loaded(**changes: Any) -> LoadedStudy:
    return load_study(Config(study(**changes), "s.json", ""))


def problems(**changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        loaded(**changes)
    return [str(problem) for problem in error.value.problems]


def test_runs_are_all_combinations_first_seed_first(tmp_path: Path) -> None:
    state = state_of(study(seeds=[3, 1], fractions=[0.5, 1.0]), tmp_path)
    assert [run.plan.name for run in state.runs()] == [
        "ner/none/fraction-0.5-seed-3",
        "ner/none/seed-3",
        "ner/wide/fraction-0.5-seed-3",
        "ner/wide/seed-3",
        "ner/none/fraction-0.5-seed-1",
        "ner/none/seed-1",
        "ner/wide/fraction-0.5-seed-1",
        "ner/wide/seed-1",
    ]
    plan = state.runs()[-2].plan
    assert (plan.raw["random_seed"], plan.raw["train_fraction"]) == (1, 0.5)


def test_fractions_are_by_default_those_of_the_configs() -> None:
    configs = {"ner": {"config": tagger(train_fraction=0.3)}}
    (cell,) = loaded(configs=configs).cells
    assert (cell.plan.fraction, cell.plan.variant) == (0.3, "default")


def test_overrides_merge_and_those_of_the_config_come_last() -> None:
    base = {"model": {"encoder": {"type": "lstm", "size": 3, "bias": True}}, "seed": 1}
    assert with_merged(base, {"model": {"encoder": {"size": 4}}}) == {
        "model": {"encoder": {"type": "lstm", "size": 4, "bias": True}},
        "seed": 1,
    }
    both = loaded(
        configs={
            "ner": {"config": tagger(), "variants": {"a": {"model.encoder.hidden_size": 7}}},
            "other": {"config": tagger()},
        },
        variants={"a": {"model": {"encoder": {"hidden_size": 5, "num_layers": 1}}}},
    )
    sizes = {
        cell.plan.config: cell.experiment["model"]["encoder"]["hidden_size"] for cell in both.cells
    }
    assert sizes == {"ner": 7, "other": 5}
    assert all(cell.experiment["model"]["encoder"]["num_layers"] == 1 for cell in both.cells)


def test_replacing_in_a_variant_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    variants = {"gru": {"model.encoder": {"type": "gru", "hidden_size": 3}}}
    (cell,) = loaded(configs={"ner": {"config": tagger()}}, variants=variants).cells
    cell.of_trial(Trial("000", {"model.encoder": {"type": "gru"}}))
    assert caplog.messages == []


def test_object_of_another_type_and_dotted_key_replace() -> None:
    base = {"encoder": {"type": "lstm", "size": 3}, "optimizer": "adam"}
    assert with_merged(base, {"encoder": {"type": "gru"}}) == {
        "encoder": {"type": "gru"},
        "optimizer": "adam",
    }
    merged = with_merged(base, {"optimizer": {"lr": 0.1}})
    assert merged["optimizer"] == {"type": "adam", "lr": 0.1}
    assert with_merged({"a": {"b": {"c": 1}}}, {"a.b": {"d": 2}}) == {"a": {"b": {"d": 2}}}
    assert base == {"encoder": {"type": "lstm", "size": 3}, "optimizer": "adam"}


def test_test_data_are_no_part_of_a_run() -> None:
    configs = {"ner": {"config": tagger(test_data_path="test.txt", evaluate_on_test=True)}}
    (cell,) = loaded(configs=configs).cells
    assert cell.plan.test_data_path == "test.txt"
    assert cell.plan.raw["test_data_path"] is None
    assert not cell.plan.raw["evaluate_on_test"]


def test_counting_words_of_test_data_is_a_problem() -> None:
    configs = {"ner": {"config": tagger(datasets_for_vocab_creation=["train", "test"])}}
    (problem,) = cell_problems(loaded(configs=configs).cells)
    assert problem.path == "ner/default: datasets_for_vocab_creation"


def test_metric_is_by_default_that_of_the_trainer() -> None:
    metrics = {
        cell.plan.config: cell.plan.metric
        for cell in loaded(
            configs={
                "ner": {"config": tagger()},
                "other": {"config": tagger(), "metric": "-loss"},
            }
        ).cells
    }
    assert metrics == {"ner": "+f1-measure-overall", "other": "-loss"}


def test_variants_are_compared_by_one_metric() -> None:
    variants = {"by_f1": {}, "by_loss": {"trainer.validation_metric": "-loss"}}
    assert problems(configs={"ner": {"config": tagger(), "variants": variants}}) == [
        "configs.ner.metric: the variants have different ones, '+f1-measure-overall', '-loss'; set "
        "the one that compares them"
    ]
    config = {"config": tagger(), "variants": variants, "metric": "-loss"}
    assert {cell.plan.metric for cell in loaded(configs={"ner": config}).cells} == {"-loss"}


def test_fractions_of_variants_are_those_of_the_study_and_comparable() -> None:
    config = {"config": tagger(), "variants": {"full": {}, "half": {"train_fraction": 0.5}}}
    configs = {"ner": config}
    assert problems(configs=configs, fractions=[0.1, 1.0]) == [
        "variant 'half' of config 'ner': train_fraction: has no effect: the study's `fractions` "
        "replace it"
    ]
    assert problems(configs=configs, comparisons=[["full", "half"]]) == [
        "comparisons[0]: 'full' and 'half' have no config with the same train_fraction"
    ]


def test_seeds_of_variants_are_those_of_the_study() -> None:
    config = {"config": tagger(random_seed=3), "variants": {"a": {}, "b": {"random_seed": 7}}}
    assert problems(configs={"ner": config}) == [
        "variant 'b' of config 'ner': random_seed: has no effect: the study's `seeds` replace it"
    ]


def test_a_search_has_neither_seeds_nor_fractions() -> None:
    trials = [{"random_seed": 8}, {"train_fraction": 0.1}, {"model.encoder.hidden_size": 4}]
    study_ = loaded(
        configs={"ner": {"config": tagger()}}, search={"type": "list", "trials": trials}
    )
    assert [str(each) for each in search_problems(study_.study, study_.cells)] == [
        "search.trials[0]: ner/default: random_seed: belongs to the study's `seeds`, and not to a "
        "search",
        "search.trials[1]: ner/default: train_fraction: belongs to the study's `fractions`, and "
        "not to a search",
    ]


def test_problems_of_a_search_are_reported_with_those_of_variants() -> None:
    variants = {"good": {}, "bad": {"model.encoder.hidden_size": -1}}
    search = {"type": "list", "trials": [{"trainer.num_epochs": 0}]}
    study_ = loaded(configs={"ner": {"config": tagger(), "variants": variants}}, search=search)
    with pytest.raises(ConfigError) as error:
        require_sound(study_, study_.cells)
    assert [problem.path for problem in error.value.problems] == [
        "ner/bad: model.encoder.hidden_size",
        "search.trials[0]",
    ]


def test_unknown_metric_is_a_problem_with_its_config() -> None:
    configs = {"ner": {"config": tagger(), "metric": "+f1-measure"}}
    (problem,) = cell_problems(loaded(configs=configs).cells)
    assert problem.path == "ner/default: metric"
    assert "not a score of this model" in problem.message


def test_config_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.jsonnet"
    path.write_text("{ dataset_reader: std.extVar('READER') }")
    raw = study(configs={"ner": {"config": str(path)}})
    study_ = load_study(Config(raw, "s.json", ""), external_variables={"READER": "conll2003"})
    assert study_.cells[0].plan.raw["dataset_reader"] == "conll2003"


def test_all_problems_of_a_study_are_reported_at_once() -> None:
    assert problems(
        configs={"n/r": {"config": tagger(), "metric": "f1"}},
        variants={"a b": {}},
        seeds=[1, 1],
        comparisons=[["a b", "c"], ["a b", "a b"]],
        search={"type": "list", "trials": [{}], "num_seeds": 3},
    ) == [
        "configs.n/r: is a part of file names: use letters, digits, '.', '_', '+' and '-'",
        "variants.a b: is a part of file names: use letters, digits, '.', '_', '+' and '-'",
        "configs.n/r.metric: is 'f1'; write '+' before the name when larger is better, '-' when "
        "smaller is",
        "seeds: has a value twice: [1, 1]",
        "search.num_seeds: is 3; the study has 2 seeds",
        "comparisons[0]: unknown variant 'c'; choose from a b.",
        "comparisons[1]: compares 'a b' with itself",
    ]


def test_problems_of_files_and_of_overrides_are_reported_with_those_of_the_study() -> None:
    configs = {
        "ner": {"config": tagger(), "variants": {"a": {"model.encodr.x": 1}}},
        "gone": {"config": "gone.jsonnet"},
    }
    with pytest.raises(ConfigError) as error:
        loaded(configs=configs, seeds=[1, 1])
    assert [problem.path for problem in error.value.problems] == [
        "seeds",
        "configs.gone.config",
        "variant 'a' of config 'ner': model.encodr.x",
    ]
    assert str(error.value).startswith("s.json: 3 problems")


def test_names_that_differ_in_case_only_are_refused() -> None:
    config = {"config": tagger(), "variants": {"mini": {}, "none": {}}}
    message = "differs from 'Mini' in case only: some file systems take them for one"
    assert problems(configs={"ner": config}, variants={"Mini": {}, "none": {}}) == [
        f"configs.ner.variants.mini: {message}"
    ]


def test_override_of_nothing_names_config_and_variant() -> None:
    configs = {"ner": {"config": tagger(), "variants": {"bad": {"model.encodr.x": 1}}}}
    (problem,) = problems(configs=configs)
    assert problem.startswith("variant 'bad' of config 'ner': model.encodr.x: model has no key")
    assert "Did you mean 'encoder'?" in problem


def test_same_problem_of_several_variants_is_reported_once() -> None:
    variants = {"a": {}, "b": {}, "c": {"model.encoder.hidden_size": -1}}
    configs = {"ner": {"config": tagger(train_data_path="gone.txt"), "variants": variants}}
    found = cell_problems(loaded(configs=configs).cells)
    assert [problem.path for problem in found] == [
        "ner/a, ner/b, ner/c: train_data_path",
        "ner/c: model.encoder.hidden_size",
    ]


def test_counts_include_the_runs_of_a_search() -> None:
    search = {"type": "grid", "space": {"model.encoder.hidden_size": [4, 6, 8]}}
    counts = loaded(seeds=[1, 2, 3], search={**search, "num_seeds": 2}).counts
    # Of each variant: 3 trials with 2 seeds, and the best one with the third seed.
    assert counts == {
        "runs": 2 * (3 * 2 + 1),
        "configs": 1,
        "variants": 2,
        "fractions": 1,
        "seeds": 3,
        "trials": 3,
    }
    assert "trials" not in loaded().counts
    assert problems(seeds=[1, 2], search={**search, "num_seeds": 5}) == [
        "search.num_seeds: is 5; the study has 2 seeds"
    ]


@pytest.mark.parametrize("flags", [[], ["--dry-run"]], ids=["train", "dry run"])
def test_fraction_that_is_no_number_is_a_problem_of_its_config(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = {"type": "list", "trials": [{"model.dropout": 0.1}]}
    raw = study(configs={"ner": {"config": tagger(train_fraction=[0.5])}}, search=search)
    assert main(["study", str(write(tmp_path, raw)), "-s", str(tmp_path / "study"), *flags]) == 2
    assert "ner/default: train_fraction: Input should be a valid number" in capsys.readouterr().err


def test_dry_run_counts_runs_of_another_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = state_of(study(), tmp_path / "study")
    record_of(state.runs()[0].plan, state)
    raw = study(configs={"ner": {"config": tagger(train_fraction=0.5)}}, variants={"none": {}})
    raw["fractions"] = [1.0]
    raw["configs"]["ner"]["config"]["trainer"]["num_epochs"] = 7
    path = str(write(tmp_path, raw))
    assert main(["study", path, "-s", str(tmp_path / "study"), "--dry-run"]) == 0
    assert "; 1 run of another config, which only --force replaces" in capsys.readouterr().out


def test_study_lists_all_wrong_keys_of_its_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = {"type": "grid", "space": {"modell.dropout": [0.1], "trainerr.patience": [1]}}
    raw = study(configs={"ner": {"config": tagger()}}, search=search)
    assert main(["study", str(write(tmp_path, raw)), "-s", str(tmp_path / "study")]) == 2
    messages = capsys.readouterr().err
    assert "search.space.modell.dropout" in messages
    assert "search.space.trainerr.patience" in messages
