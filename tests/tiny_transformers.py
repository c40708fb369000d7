"""Tiny transformers with random weights and their tokenizers, made on the spot."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

KINDS = ("bert", "roberta", "gpt2", "llama", "t5")
NUM_LAYERS, DIM, MAX_PIECES = 3, 16, 24
LETTERS = string.ascii_letters + ".,!'ö"

_SIZES: dict[str, Any] = {
    "hidden_size": DIM,
    "num_hidden_layers": NUM_LAYERS - 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


def save_transformer(folder: Path, kind: str, *, seed: int = 0, **sizes: Any) -> Path:
    """Write a transformer of one of `KINDS`, as `save_pretrained` does."""
    torch.manual_seed(seed)
    tokenizer = {"bert": _word_pieces, "roberta": _bytes, "gpt2": _bytes}.get(kind, _unigrams)(kind)
    model = _model(kind, len(tokenizer), sizes)
    for parameter in model.parameters():  # the usual ones are so small that all words look alike
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _model(kind: str, size: int, sizes: dict[str, Any]) -> Any:
    keys = {**_SIZES, "vocab_size": size, "max_position_embeddings": MAX_PIECES, **sizes}
    if kind == "bert":
        return transformers.BertForMaskedLM(transformers.BertConfig(**keys))
    if kind == "roberta":
        keys |= {"pad_token_id": 1, "max_position_embeddings": MAX_PIECES + 2}
        return transformers.RobertaModel(transformers.RobertaConfig(**keys))
    if kind == "gpt2":
        ids = {"bos_token_id": 0, "eos_token_id": 2}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**keys, **ids))
    if kind == "llama":
        keys |= {"num_key_value_heads": 1, "bos_token_id": 3, "eos_token_id": 1}
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**keys))
    t5 = {"d_model": DIM, "d_kv": 8, "d_ff": 32, "num_layers": NUM_LAYERS - 1, "num_heads": 2}
    return transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=size, **t5))


def _word_pieces(kind: str) -> Any:
    """[CLS] words [SEP], with ## inside words, as BERT's."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*special, "the", "dog", "##s", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    ids = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )


def _bytes(kind: str) -> Any:
    """Byte-level pairs, with <s> and </s> around sentences for RoBERTa and none for GPT-2."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġd", "og", "Ġdog"]
    ids = {piece: number for number, piece in enumerate(pieces)}
    merges = [("Ġ", "d"), ("o", "g"), ("Ġd", "og")]
    tokenizer = Tokenizer(models.BPE(ids, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if kind == "roberta":
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def _unigrams(kind: str) -> Any:
    """▁ before words; </s> after sentences for T5, <s> before them for Llama."""
    pieces = ["<pad>", "</s>", "<unk>", "<s>", "▁", "▁dog", "▁the", *LETTERS]
    scores = [(piece, -2.0 if "▁" in piece else -5.0) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    single = "$A </s>" if kind == "t5" else "<s> $A"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[("</s>", 1), ("<s>", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
