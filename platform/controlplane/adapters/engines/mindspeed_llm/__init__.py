"""The engine ``mindspeed_llm``: Ascend's MindSpeed-LLM on Megatron (https://gitcode.com/Ascend/MindSpeed-LLM)."""

from controlplane.adapters.engines.mindspeed_llm.engine import MindSpeedLlmEngine

__all__ = ["MindSpeedLlmEngine"]
