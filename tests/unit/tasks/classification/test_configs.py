from tests.unit.tasks.configs import shipped

BASELINE, ELMO = (f"(import '{name}.jsonnet')" for name in ("baseline", "elmo"))


def test_elmo_config_adds_only_elmo():
    baseline, elmo = shipped(BASELINE, "sst"), shipped(ELMO, "sst")

    first = elmo["model"]["embedder"]["token_embedders"].pop("elmo")
    second = elmo["model"].pop("output_embedder")
    assert (first.pop("dropout"), second.pop("dropout")) == (0, 0.5)
    assert first == second
    assert first["mix"] == {"type": "scalar_mix", "l2": 0.001}
    assert elmo == baseline


def test_training_uses_phrases_and_evaluation_sentences():
    raw = shipped(BASELINE, "sst")

    assert raw["dataset_reader"]["min_phrase_length"] == 4
    assert raw["dataset_reader"]["use_subtrees"]
    assert raw["validation_dataset_reader"] == {"type": "sst_tokens"}
