"""Record outputs of AllenNLP's ELMo modules; run with its interpreter.

python benchmarks/allennlp_modules.py tests/fixtures/allennlp/modules.json
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import torch
from allennlp_archives import import_allennlp, rounded

_BILM = Path(__file__).parents[1] / "tests/fixtures/first_version/runs/bilm/bilm"
_LONG = "ü" * 30  # its 60 bytes are too many for a word
_BATCHES = [[["Wörter", "are", _LONG], ["a"]], [["<S>", "!"], ["a", "b", "c"]]]
_WEIGHTS, _GAMMA = [0.5, -1.0, 2.0], 1.5


def main() -> int:
    """Write the outputs for two batches in a row, and what they are made of."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path, help="of the outputs")
    path = parser.parse_args().file
    import_allennlp()
    from allennlp.modules.elmo import Elmo, _ElmoBiLm, batch_to_ids
    from allennlp.modules.scalar_mix import ScalarMix
    from allennlp.nn.util import remove_sentence_boundaries

    ids = [batch_to_ids(batch) for batch in _BATCHES]
    files = str(_BILM / "options.json"), str(_BILM / "weights.hdf5")
    recorded: dict[str, Any] = {"batches": _BATCHES, "weights": _WEIGHTS, "gamma": _GAMMA}
    recorded["ids"] = [each.tolist() for each in ids]
    with torch.no_grad():
        for name, norm in (("elmo", False), ("normalized", True)):
            elmo = Elmo(
                *files, 1, do_layer_norm=norm, dropout=0.0, scalar_mix_parameters=_WEIGHTS
            ).eval()
            outputs = [elmo(each) for each in ids]
            recorded[name] = [rounded(each["elmo_representations"][0]) for each in outputs]
            recorded["mask"] = [each["mask"].tolist() for each in outputs]
        # What the ElmoEmbedder of AllenNLP 0.9 returns.
        bilm, layers = _ElmoBiLm(*files).eval(), []
        for each in ids:
            output = bilm(each)
            masked = [(layer, output["mask"]) for layer in output["activations"]]
            layers.append(torch.stack([remove_sentence_boundaries(*pair)[0] for pair in masked], 1))
        recorded["layers"] = [rounded(each) for each in layers]
        recorded["mixed"] = {}
        for norm in (False, True):
            mix = ScalarMix(3, do_layer_norm=norm, initial_scalar_parameters=_WEIGHTS)
            mix.gamma.fill_(_GAMMA)
            mask = torch.tensor(recorded["mask"][0])
            mixed = mix([*layers[0].unbind(1)], mask) if norm else mix([*layers[0].unbind(1)])
            recorded["mixed"][str(norm).lower()] = rounded(mixed)
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in recorded.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
