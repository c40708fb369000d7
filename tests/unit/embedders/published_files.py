"""Small files in the formats in which the models of others are published."""

from pathlib import Path

import numpy as np
import torch

CONTEXT2VEC_UNIT = 2
CONTEXT2VEC_WORDS = ["<UNK>", "<BOS>", "<EOS>", "the", "dog", "ran"]


def write_context2vec(folder: Path, *, deep: bool = True) -> Path:
    """Write a model as the program of its authors does; return its .params file."""
    hidden = 2 * CONTEXT2VEC_UNIT
    dice = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {"loss_func/W": (len(CONTEXT2VEC_WORDS), hidden)}
    for name in ("l2r", "r2l"):
        shapes[f"{name}_embed/W"] = (len(CONTEXT2VEC_WORDS), CONTEXT2VEC_UNIT)
        shapes[f"{name}_1/upward/W"] = (4 * hidden, CONTEXT2VEC_UNIT)
        shapes[f"{name}_1/upward/b"] = (4 * hidden,)
        shapes[f"{name}_1/lateral/W"] = (4 * hidden, hidden)
    wide = 2 * hidden
    merging = (
        {"l3": (wide, wide), "l4": (hidden, wide)}
        if deep
        else {"lp_l2r": (CONTEXT2VEC_UNIT, hidden), "lp_r2l": (CONTEXT2VEC_UNIT, hidden)}
    )
    for name, shape in merging.items():
        shapes |= {f"{name}/W": shape, f"{name}/b": shape[:1]}
    arrays = {name: dice.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    with (folder / "model").open("wb") as file:
        np.savez_compressed(file, **arrays)
    targets = arrays["loss_func/W"]
    lines = (
        f"{w} {' '.join(f'{x:f}' for x in v)}\n"
        for w, v in zip(CONTEXT2VEC_WORDS, targets, strict=True)
    )
    (folder / "words.targets").write_text(f"{len(CONTEXT2VEC_WORDS)} {hidden}\n{''.join(lines)}")
    params = folder / "model.params"
    params.write_text(
        f"model_file\tmodel\nwords_file\twords.targets\nunit\t{CONTEXT2VEC_UNIT}\n"
        f"deep\t{'yes' if deep else 'no'}\ndrop_ratio\t0.5\n#\ttrain.py -i corpus\n"
    )
    return params


def write_cove(path: Path, *, embedding_dim: int, hidden_size: int) -> None:
    """Write the state of an LSTM of two layers and both directions, as CoVe is published."""
    dice = np.random.default_rng(5)
    state = {}
    for layer, width in enumerate((embedding_dim, 2 * hidden_size)):
        for ending in (f"l{layer}", f"l{layer}_reverse"):
            shapes = {
                "weight_ih": (4 * hidden_size, width),
                "weight_hh": (4 * hidden_size, hidden_size),
            }
            shapes |= {"bias_ih": (4 * hidden_size,), "bias_hh": (4 * hidden_size,)}
            for name, shape in shapes.items():
                state[f"{name}_{ending}"] = torch.tensor(dice.normal(size=shape), dtype=torch.float)
    # As torch wrote files in 2017, when CoVe was published.
    torch.save(state, path, _use_new_zipfile_serialization=False)
