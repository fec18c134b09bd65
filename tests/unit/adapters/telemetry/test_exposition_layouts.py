"""A text whose form is known says the same as one that is read line by line, or is left to that."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.telemetry.metric_batches import MetricBatch
from controlplane.ports.chips import Exporter, ExporterSeries
from controlplane.ports.expositions import ExpositionReader, MalformedExposition
from tests.properties import examples
from tests.unit.adapters.telemetry.test_expositions import lines

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
EXPORTER = Exporter(
    name="e",
    card_label="uuid",
    index_label="gpu",
    node_label="host",
    slice_label="slice",
    series={
        "power": ExporterSeries(names=("p",), scale=0.001, absent=(-1.0,)),
        "temperature": ExporterSeries(names=("t",)),
        "memory_total": ExporterSeries(names=("free", "used"), scale=1024),
        "clock": ExporterSeries(names=("c",), labels={"kind": "sm"}),
        "fault": ExporterSeries(names=("x1", "x2")),
    },
)
ONE = 'gpu="0",uuid="A",host="n1"'
TWO = 'gpu="1",uuid="B",host="n1"'


def text(*, power: str = "500", last: str = "") -> str:
    return (
        "# HELP p power {in mW}\n"
        f"p{{{ONE}}} {power}\np{{{TWO}}} 7\n"
        f"free{{{ONE}}} 1\nused{{{ONE}}} 2\nused{{{TWO}}} 3\n"
        f'c{{kind="sm",{ONE}}} 4\nc{{kind="memory",{ONE}}} 5\n'
        f'p{{slice="1",{ONE}}} 9\n'
        f"x1{{{ONE}}} 0\nx2{{{ONE}}} 48\n"
        'other_total{a="b"} 1\nup 1\n'
    ) + last


def read(reader: ExpositionReader, given: str) -> object:
    try:
        return reader.read(given, at=AT).readings
    except MalformedExposition:
        return "malformed"


def batch_of(before: str, after: str) -> MetricBatch | None:
    form = ExpositionReader(EXPORTER, vendor="e").layout_of(before)
    assert form is not None
    return form.parse_batch(after, at=AT)


numbers = st.one_of(
    st.sampled_from(["0", "-1", "1", "48", "1e3", "1e308", "0.25", "12 1700000000000", "+5"]),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1_0", "", "x", "5 x", "5 6 7", "} 5", "0x1"]),
)


@settings(max_examples=examples(300))
@given(st.lists(numbers, min_size=11, max_size=11))
def test_whatever_the_numbers_are_it_says_the_same(values: list[str]) -> None:
    reader = ExpositionReader(EXPORTER, vendor="e")
    form = reader.layout_of(text())
    assert form is not None
    filled = iter(values)
    changed = "\n".join(
        line if line.startswith(("#", "other")) else f"{line.rpartition(' ')[0]} {next(filled)}"
        for line in text().splitlines()
    )

    batch = form.parse_batch(changed + "\n", at=AT)

    if batch is not None:
        assert batch.readings() == read(reader, changed + "\n")


@settings(max_examples=examples(300))
@given(st.lists(lines(), max_size=8), st.lists(lines(), max_size=8), st.data())
def test_whatever_the_texts_are_it_says_the_same_or_nothing(
    first: list[str], second: list[str], data: st.DataObject
) -> None:
    exporter = Exporter(
        name="e",
        card_label="uuid",
        series={"power": ExporterSeries(names=("p",)), "temperature": ExporterSeries(names=("t",))},
    )
    reader = ExpositionReader(exporter, vendor="e")
    before = "\n".join(first) + "\n"
    if read(reader, before) == "malformed":
        return
    form = reader.layout_of(before, node="n")
    if form is None:
        return
    mixed = [data.draw(st.sampled_from(pair)) for pair in zip(first, second, strict=False)]
    for lines_after in (first, second, mixed + first[len(mixed) :]):
        after = "\n".join(lines_after) + "\n"
        batch = form.parse_batch(after, at=AT)
        if batch is not None:
            assert batch.readings() == reader.read(after, at=AT, node="n").readings


def test_what_is_usual_becomes_a_sheet() -> None:
    batch = batch_of(text(), text(power="250.5"))
    assert batch is not None
    one, two = batch.readings()
    assert (one.node, one.index, one.serial, one.faults) == ("n1", 0, "A", ("48",))
    assert {metric.value: value for metric, value in one.metrics.items()} == {
        "power": 0.2505,
        "memory_total": 3 * 1024,
        "clock": 4,
    }
    assert (two.faults, dict(two.metrics)) == (None, {"power": 0.007})
    unknown = batch_of(text(), text(power="-1"))
    assert unknown is not None
    assert "power" not in unknown.reading(0).metrics


@pytest.mark.parametrize(
    "changed",
    [
        text(last="up 2\n"),
        text().replace('uuid="B"', 'uuid="C"'),
        text().replace("# HELP", "HELP"),
        text().replace("other_total", "another_total"),
        # A line that is a number alone is none of the card whose line stood there.
        text().replace(f"p{{{TWO}}} 7", "7"),
        text().replace(f"p{{{TWO}}} 7", f"t{{{TWO}}} 7"),
        text(power="NaN"),
        text(power="+Inf"),
        text(power="5_0"),
        text().rstrip("\n"),
        "",
    ],
    ids=range(11),
)
def test_what_is_not_usual_is_left_to_be_read_line_by_line(changed: str) -> None:
    assert batch_of(text(), changed) is None


@pytest.mark.parametrize(
    "unusual",
    [
        "",
        "up 1\n",
        f"\np{{{ONE}}} 1\n",
        f" p{{{ONE}}} 1\n",
        f"p {{{ONE}}} 1\n",
        'p{gpu="0"} 1\n',
        f"p{{{ONE}}} 1",
        'p{uuid="a\x07b",host="n1"} 1\n',
    ],
    ids=range(8),
)
def test_forms_that_are_not_worth_it_are_not_learnt(unusual: str) -> None:
    assert ExpositionReader(EXPORTER, vendor="e").layout_of(unusual) is None
