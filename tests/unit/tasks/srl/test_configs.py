from tests.unit.tasks.configs import shipped


def test_elmo_config_adds_only_elmo():
    baseline, elmo = (shipped(f"import '{name}.jsonnet'", "srl") for name in ("baseline", "elmo"))

    added = elmo["model"]["embedder"]["token_embedders"].pop("elmo")

    assert elmo == baseline
    assert added == {
        "type": "elmo_token_embedder",
        "bilm": "runs/bilm",
        "mix": {"type": "scalar_mix", "l2": 0.001},
        "dropout": 0.1,
    }
