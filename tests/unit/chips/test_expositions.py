"""What exporters print becomes figures of cards, by the vendor's map alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from controlplane.domain.common.resources import GIB, MIB
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric
from controlplane.ports import adapter_registry
from controlplane.ports.chips import Exporter, ExporterSeries
from controlplane.ports.expositions import (
    ExpositionReader,
    MalformedExposition,
    exposition_reader_of_vendor,
)

FOLDER = Path(__file__).parent / "expositions"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def reading_of(
    vendor: str,
    *,
    index: int,
    serial: str,
    node: str,
    values: dict[str, float],
    faults: tuple[str, ...] | None = None,
) -> CardMetricsReading:
    return CardMetricsReading(
        node=node,
        index=index,
        at=AT,
        metrics={Metric(name): value for name, value in values.items()},
        serial=serial,
        faults=faults,
        vendor=vendor,
    )


EXPECTED = {
    "nvidia": reading_of(
        "nvidia",
        index=1,
        serial="GPU-1b",
        node="n1",
        values={
            "utilization": 97,
            "memory_used": 80559 * MIB,
            "memory_total": 81559 * MIB,
            "temperature": 63,
            "power": 652.25,
        },
        faults=("79",),
    ),
    "ascend": reading_of(
        "ascend",
        index=1,
        serial="D1",
        node="n9",
        values={
            "utilization": 88,
            "memory_used": 60000 * MIB,
            "memory_total": 64 * GIB,
            "temperature": 52,
            "power": 310,
            "health": 0,
        },
        faults=("80818C00", "80E18402"),
    ),
    "amd": reading_of(
        "amd",
        index=0,
        serial="A1",
        node="n9",
        values={
            "utilization": 55,
            "memory_used": GIB,
            "memory_total": 196592 * MIB,
            "temperature": 61,
            "power": 480,
            "health": 1,
        },
    ),
    "cambricon": reading_of(
        "cambricon",
        index=0,
        serial="u-0",
        node="n1",
        values={
            "utilization": 12,
            "memory_used": GIB,
            "memory_total": 48 * GIB,
            "temperature": 39,
            "power": 80,
            "health": 1,
        },
        faults=(),
    ),
    "hygon": reading_of(
        "hygon",
        index=0,
        serial="T6N0",
        node="n1",
        values={
            "utilization": 70.5,
            "memory_used": 2 * GIB,
            "memory_total": 64 * GIB,
            "temperature": 55,
            "power": 210,
        },
    ),
    "metax": reading_of(
        "metax",
        index=0,
        serial="GPU-m0",
        node="n1",
        values={
            "utilization": 33,
            "memory_used": GIB,
            "memory_total": 64 * GIB,
            "temperature": 48,
            "power": 125,
        },
    ),
    "cpu": reading_of(
        "cpu",
        index=0,
        serial="",
        node="n1",
        values={
            "utilization": 37.5,
            "memory_used": GIB,
            "memory_total": 8 * GIB,
            "temperature": 51,
            "clock": 2.9e9,
        },
    ),
    "gaudi": reading_of(
        "gaudi",
        index=0,
        serial="01P0-HL2080A0-15-TNBS61-20-07-07",
        node="n9",
        values={
            "utilization": 91,
            "memory_used": 768 * MIB,
            "memory_total": 101_994_987_520,
            "temperature": 38,
            "power": 98,
        },
    ),
}


def exporter_of(vendor: str) -> Exporter:
    exporter = adapter_registry.chip_plugins()[vendor].profile().exporter
    assert exporter is not None
    return exporter


@pytest.mark.parametrize("vendor", EXPECTED)
def test_figures_come_out_in_the_products_units(vendor: str) -> None:
    text = (FOLDER / f"{vendor}.txt").read_text(encoding="utf-8")
    reading = reader_of(vendor).read(text, at=AT, node="n9").readings[-1]

    expected = EXPECTED[vendor]
    assert dict(reading.metrics) == pytest.approx(dict(expected.metrics))
    assert (reading.node, reading.index, reading.serial) == (
        expected.node,
        expected.index,
        expected.serial,
    )
    assert (reading.faults, reading.vendor, reading.at) == (expected.faults, vendor, AT)


def test_every_verified_map_has_a_sample() -> None:
    mapped = {
        name
        for name, plugin in adapter_registry.chip_plugins().items()
        if (exporter := plugin.profile().exporter) and exporter.verified and exporter.series
    }
    assert mapped == set(EXPECTED)


@pytest.mark.parametrize(
    ("vendor", "level"), [("nvidia", FaultLevel.ISOLATE), ("ascend", FaultLevel.ISOLATE)]
)
def test_codes_that_are_read_are_those_of_the_fault_map(vendor: str, level: FaultLevel) -> None:
    faults = adapter_registry.chip_plugins()[vendor].profile().faults
    for code in EXPECTED[vendor].faults or ():
        assert faults.levels[code] is level


def test_a_card_without_a_fault_has_none_which_is_not_saying_nothing_of_faults() -> None:
    text = (FOLDER / "nvidia.txt").read_text(encoding="utf-8")
    assert reader_of("nvidia").read(text, at=AT).readings[0].faults == ()
    assert one('p{uuid="1"} 5\n', power=ExporterSeries(names=("p",))).faults is None


def test_a_sum_of_which_a_part_is_missing_is_left_out() -> None:
    assert one('a{uuid="1"} 5\n', memory_total=ExporterSeries(names=("a", "b"))).metrics == {}


def test_a_number_that_stands_for_not_known_is_left_out() -> None:
    health = ExporterSeries(names=("h",), absent=(-1.0,))
    assert one('h{uuid="1"} -1\n', health=health).metrics == {}
    assert one('h{uuid="1"} 0\n', health=health).metrics == {Metric.HEALTH: 0}


def test_series_of_one_name_are_told_apart_by_their_labels() -> None:
    text = 'm{uuid="1",type="vram"} 5\nm{uuid="1",type="xtt"} 9\n'
    series = ExporterSeries(names=("m",), labels={"type": "vram"})
    assert one(text, memory_used=series).metrics == {Metric.MEMORY_USED: 5}


def test_series_without_the_label_of_a_card_are_passed_over() -> None:
    reader = ExpositionReader(exporter(power=ExporterSeries(names=("p",))), vendor="e")
    assert reader.read('p{other="1"} 5\nq{uuid="1"} 5\n', at=AT, node="n").readings == ()


def test_slices_are_no_whole_cards() -> None:
    text = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0a",GPU_I_ID="3",Hostname="n1"} 5\n'
    assert reader_of("nvidia").read(text, at=AT).readings == ()


def test_what_says_no_node_is_refused_where_nobody_else_says_it() -> None:
    reader = ExpositionReader(exporter(power=ExporterSeries(names=("p",))), vendor="e")
    batch = reader.read('p{uuid="1"} 5\n', at=AT)
    assert batch.readings == ()
    assert [(refused.what, refused.reason) for refused in batch.refused] == [
        ("1", "the metrics do not name the node of the card")
    ]


def test_more_cards_than_can_be_are_refused_and_counted() -> None:
    reader = ExpositionReader(exporter(power=ExporterSeries(names=("p",))), vendor="e")
    text = "".join(f'p{{uuid="{number}"}} 5\n' for number in range(10))
    batch = reader.read(text, at=AT, node="n", most=4)
    assert len(batch.readings) == 4
    assert [refused.count for refused in batch.refused] == [6]


@pytest.mark.parametrize(
    "text",
    [
        "<html></html>\n",
        'p{uuid="1" 5\n',
        'p{uuid="1"} five\n',
        'p{uuid="1"} 1_0\n',
        'p{uuid="1"}\n',
        "p{uuid=1} 5\n",
        'p{uuid="' + "x" * 9000 + '"} 5\n',
        'q{uuid="1} 5\n',
    ],
)
def test_another_format_is_refused(text: str) -> None:
    reader = ExpositionReader(exporter(power=ExporterSeries(names=("p",))), vendor="e")
    with pytest.raises(MalformedExposition, match="not in the Prometheus text format"):
        reader.read(text, at=AT, node="n")


def reader_of(vendor: str) -> ExpositionReader:
    return exposition_reader_of_vendor(vendor)


def exporter(**series: ExporterSeries) -> Exporter:
    return Exporter(name="e", card_label="uuid", series=series)


def one(text: str, **series: ExporterSeries) -> CardMetricsReading:
    (reading,) = (
        ExpositionReader(exporter(**series), vendor="e").read(text, at=AT, node="n").readings
    )
    return reading
