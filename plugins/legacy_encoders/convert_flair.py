"""Convert character language models of Flair to safetensors.

Run this file by its path in the environment of Flair, which needs the package `safetensors`, and
not this project:

    python convert_flair.py OUTPUT --forward news-forward --backward news-backward

Flair reads its own pickles here; nothing in this project does.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from safetensors.torch import save_file


def main() -> None:
    """Run the command; an error that the user can fix ends it with the exit code 2."""
    parser = _parser()
    options = parser.parse_args()
    output: Path = options.output
    names = {"forward": options.forward, "backward": options.backward}
    if not any(names.values()):
        parser.error("name a model: --forward, --backward or both")
    if output.exists():
        parser.error(f"{output}: output already exists")
    embeddings = {direction: _load(name) for direction, name in names.items() if name}
    for direction, each in embeddings.items():
        if problem := _problem(each.lm, direction):
            parser.error(f"{names[direction]}: {problem}")
    description: dict[str, Any] = {
        "with_whitespace": not options.without_whitespace,
        "is_lower": options.lower or any(each.is_lower for each in embeddings.values()),
        **{direction: _describe(each.lm) for direction, each in embeddings.items()},
    }
    tensors = {
        f"{direction}.{key}": tensor.detach().cpu().contiguous()
        for direction, each in embeddings.items()
        for key, tensor in each.lm.state_dict().items()
        if not key.startswith("decoder.")
    }
    aside = output.with_name(f".{output.name}.writing")
    aside.mkdir(parents=True, exist_ok=True)
    save_file(tensors, aside / "flair.safetensors")
    text = json.dumps(description, ensure_ascii=False, indent=2) + "\n"
    (aside / "flair.json").write_text(text, encoding="utf-8")
    aside.rename(output)
    sys.stderr.write(f"written: {output}\n")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(description="Convert character language models of Flair.")
    parser.add_argument("output", type=Path, help="the folder to write")
    parser.add_argument("--forward", help="a name of Flair, such as news-forward, or a file")
    parser.add_argument("--backward", help="a name of Flair, such as news-backward, or a file")
    parser.add_argument(
        "--lower", action="store_true", help="the models were trained on text in lower case"
    )
    parser.add_argument(
        "--without-whitespace",
        action="store_true",
        help="as FlairEmbeddings(with_whitespace=False): the states after the words themselves",
    )
    return parser


def _load(name: str) -> Any:
    from flair.embeddings import FlairEmbeddings  # type: ignore[import-not-found]

    return FlairEmbeddings(name)


def _problem(model: Any, direction: str) -> str | None:
    """Return why a model cannot be that of a direction."""
    if model.is_forward_lm != (direction == "forward"):
        return f"this is not a {direction} model"
    kind = getattr(model, "recurrent_type", "lstm").lower()
    return None if kind == "lstm" else f"its layers are {kind}; allowed: lstm"


def _describe(model: Any) -> dict[str, Any]:
    dictionary = model.dictionary
    characters = {item.decode("utf-8"): each for item, each in dictionary.item2idx.items()}
    return {
        # Other items, such as <unk>, are never looked up.
        "characters": {item: each for item, each in characters.items() if len(item) == 1},
        "num_characters": len(dictionary.idx2item),
        "start": getattr(model, "document_delimiter", "\n"),
        "embedding_dim": model.embedding_size,
        "hidden_size": model.hidden_size,
        "num_layers": model.nlayers,
        "projection_dim": model.nout,
    }


if __name__ == "__main__":
    main()
