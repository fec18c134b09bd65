"""Our readers of texts and the library's agree on what a text says, whatever stands in it."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from controlplane.ports.chips import Exporter, ExporterSeries
from controlplane.ports.expositions import ExpositionReader
from tests.properties import examples

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
EXPORTER = Exporter(
    name="e",
    card_label="uuid",
    series={"power": ExporterSeries(names=("p",)), "temperature": ExporterSeries(names=("t",))},
)
NAMES = ("p", "t", "other_total", "p2", "go:info")

values = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False).map(lambda value: repr(value).replace("inf", "Inf")),
    st.sampled_from(["+Inf", "-Inf", "1e3", "0.5E-2"]),
)
texts = st.text(
    st.one_of(st.sampled_from('ab{}=,"\\ #\n'), st.characters(blacklist_categories=("Cs", "Cc"))),
    max_size=6,
)
blanks = st.sampled_from(["", "", " ", "\t", "  "])


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@st.composite
def lines(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(["", "# HELP p power {in W}", "# TYPE t gauge", "#", "  "]))
    name, value = draw(st.sampled_from(NAMES)), draw(values)
    time = draw(st.sampled_from(["", "", " 1700000000000"]))
    if kind == 1:
        return f"{name} {value}{time}"
    names = draw(st.lists(st.sampled_from(["uuid", "a", "b_2", "_c"]), unique=True, max_size=4))
    labels = [f'{label}="{escaped(draw(texts))}"' for label in names]
    inside = ("," + draw(blanks)).join(labels) + draw(
        st.sampled_from(["", ","]) if labels else st.just("")
    )
    return f"{name}{{{inside}}}{draw(blanks) or ' '}{value}{time}"


def judged(text: str) -> dict[str, dict[str, float]]:
    """Card → figure → number, as the library reads the text."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            card = sample.labels.get("uuid", "")
            metric = {"p": "power", "t": "temperature"}.get(sample.name)
            if card and metric:
                found.setdefault(card[:80], {})[metric] = sample.value
    return found


@settings(max_examples=examples(400))
@given(st.lists(lines(), max_size=12))
@example(['p{uuid="a}b{"} 1', 'p{uuid="a}b{"} 2', 'p{uuid="a\\\\n"} 3'])
@example(['p{a="x",uuid="1"} 1', 'p{uuid="1",a="x"} 2'])
def test_it_reads_what_the_library_reads(given_lines: list[str]) -> None:
    text = "\n".join(given_lines) + "\n"
    reader = ExpositionReader(EXPORTER, vendor="e")
    # The second time it knows the cards already, and takes the short way.
    for _ in range(2):
        batch = reader.read(text, at=AT, node="n")
        ours = {
            reading.serial: {metric.value: value for metric, value in reading.metrics.items()}
            for reading in batch.readings
        }
        assert ours == judged(text)
