from tests.unit.tasks.configs import shipped

NAMES = ("baseline", "elmo")


def test_elmo_config_adds_elmo_at_the_encoder_only():
    baseline, elmo = (shipped(f"import '{name}.jsonnet'", "coreference") for name in NAMES)

    added = elmo["model"].pop("context_embedder")

    assert elmo == baseline
    assert added == {
        "type": "elmo_token_embedder",
        "bilm": "runs/bilm",
        "mix": {"type": "scalar_mix"},
        "dropout": 0.5,
    }
