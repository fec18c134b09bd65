"""Loading of models and tokenizers, the device and dtype of the process, and conversations as token ids.

Safetensors only, no code from the model, no network. The chip's plug-in has already restricted the visible
devices; ``torch.accelerator`` names whatever is left. ``NINEFOLD_DEVICE`` says what kind of device was
allocated, so that no process holds cards and computes on the CPU. Where an answer begins in a conversation
follows from rendering it with and without the answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils.chat_template_utils import jinja2
from transformers.utils.logging import disable_progress_bar

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.task_folders import Message

#: What applying a chat template to messages that it cannot render raises.
TEMPLATE_ERRORS = (jinja2.exceptions.TemplateError, TypeError, ValueError, RecursionError)


def load_tokenizer(folder: Path, *, require_chat_template: bool = True) -> Any:
    """The tokenizer, with a padding token; ``talks`` requires a chat template.

    :raises InvalidTaskInput: if it cannot be loaded, or lacks a required chat template.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise InvalidTaskInput(
            f"the model's tokenizer cannot be loaded: {_error_line(error)}"
        ) from error
    if tokenizer.eos_token_id is None:
        raise InvalidTaskInput("the model's tokenizer has no end-of-sequence token")
    if require_chat_template and tokenizer.chat_template is None:
        raise InvalidTaskInput("the model's tokenizer has no chat template")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(folder: Path, *, precision: str, auto_class: Any = AutoModelForCausalLM) -> Any:
    """The model on its device; a causal language model unless another class is given.

    :raises InvalidTaskInput: if the folder is not one that this engine can load.
    """
    disable_progress_bar()
    try:
        model = auto_class.from_pretrained(
            folder,
            dtype=torch_dtype(precision),
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
        )
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidTaskInput(f"the model cannot be loaded: {_error_line(error)}") from error
    return model.to(current_device())


def context_length(folder: Path) -> int:
    """Positions that the model supports; 2,048 where its ``config.json`` has none."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return int(getattr(config.get_text_config(), "max_position_embeddings", None) or 2048)


def _error_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:300] or type(error).__name__


def current_device() -> Any:
    """The ``torch.device`` that was given; by default the visible accelerator or else the CPU.

    :raises InvalidTaskInput: if an accelerator was given and torch does not find it.
    """
    given = os.environ.get("NINEFOLD_DEVICE", "")
    found = None
    if given != "cpu" and torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator(check_available=True)
    if given not in ("", "cpu") and (found is None or found.type != given):
        raise InvalidTaskInput(
            f"cards of the device {given!r} were given, but torch {torch.__version__} finds "
            f"{found.type if found is not None else 'no accelerator'}; "
            f"choose an engine whose environment brings torch for {given!r}, or check the node's driver"
        )
    return torch.device("cpu") if found is None else found


def torch_dtype(precision: str) -> Any:
    """The ``torch.dtype`` for ``auto | float32 | bfloat16``; ``auto`` is bfloat16 on accelerators alone.

    :raises InvalidTaskInput: as ``device`` does, whatever the precision: before a model is loaded for nothing.
    """
    on_processor = current_device().type == "cpu"
    if precision == "bfloat16" or (precision == "auto" and not on_processor):
        return torch.bfloat16
    return torch.float32


def seed_everything(seed: int) -> None:
    """Every generator of torch, on the processor and on the accelerator."""
    torch.manual_seed(seed)


def prompt_ids(
    tokenizer: Any,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[int]:
    """Token ids up to where the assistant begins to answer; ``tools`` are definitions of functions.

    :raises InvalidTaskInput: if the chat template refuses the messages.
    """
    return _apply_chat_template(tokenizer, messages, add_generation_prompt=True, tools=tools)


def conversation_ids(tokenizer: Any, messages: Sequence[Message]) -> tuple[list[int], int]:
    """Token ids of the whole conversation, and the index at which the last answer begins."""
    whole = _apply_chat_template(tokenizer, messages, add_generation_prompt=False)
    prompt = prompt_ids(tokenizer, messages[:-1])
    begin = 0
    while begin < min(len(prompt), len(whole)) and prompt[begin] == whole[begin]:
        begin += 1
    return whole, begin


def _apply_chat_template(
    tokenizer: Any,
    messages: Sequence[Mapping[str, Any]],
    *,
    add_generation_prompt: bool,
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[int]:
    try:
        ids = tokenizer.apply_chat_template(
            list(messages),
            tools=list(tools) or None,
            add_generation_prompt=add_generation_prompt,
            return_dict=False,
        )
    except TEMPLATE_ERRORS as error:
        raise InvalidTaskInput(
            f"the model's chat template refuses the messages: {error}"
        ) from error
    return [int(token) for token in ids]
