"""The engine ``sglang``: SGLang's server in its own images."""

from controlplane.adapters.engines.sglang.engine import SglangEngine

__all__ = ["SglangEngine"]
