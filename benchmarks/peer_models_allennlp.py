"""Models of AllenNLP, their archives and their outputs: the half of `peer_models.py` in the peer.

    PYTHONPATH=SCRIPTS PEERS/an/bin/python benchmarks/peer_models_allennlp.py FOLDER

Run it in AllenNLP's environment (`PEERS`), with the folder of `allennlp_compat.py` (`SCRIPTS`).
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from allennlp_peer import built, import_allennlp, outputs_alone, write_archive
from measuring import say
from peer_configs import CONFIGS

_SEED, _NOISE = 1, 0.05
_NUM_EXAMPLES = 8
_OUTPUTS = (
    *("logits", "label_logits", "class_probabilities", "span_start_logits", "span_end_logits"),
    "scores",
)


def main() -> int:
    """Write an archive and `NAME.json` for each config."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    import_allennlp()
    for name, config in CONFIGS.items():
        record = _made(config, folder / f"{name}.tar.gz")
        (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
        say(name)
    return 0


def _made(config: Mapping[str, Any], archive: Path) -> dict[str, Any]:
    """Write the archive of a model; return its numbers of parameters and some outputs."""
    torch.manual_seed(_SEED)
    model, examples = built(config, Path(config["train_data_path"]))
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    with torch.no_grad():
        for parameter in trained.values():  # zeros would hide what they multiply
            parameter.add_(torch.randn_like(parameter) * _NOISE)
    write_archive(model, config, archive)
    chosen = [*filter(_is_read_alike, examples)][:_NUM_EXAMPLES]
    return {
        "parameters": {name: parameter.numel() for name, parameter in trained.items()},
        "places": [examples.index(example) for example in chosen],
        "outputs": [_recorded(model, each) for each in outputs_alone(model, chosen)],
    }


def _is_read_alike(example: Any) -> bool:
    """Return whether ours reads the same: of a predicate of several words it marks the first."""
    indicator = example.fields.get("verb_indicator")
    return indicator is None or sum(indicator.labels) <= 1


def _recorded(model: Any, output: Mapping[str, Any]) -> dict[str, Any]:
    if "lm_embeddings" in output:
        return {"logits": _word_logits(model, output["lm_embeddings"])}
    kept = {name: output[name] for name in _OUTPUTS if name in output}
    return {name: each.tolist() if hasattr(each, "tolist") else each for name, each in kept.items()}


def _word_logits(model: Any, embeddings: Any) -> list[Any]:
    """Return the logits of the next and of the former word at each position."""
    softmax = model._softmax_loss
    directions = torch.as_tensor(embeddings).chunk(2, -1)
    with torch.no_grad():
        return [(each @ softmax.softmax_w + softmax.softmax_b).tolist() for each in directions]


if __name__ == "__main__":
    sys.exit(main())
