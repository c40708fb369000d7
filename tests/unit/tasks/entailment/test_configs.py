from tests.unit.tasks.configs import shipped

BASELINE, ELMO = (f"(import '{name}.jsonnet')" for name in ("baseline", "elmo"))


def test_elmo_config_adds_elmo_and_regularization():
    baseline, elmo = shipped(BASELINE, "snli"), shipped(ELMO, "snli")

    first = elmo["model"]["embedder"]["token_embedders"].pop("elmo")
    second = elmo["model"].pop("output_embedder")
    assert first == second
    assert first["mix"] == {"type": "scalar_mix", "layer_norm": True, "l2": 0.001}
    assert elmo["model"].pop("attention_dropout") == 0.5
    ((names, penalty),) = elmo["model"].pop("regularizer")
    assert penalty == {"type": "l2", "alpha": 0.0001 / 2}
    assert "weight" in names
    assert "bias" not in names
    assert elmo == baseline


def test_sizes_are_those_of_the_paper():
    model = shipped(BASELINE, "snli")["model"]

    assert model["encoder"] == model["inference_encoder"]
    assert model["encoder"]["hidden_size"] == 300
    assert model["projection_feedforward"]["hidden_dims"] == 300
