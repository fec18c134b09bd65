"""The engine ``llm_compressor``: quantizes causal language models to compressed-tensors, and measures the loss.

It runs by way of ``ninefold_runtime`` in the environment of the ``transformers`` engine. This adapter renders; it
never imports torch.
"""

from controlplane.adapters.engines.llm_compressor.engine import LlmCompressorEngine

__all__ = ["LlmCompressorEngine"]
