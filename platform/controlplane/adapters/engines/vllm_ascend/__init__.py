"""The engine ``vllm_ascend``: vLLM with Ascend's plug-in, in its own images."""

from controlplane.adapters.engines.vllm_ascend.engine import VllmAscendEngine

__all__ = ["VllmAscendEngine"]
