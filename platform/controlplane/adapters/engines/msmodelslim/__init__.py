"""The engine ``msmodelslim``: quantizes models on Ascend for servers on Ascend."""

from controlplane.adapters.engines.msmodelslim.engine import MsModelSlimEngine

__all__ = ["MsModelSlimEngine"]
