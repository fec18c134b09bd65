"""The engine ``llamafactory``: LLaMA-Factory, in its own image (https://github.com/hiyouga/LLaMA-Factory)."""

from controlplane.adapters.engines.llamafactory.engine import LlamaFactoryEngine

__all__ = ["LlamaFactoryEngine"]
