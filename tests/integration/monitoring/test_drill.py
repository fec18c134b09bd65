"""The fault drill on a small fleet: the bad days pass, and what decides knows nothing but texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pytest_django import Settings

from controlplane.adapters.outbound_http import HttpOutbound
from controlplane.adapters.telemetry.exporter import ExporterTelemetry
from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.ports import adapter_registry
from tests.drill import company as companies
from tests.drill.asking import Asked
from tests.drill.faults import Node
from tests.drill.play import play
from tests.drill.report import format_outcome
from tests.drill.scoring import Measurement, Outcome
from tests.drill.scraping import Delay, Exporters
from tests.drill.scraping import outcome as scrape_outcome

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("apps", "platform")
DRILL = ROOT / "tests" / "drill"


@pytest.fixture
def drillable(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transactional_db: None,
) -> None:
    settings.NINEFOLD_HOME = tmp_path
    engine = companies.DrillEngine()
    monkeypatch.setattr(adapter_registry, "engine_by_name", {engine.name: engine}.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: (engine.name,))


# Everything but how many events a second go through, of which a small fleet has too few.
SMALL = ("burst", "flapping", "silent", "outage", "database", "garbage", "storm", "week")


@pytest.mark.usefixtures("drillable")
def test_a_small_fleet_comes_through_every_bad_day() -> None:
    outcomes = {
        outcome.name: outcome for outcome in play(Asked(nodes=12, hours=60, rate=100, only=SMALL))
    }
    assert len(outcomes) == len(SMALL)
    failed = [format_outcome(outcome) for outcome in outcomes.values() if not outcome.passed]
    assert not failed, "\n".join(failed)


def test_an_exporter_of_the_drill_serves_a_fault_and_records_its_first_scrape() -> None:
    nodes = [Node(name=name, vendor="nvidia", cards=8) for name in ("n1", "n2")]
    exporters = Exporters(nodes, draws=Random(1))
    with exporters.running():
        base = f"http://127.0.0.1:{exporters.port}"
        policy = EgressPolicy.parse(allow=["127.0.0.0/8"], schemes=["http"], ports=[exporters.port])
        source = ExporterTelemetry(
            outbound=HttpOutbound(policy=policy, seconds=10),
            vendor="nvidia",
            targets=[{"url": f"{base}/{node.name}/metrics", "node": node.name} for node in nodes],
        )
        assert not any(reading.faults for reading in source.read().all_readings())
        before = exporters.scraped_at("n2")
        assert before is not None
        changed_at = exporters.break_card("n2", 3)
        assert exporters.scraped_at("n2") is None
        (faulty,) = (reading for reading in source.read().all_readings() if reading.faults)
        first = exporters.scraped_at("n2")
        source.read()
    assert (faulty.node, faulty.index) == ("n2", 3)
    assert first is not None
    assert before <= changed_at <= first
    assert exporters.scraped_at("n2") == first


def test_a_slow_reaction_after_the_scrape_fails_and_a_late_scrape_does_not() -> None:
    quick = [Delay(from_change=5.4, from_scrape=0.4)] * 98
    late = Delay(from_change=8.1, from_scrape=3.1)
    assert scrape_outcome([*quick, late], nodes=99).passed is False
    assert scrape_outcome(quick, nodes=98).passed


def test_the_product_does_not_know_the_drill() -> None:
    sources = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 100
    # Few of them have the word at all, and only these are worth reading.
    suspects = [path for path in sources if "tests" in path.read_text()]
    assert not [
        path for path in suspects if any(name.startswith("tests") for name in _imports(path))
    ]


def test_the_truth_reaches_the_product_by_texts_only() -> None:
    """What gives words to the product does not know the truth, and nothing else gives it any."""
    recording = {"signals_record", "readings_record", "metric_push_record"}
    tellers = {
        path.stem
        for path in DRILL.glob("*.py")
        if any(name.rpartition(".")[2] in recording for name in _imports(path))
    }
    assert tellers == {"voices"}
    assert not [
        name for name in _imports(DRILL / "voices.py") if name.startswith("tests.drill.truth")
    ]


def test_a_goal_that_is_missed_or_cannot_be_measured_fails_its_scenario() -> None:
    late = Measurement(name="isolated", value=5.1, unit="s", most=5)
    never = Measurement(name="isolated", value=float("inf"), unit="s", most=5)
    found = Measurement(name="recall", value=0.99, least=1)
    for metric in (late, never, found):
        assert not Outcome(name="burst", metrics=(metric,)).passed
    assert not Outcome(name="burst", wrong=("a card was missed",)).passed


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
