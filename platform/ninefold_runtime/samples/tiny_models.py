"""Small models of real architectures that a laptop can train in minutes.

``ninefold-tiny-qwen2`` and ``ninefold-tiny-llama`` have random weights from a fixed seed and know nothing;
they are there to be taught, for example to split addresses into parts (``data/addresses.jsonl``). The tokenizer is
trained on the spot: byte-level BPE, in which every known Chinese character is one token, since the task is
to copy characters, and so is each label of an address. What it does not know it spells in bytes, so
every text survives a round trip.

Input and output embeddings are tied: a model that attends to a character can then repeat it without ever
having learnt that character, which is what lets a few thousand rows suffice.

Run ``python -m ninefold_runtime tiny-model NAME --out FOLDER``; building twice gives the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from ninefold_runtime.exit_codes import InvalidTaskInput

NAMES = ("ninefold-tiny-qwen2", "ninefold-tiny-llama")
CONTEXT_LENGTH = 512
LABEL_TOKENS = ("_1", "_3A", "_4B", "_5A-1", "_UNK")

_SEED = 20_260
_PAD, _SYSTEM, _USER, _ASSISTANT, _END = (
    "<|endoftext|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
)
_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
_ENGLISH = (
    "A fine-tuned model answers as its examples do. Upload a dataset, choose a model and a card, and "
    "watch the loss fall; when the job has succeeded, evaluate the new version and deploy it. "
    "What is the address of the customer? Please send the parcel to the door and call on arrival. "
    "The quick brown fox jumps over the lazy dog. You are a helpful assistant. Hello, how are you today?"
)
_CHINESE = (
    "你好，请问有什么可以帮您？请把下面的地址拆分成省、市、区、街道、详细地址和备注。谢谢！"
    "数据集、模型、任务、训练、评估、部署、集群、显卡、算力、队列、配额、监控、告警、日志。"
    "我们您他她它这那是不的了在有和与或者就也都要会能没对从到为以及上下左右前后里外大小多少一二三四五六七八九十百千万"
)


def build_model(name: str, *, folder: Path) -> None:
    """Write the model into the folder.

    :raises InvalidTaskInput: if the name is not one of ``NAMES``.
    """
    if name not in NAMES:
        raise InvalidTaskInput(f"there is no tiny model {name!r}; there are {', '.join(NAMES)}")
    # Training the tokenizer in parallel would make the order of equal merges a matter of luck.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = _train_tokenizer(name)
    model = _create_model(name, tokenizer)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)


def _create_model(name: str, tokenizer: Any) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    config_of, model_of = {
        "ninefold-tiny-qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "ninefold-tiny-llama": (LlamaConfig, LlamaForCausalLM),
    }[name]
    config = config_of(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(_SEED)
    return model_of(config)


def _train_tokenizer(name: str) -> Any:
    """The tokenizer in the form that the architecture's own loader reads."""
    from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

    vocabulary, merges = _byte_pairs()
    settings = {
        "unk_token": _PAD,
        "eos_token": _END,
        "pad_token": _PAD,
        "padding_side": "right",
        "model_max_length": CONTEXT_LENGTH,
        "clean_up_tokenization_spaces": False,
        "chat_template": _CHAT_TEMPLATE,
        "additional_special_tokens": [_SYSTEM, _USER, _ASSISTANT],
    }
    tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=merges, **settings)
    tokenizer.add_tokens(_label_tokens())
    if name == "ninefold-tiny-qwen2":
        return tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **settings)


def _byte_pairs() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges, trained so that each known Chinese character is one token.

    Characters are shown to the trainer one by one, hence no merge reaches across two of them: the lead
    and continuation bytes of UTF-8 are distinct, so this holds inside a run of Chinese as well.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = [_PAD, _SYSTEM, _USER, _ASSISTANT, _END, *LABEL_TOKENS]
    characters = sorted(
        {character for text in _vocabulary_texts() for character in text if ord(character) > 127}
    )
    trainer = trainers.BpeTrainer(
        # Training ends by itself, when no pair is left that occurs twice.
        vocab_size=1_000_000,
        min_frequency=2,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pieces.train_from_iterator([_ENGLISH, *characters, *characters], trainer=trainer)
    trained = json.loads(pieces.to_str())["model"]
    return trained["vocab"], [(left, right) for left, right in trained["merges"]]


def _label_tokens() -> list[Any]:
    from tokenizers import AddedToken

    return [AddedToken(label, normalized=False) for label in LABEL_TOKENS]


def _vocabulary_texts() -> Iterator[str]:
    """Everything whose characters the vocabulary holds."""
    yield _CHINESE
    yield "，。！？、；：“”‘’（）《》—…·"
    sample = files("ninefold_runtime.samples") / "data" / "addresses.jsonl"
    for line in sample.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["instruction"]
        yield row["output"]
