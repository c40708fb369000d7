from tests.unit.tasks.configs import shipped


def test_the_config_with_elmo_is_the_baseline_and_elmo_alone():
    baseline, elmo = (shipped(f"import '{name}.jsonnet'", "srl") for name in ("baseline", "elmo"))

    added = elmo["model"]["embedder"]["token_embedders"].pop("elmo")

    assert elmo == baseline
    assert added == {
        "type": "elmo_token_embedder",
        "bilm": "runs/bilm",
        "mix": {"type": "scalar_mix", "l2": 0.001},
        "dropout": 0.1,
    }
