"""A tiny Llama that adds two numbers, right about half of the time: made and trained here, nothing is downloaded.

`python tiny.py FOLDER` writes model and tokenizer as transformers saves them, in well under a minute.
"""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SUMS = [(a, b) for a in range(1, 13) for b in range(1, 13)]
STEPS = 220
CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def text(a: int, b: int) -> str:
    """A question with its answer, as the tests' tasks put it."""
    return f"Q: {a}+{b}\nA: {a + b}\n"


def tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(["<pad>", "<s>", "</s>", *letters])}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    out = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    out.chat_template = CHAT
    out.model_max_length = 256
    return out


def make(folder: Path, steps: int = STEPS, seed: int = 0) -> Path:
    """Train and save; returns the folder."""
    torch.manual_seed(seed)
    words = tokenizer()
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    draw = random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    encoded = [words(text(a, b) + words.eos_token)["input_ids"] for a, b in SUMS]
    longest = max(map(len, encoded))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in encoded])
    labels = torch.where(ids == 0, -100, ids)
    for _ in range(steps):
        rows = torch.tensor(draw.sample(range(len(SUMS)), 48))
        loss = model(input_ids=ids[rows], attention_mask=(ids[rows] != 0).long(), labels=labels[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    model.generation_config.do_sample = True  # transformers' server takes a temperature, but samples only if told here
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def documents(n: int, every: int = 5) -> list[dict[str, object]]:
    """n of the sums, with wrong choices beside each; `kind` is what some of them share."""
    chosen = list(itertools.islice(itertools.cycle(SUMS[::every]), n))
    return [
        {
            "question": f"{a}+{b}",
            "answer": str(a + b),
            "choices": [str(a + b - 1), str(a + b), str(a + b + 3)],
            "label": 1,
            "kind": f"k{a}",
            "page": text(a, b),
        }
        for a, b in chosen
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)  # the matrices are too small to be shared
    make(Path(sys.argv[1]))
