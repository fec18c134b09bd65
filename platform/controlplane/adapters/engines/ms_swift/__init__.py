"""The engine ``ms_swift``: ModelScope's SWIFT, in its own image (https://github.com/modelscope/ms-swift)."""

from controlplane.adapters.engines.ms_swift.engine import MsSwiftEngine

__all__ = ["MsSwiftEngine"]
