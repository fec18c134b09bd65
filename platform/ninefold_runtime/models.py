"""Loading a model and its tokenizer: safetensors only, no code from the model, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from ninefold_runtime.devices import device, dtype
from ninefold_runtime.exits import BadInput


def load_tokenizer(folder: Path, *, talks: bool = True) -> Any:
    """The tokenizer, with a padding token; ``talks`` asks for a chat template.

    :raises BadInput: if it cannot be loaded, or has no chat template where one is asked for.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"the model's tokenizer cannot be loaded: {_line(error)}") from error
    if tokenizer.eos_token_id is None:
        raise BadInput("the model's tokenizer has no end-of-sequence token")
    if talks and tokenizer.chat_template is None:
        raise BadInput("the model's tokenizer has no chat template")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(folder: Path, *, precision: str) -> Any:
    """The causal language model on its device.

    :raises BadInput: if the folder is not one that this engine can load.
    """
    disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype(precision),
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
        )
    except (OSError, ValueError, KeyError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BadInput(f"the model cannot be loaded: {_line(error)}") from error
    return model.to(device())


def context_length(folder: Path) -> int:
    """Positions that the model supports; 2,048 where its ``config.json`` does not say."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return int(getattr(config.get_text_config(), "max_position_embeddings", None) or 2048)


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:300] or type(error).__name__
