"""What the agent prints of a vendor's cards is what its profile reads, without an exporter in between."""

from __future__ import annotations

from datetime import UTC, datetime

from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric
from controlplane.ports.expositions import exposition_reader_of_vendor
from ninefold_runtime.agent.card_samples import format_exposition
from ninefold_runtime.agent.readers import vendor_tools
from ninefold_runtime.agent.readers.cpu import CpuReader
from tests.unit.runtime.agent.test_readers import A3, NVIDIA

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
MIB = 2**20


def read(vendor: str, text: str) -> dict[int, CardMetricsReading]:
    batch = exposition_reader_of_vendor(vendor).read(text, at=AT, node="n7", most=64)
    assert not batch.refused
    assert {reading.node for reading in batch.readings} == {"n7"}
    return {reading.index: reading for reading in batch.readings if reading.index is not None}


def test_cards_of_nvidia() -> None:
    samples, _ = vendor_tools.parse_nvidia_smi(NVIDIA, node="n7")
    cards = read("nvidia", format_exposition(samples))
    assert set(cards) == {0, 1}
    assert cards[0].serial == "GPU-1b9e2d3c-0f1a-4d53-8a7e-5e1f6f0d9a11"
    assert cards[0].metrics == {
        Metric.UTILIZATION: 97,
        Metric.MEMORY_USED: 70213 * MIB,
        Metric.MEMORY_TOTAL: 81088 * MIB,
        Metric.TEMPERATURE: 61,
        Metric.MEMORY_TEMPERATURE: 74,
        Metric.POWER: 643.17,
        Metric.CLOCK: 1.98e9,
        Metric.ECC_CORRECTED: 3,
        Metric.ECC_UNCORRECTED: 0,
    }
    # Without the kernel's log nothing is known of faults, which is not the same as none.
    assert cards[0].faults is None


def test_cards_of_ascend() -> None:
    cards = read("ascend", format_exposition(vendor_tools.parse_npu_smi(A3)))
    assert cards[2].metrics == {
        Metric.UTILIZATION: 41,
        Metric.MEMORY_USED: 3125 * MIB,
        Metric.MEMORY_TOTAL: 65536 * MIB,
        Metric.TEMPERATURE: 37,
        Metric.POWER: 168.1,
        Metric.HEALTH: 1,
    }
    assert cards[3].metrics[Metric.HEALTH] == 0


def test_the_processor() -> None:
    cards = read("cpu", format_exposition(CpuReader(node="n7", cards=2).read().samples))
    assert set(cards) == {0, 1}
    assert cards[0].metrics[Metric.MEMORY_TOTAL] > cards[0].metrics[Metric.MEMORY_USED] > 0
