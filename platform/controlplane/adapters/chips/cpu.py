"""The processor itself as a chip: one card stands for a share of the machine's cores."""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.resources import Bytes
from controlplane.ports.chips import CollectiveSettings, Exporter, ExporterSeries, VendorProfile

CPU = Chip(
    name="cpu",
    vendor="cpu",
    kind=ChipKind.CPU,
    title="CPU",
    memory=Bytes(0),
    torch_device="cpu",
)
#: The product's own agent prints them (``ninefold_runtime.agent``), in the product's own units.
EXPORTER = Exporter(
    name="ninefold-agent",
    index_label="card",
    node_label="node",
    series={
        "utilization": ExporterSeries(names=("ninefold_cpu_utilization_percent",)),
        "memory_used": ExporterSeries(names=("ninefold_cpu_memory_used_bytes",)),
        "memory_total": ExporterSeries(names=("ninefold_cpu_memory_total_bytes",)),
        "temperature": ExporterSeries(names=("ninefold_cpu_temperature_celsius",)),
        "clock": ExporterSeries(names=("ninefold_cpu_clock_hertz",)),
    },
)


class CpuChips:
    """Implements ``controlplane.ports.chips.ChipPlugin``."""

    vendor = "cpu"

    def profile(self) -> VendorProfile:
        return VendorProfile(
            vendor=self.vendor,
            title="CPU",
            collectives=CollectiveSettings(library="Gloo", torch_backend="gloo"),
            torch_build="cpu",
            exporter=EXPORTER,
            run_on_hardware=True,
        )

    def chips(self) -> tuple[Chip, ...]:
        return (CPU,)

    def environment(self, chip: Chip, *, cards: tuple[int, ...]) -> Mapping[str, str]:
        """No device to hide; threads follow the cards so that two jobs do not fight for one core."""
        threads = str(max(1, len(cards)))
        return {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "false",
        }
