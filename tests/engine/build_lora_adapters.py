"""LoRA adapters of a model, and what transformers computes for the model with each of them merged into it.

Run by the engine's Python: ``build_lora_adapters.py MODEL OUT``. Matrices are random, none is zero.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPT = "青海省西宁市"
TOKENS = 12
#: Name → rank and whether it is of DoRA.
ADAPTERS = {"formal": (4, False), "casual": (8, True)}


def _answer(model: Any, tokenizer: Any) -> dict[str, Any]:
    """The likeliest answer to the prompt, and the logarithm of the probability of its first token."""
    prompt = torch.tensor([tokenizer.encode(PROMPT)])
    with torch.inference_mode():
        logits = model(input_ids=prompt).logits[0, -1].float()
        tokens = model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=TOKENS,
            do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )[0, prompt.shape[1] :]
    text = tokenizer.decode(tokens, skip_special_tokens=True)
    return {"text": text, "logprob": float(torch.log_softmax(logits, dim=-1).max())}


def main(source: Path, out: Path) -> None:
    torch.manual_seed(11)
    tokenizer = AutoTokenizer.from_pretrained(source)
    answers = {"": _answer(AutoModelForCausalLM.from_pretrained(source).eval(), tokenizer)}
    for name, (rank, is_dora) in ADAPTERS.items():
        config = LoraConfig(
            r=rank,
            lora_alpha=4 * rank,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
            init_lora_weights=False,
            use_dora=is_dora,
        )
        adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(source), config).eval()
        adapted.save_pretrained(out / name)
        answers[name] = _answer(adapted.merge_and_unload(), tokenizer)
    expected = {"prompt": PROMPT, "tokens": TOKENS, "answers": answers}
    (out / "expected.json").write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
