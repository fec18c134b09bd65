"""A source of figures in memory: what it is given it tells."""

from __future__ import annotations

from controlplane.ports.outbound import Outbound
from controlplane.ports.telemetry import TelemetryBatch, TelemetryFailed


class MemoryTelemetry:
    """Implements ``controlplane.ports.telemetry.Telemetry``; ``trouble`` makes it fail."""

    def __init__(
        self,
        *,
        outbound: Outbound | None = None,
        token: str = "",
        batch: TelemetryBatch | None = None,
        trouble: str = "",
    ) -> None:
        self.token = token
        self.batch = batch or TelemetryBatch()
        self.trouble = trouble

    def read(self) -> TelemetryBatch:
        if self.trouble:
            raise TelemetryFailed(self.trouble)
        return self.batch
