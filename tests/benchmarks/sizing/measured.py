"""Run in the engine's Python: allocated tensor bytes of tiny models at the worst moment, as JSON.

Every storage that an operation makes is counted while it lives, whatever keeps it; memory of the process plays
no part. With ``"shape"`` a question is of a real size: its tensors are fake and nothing is allocated.
"""

from __future__ import annotations

import contextlib
import json
import sys
import weakref
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from transformers import CONFIG_MAPPING, AutoModelForCausalLM


class Peak(TorchDispatchMode):  # type: ignore[misc]  # torch is not there beside the control plane
    """The most bytes of storages that lived at once."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._now = 0
        self._live: dict[int, tuple[Any, int]] = {}

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._live:

            def gone(_: Any, key: int = key) -> None:
                self._now -= self._live.pop(key)[1]

            self._live[key] = (weakref.ref(storage, gone), storage.nbytes())
            self._now += storage.nbytes()
            self.bytes = max(self.bytes, self._now)
        return tensor

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        results = operation(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self.add, results)
        return results


def build(request: dict[str, Any]) -> Any:
    config = CONFIG_MAPPING[request["family"]](**request["config"])
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(
        config,
        attn_implementation=request.get("attention", "sdpa"),
        dtype=getattr(torch, request.get("dtype", "float32")),
    )


def train(request: dict[str, Any]) -> dict[str, Any]:
    """Two steps: only in the second the optimizer has its moments."""
    model = build(request)
    model.train()
    model.config.use_cache = False
    if request.get("recompute"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if request.get("rank"):
        lora = LoraConfig(r=request["rank"], target_modules="all-linear", task_type="CAUSAL_LM")
        model = get_peft_model(model, lora)
        model.enable_input_require_grads()
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=not request.get("fake"), foreach=False)
    peak = Peak()
    for each in [*model.parameters(), *model.buffers()]:
        peak.add(each)
    rows = torch.randint(0, model.config.vocab_size, (request["batch"], request["length"]))
    with peak:
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=request.get("autocast", False)):
                loss = model(input_ids=rows, labels=rows).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            del loss
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "weights": sum(each.numel() * each.element_size() for each in model.parameters()),
        "total": peak.bytes,
        "config": _config(model),
    }


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """A whole prompt, and then a few tokens one by one."""
    model = build(request)
    model.eval()
    peak = Peak()
    for each in [*model.parameters(), *model.buffers()]:
        peak.add(each)
    written = request.get("written", 4)
    rows = torch.randint(
        3, model.config.vocab_size, (request["batch"], request["length"] - written)
    )
    with torch.no_grad(), peak:
        output = model(input_ids=rows, use_cache=True, logits_to_keep=1)
        cache = output.past_key_values
        for _ in range(written):
            chosen = output.logits[:, -1:].argmax(-1)
            output = model(
                input_ids=chosen, past_key_values=cache, use_cache=True, logits_to_keep=1
            )
    storages = {
        tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes()
        for layer in cache.layers
        for tensor in (layer.keys, layer.values)
    }
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "weights": sum(each.numel() * each.element_size() for each in model.parameters()),
        "cache": sum(storages.values()),
        "total": peak.bytes,
        "config": _config(model),
    }


def count(request: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a real shape, of which nothing is allocated."""
    with torch.device("meta"):
        model = build(request)
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "config": _config(model),
    }


def _config(model: Any) -> dict[str, Any]:
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    written = json.loads(json.dumps(inner.config.to_dict(), default=str))
    return {**written, "architectures": [type(inner).__name__]}


def main() -> None:
    """Questions from standard input, answers to standard output, one JSON object a line."""
    does = {"train": train, "serve": serve, "count": count}
    for line in sys.stdin:
        request = json.loads(line)
        with FakeTensorMode() if request.get("fake") else contextlib.nullcontext():
            answer = does[request["does"]](request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
