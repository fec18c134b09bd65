"""The engine ``mindie``: Huawei's own server, on Ascend only."""

from controlplane.adapters.engines.mindie.engine import MindieEngine

__all__ = ["MindieEngine"]
