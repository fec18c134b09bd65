"""Writes the rows that show what activations look like.

``calibration_rows.py MODEL SOURCE TARGET ROWS LENGTH SEED``: ``SOURCE`` has one conversation a line, under
``messages``; ``TARGET`` becomes a JSON list of texts in the model's own form of a chat, each at most ``LENGTH``
tokens long. The same seed takes the same rows.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any


def sample_lines(lines: list[str], *, rows: int, seed: int) -> list[str]:
    """So many of the lines, in an order that the seed decides; all of them if there are fewer."""
    return sorted(lines, key=lambda line: hashlib.sha256(f"{seed} {line}".encode()).digest())[:rows]


def render_conversation_text(messages: list[dict[str, Any]], tokenizer: Any) -> str:
    """The conversation as the model sees it; one part after the other where its tokenizer has no form for it."""
    if tokenizer.chat_template:
        return str(tokenizer.apply_chat_template(messages, tokenize=False))
    return "\n".join(str(message["content"]) for message in messages)


def main() -> int:
    from transformers import AutoTokenizer

    model, source, target, rows, length, seed = sys.argv[1:]
    lines = [line for line in Path(source).read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines:
        print(f"{source} has no rows to calibrate with", file=sys.stderr)
        return 1
    tokenizer = AutoTokenizer.from_pretrained(model)
    texts = []
    for line in sample_lines(lines, rows=int(rows), seed=int(seed)):
        tokens = tokenizer(
            render_conversation_text(json.loads(line)["messages"], tokenizer)
        ).input_ids[: int(length)]
        texts.append(tokenizer.decode(tokens))
    Path(target).write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    print(f"{len(texts)} rows to calibrate with are in {target}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
