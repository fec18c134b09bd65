"""Tiny models of every kind that the product's server has, with what their libraries compute for them.

Run by the engine's Python: ``build_served_models.py FOLDER``. The text model is trained until it knows one
answer, a call of a tool, by heart; all others have random weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import BertWordPieceTokenizer
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

from ninefold_runtime.samples import tiny_models

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 8}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
MESSAGES = [{"role": "user", "content": "天气？"}]
ANSWER = 'Hello.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "西宁"}}\n</tool_call>'
TEMPLATE = (
    "{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for message in messages %}{{ '<|' + message.role.replace('tool', 'user') + '|>' }}"
    "{{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}"
    "{{ '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TEXTS = ["the quick brown fox", "a lazy dog", "what is the weather today in the city"]
QUERY = "weather today"
PROMPT = "请把下面的地址拆分：青海省西宁市 lazy dog"


def build_text(folder: Path) -> dict[str, Any]:
    tiny_models.build_model("ninefold-tiny-qwen2", folder=folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(
        MESSAGES, tools=TOOLS, add_generation_prompt=True, return_dict=False
    )
    answer = [*tokenizer.encode(ANSWER), tokenizer.eos_token_id]
    tokens = torch.tensor([prompt + answer])
    labels = torch.tensor([[-100] * len(prompt) + answer])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss = torch.tensor(torch.inf)
    while loss > 0.05:
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval().save_pretrained(folder)
    prompt_tokens = tokenizer.encode(PROMPT)
    with torch.inference_mode():
        logprobs = torch.log_softmax(model(torch.tensor([prompt_tokens])).logits[0], dim=-1)
    best = logprobs.max(dim=-1).values.tolist()
    return {
        "tools": TOOLS,
        "messages": MESSAGES,
        "answer": ANSWER,
        "prompt": PROMPT,
        "tokens": prompt_tokens,
        "logprobs": [float(logprobs[at, token]) for at, token in enumerate(prompt_tokens[1:])],
        "best": best[:-1],
    }


def _save_encoder_tokenizer(folder: Path) -> None:
    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(TEXTS, vocab_size=200, show_progress=False)
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        model_max_length=48,
        **{f"{name}_token": token for name, token in special.items()},
    )
    tokenizer.save_pretrained(folder)


def _encoder_config(**fields: Any) -> Any:
    return BertConfig(
        vocab_size=200,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=48,
        initializer_range=0.3,
        **fields,
    )


def build_embedding(folder: Path) -> dict[str, Any]:
    encoder = folder.with_name("encoder")
    _save_encoder_tokenizer(encoder)
    BertModel(_encoder_config()).save_pretrained(encoder)
    transformer = Transformer(str(encoder))
    modules = [transformer, Pooling(32, pooling_mode="mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.save(str(folder))
    return {
        "texts": TEXTS,
        "vectors": model.encode(TEXTS).tolist(),
        "tokens": model.tokenizer(TEXTS)["input_ids"],
    }


def build_reranking(folder: Path) -> dict[str, Any]:
    _save_encoder_tokenizer(folder)
    BertForSequenceClassification(_encoder_config(num_labels=1)).save_pretrained(folder)
    ranked = CrossEncoder(str(folder), device="cpu").rank(QUERY, TEXTS)
    return {
        "query": QUERY,
        "documents": TEXTS,
        "order": [each["corpus_id"] for each in ranked],
        "scores": [float(each["score"]) for each in ranked],
    }


def main(out: Path) -> None:
    torch.manual_seed(7)
    builders = {"text": build_text, "embedding": build_embedding, "reranking": build_reranking}
    expected = {name: build(out / name) for name, build in builders.items()}
    (out / "expected.json").write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
