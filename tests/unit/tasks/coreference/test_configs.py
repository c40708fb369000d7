from tests.unit.tasks.configs import shipped

NAMES = ("baseline", "elmo")


def test_the_config_with_elmo_is_the_baseline_and_elmo_at_its_encoder_alone():
    baseline, elmo = (shipped(f"import '{name}.jsonnet'", "coreference") for name in NAMES)

    added = elmo["model"].pop("context_embedder")

    assert elmo == baseline
    assert added == {
        "type": "elmo_token_embedder",
        "bilm": "runs/bilm",
        "mix": {"type": "scalar_mix"},
        "dropout": 0.5,
    }
