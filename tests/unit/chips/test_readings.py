"""What exporters print becomes figures of cards, by the vendor's map alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.adapters.telemetry.readings import CardReading, MalformedExposition, read
from controlplane.domain.faults import FaultLevel
from controlplane.domain.resources import GIB, MIB
from controlplane.ports import registry
from controlplane.ports.chips import Exporter, Series

FOLDER = Path(__file__).parent / "expositions"
EXPECTED = {
    "nvidia": CardReading(
        card="GPU-1b",
        figures={
            "utilization": 97,
            "memory_used": 80559 * MIB,
            "memory_total": 81559 * MIB,
            "temperature": 63,
            "power": 652.25,
        },
        faults=("79",),
    ),
    "ascend": CardReading(
        card="D1",
        figures={
            "utilization": 88,
            "memory_used": 60000 * MIB,
            "memory_total": 64 * GIB,
            "temperature": 52,
            "power": 310,
            "health": 0,
        },
        faults=("80818C00", "80E18402"),
    ),
    "amd": CardReading(
        card="0",
        figures={
            "utilization": 55,
            "memory_used": GIB,
            "memory_total": 196592 * MIB,
            "temperature": 61,
            "power": 480,
            "health": 1,
        },
    ),
    "cambricon": CardReading(
        card="u-0",
        figures={
            "utilization": 12,
            "memory_used": GIB,
            "memory_total": 48 * GIB,
            "temperature": 39,
            "power": 80,
            "health": 1,
        },
    ),
    "hygon": CardReading(
        card="T6N0",
        figures={
            "utilization": 70.5,
            "memory_used": 2 * GIB,
            "memory_total": 64 * GIB,
            "temperature": 55,
            "power": 210,
        },
    ),
    "metax": CardReading(
        card="GPU-m0",
        figures={
            "utilization": 33,
            "memory_used": GIB,
            "memory_total": 64 * GIB,
            "temperature": 48,
            "power": 125,
        },
    ),
    "gaudi": CardReading(
        card="01P0-HL2080A0-15-TNBS61-20-07-07",
        figures={
            "utilization": 91,
            "memory_used": 768 * MIB,
            "memory_total": 101_994_987_520,
            "temperature": 38,
            "power": 98,
        },
    ),
}


def exporter_of(vendor: str) -> Exporter:
    exporter = registry.chip_plugins()[vendor].profile().exporter
    assert exporter is not None
    return exporter


@pytest.mark.parametrize("vendor", EXPECTED)
def test_figures_come_out_in_the_products_units(vendor: str) -> None:
    text = (FOLDER / f"{vendor}.txt").read_text(encoding="utf-8")
    reading = read(text, exporter_of(vendor))[-1]

    assert reading.card == EXPECTED[vendor].card
    assert dict(reading.figures) == pytest.approx(dict(EXPECTED[vendor].figures))
    assert reading.faults == EXPECTED[vendor].faults


def test_every_verified_map_has_a_sample() -> None:
    mapped = {
        name
        for name, plugin in registry.chip_plugins().items()
        if (exporter := plugin.profile().exporter) and exporter.verified and exporter.series
    }
    assert mapped == set(EXPECTED)


@pytest.mark.parametrize(
    ("vendor", "level"), [("nvidia", FaultLevel.ISOLATE), ("ascend", FaultLevel.ISOLATE)]
)
def test_codes_that_are_read_are_those_of_the_fault_map(vendor: str, level: FaultLevel) -> None:
    faults = registry.chip_plugins()[vendor].profile().faults
    for code in EXPECTED[vendor].faults:
        assert faults.levels[code] is level


def test_a_card_without_a_fault_has_none() -> None:
    text = (FOLDER / "nvidia.txt").read_text(encoding="utf-8")
    assert read(text, exporter_of("nvidia"))[0].faults == ()


def test_a_sum_of_which_a_part_is_missing_is_left_out() -> None:
    exporter = Exporter(
        name="e", card_label="uuid", series={"memory_total": Series(names=("a", "b"))}
    )
    assert read('a{uuid="1"} 5\n', exporter)[0].figures == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
def test_what_is_no_number_is_no_figure(value: str) -> None:
    exporter = Exporter(name="e", card_label="uuid", series={"power": Series(names=("p",))})
    assert read(f'p{{uuid="1"}} {value}\n', exporter) == ()


def test_series_without_the_label_of_a_card_are_passed_over() -> None:
    exporter = Exporter(name="e", card_label="uuid", series={"power": Series(names=("p",))})
    assert read('p{other="1"} 5\nq{uuid="1"} 5\n', exporter) == ()


@pytest.mark.parametrize("text", ["<html></html>\n", 'p{uuid="1" 5\n', 'p{uuid="1"} five\n'])
def test_another_format_is_refused(text: str) -> None:
    exporter = Exporter(name="e", card_label="uuid", series={"power": Series(names=("p",))})
    with pytest.raises(MalformedExposition, match="not the Prometheus text format"):
        read(text, exporter)
