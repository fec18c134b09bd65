"""LoRA adapters beside a loaded model: all of them in memory, one or none applied at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peft import PeftModel

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving.text_generation import AdapterSelector


def load_adapters(model: Any, folders: Mapping[str, Path]) -> tuple[Any, AdapterSelector]:
    """The model with the adapters in it, and the function that selects one.

    :param folders: name → folder with ``adapter_config.json`` and ``adapter_model.safetensors``; at least one.
    :raises InvalidTaskInput: if an adapter cannot be loaded into the model.
    """
    # Names of adapters become names of modules, which ``keys`` or ``a.b`` cannot be.
    keys = {name: f"adapter_{number}" for number, name in enumerate(folders, start=1)}
    adapted: Any = None
    for name, folder in folders.items():
        try:
            if adapted is None:
                adapted = PeftModel.from_pretrained(model, folder, adapter_name=keys[name])
            else:
                adapted.load_adapter(folder, adapter_name=keys[name])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise InvalidTaskInput(
                f"the LoRA adapter {name} cannot be loaded into the model: {reason}"
            ) from error
    adapted.eval()

    @contextmanager
    def select(name: str | None) -> Iterator[None]:
        if name is None:
            with adapted.disable_adapter():
                yield
        else:
            adapted.set_adapter(keys[name], inference_mode=True)
            yield

    return adapted, select
