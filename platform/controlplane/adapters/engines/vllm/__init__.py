"""The engine ``vllm``: vLLM's server in its own image."""

from controlplane.adapters.engines.vllm.engine import VllmEngine

__all__ = ["VllmEngine"]
