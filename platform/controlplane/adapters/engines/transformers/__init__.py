"""The engine ``transformers``: Hugging Face's libraries on torch, by way of ``ninefold_runtime``.

It trains, evaluates and serves causal language models on whatever device torch finds, and runs scripts
in the same environment. This adapter renders; it never imports torch.
"""

from controlplane.adapters.engines.transformers.engine import TransformersEngine

__all__ = ["TransformersEngine"]
