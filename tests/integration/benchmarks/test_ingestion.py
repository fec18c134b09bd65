"""The benchmark of ingestion at small size: what exporters print is all in the history, and what agents push."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from apps.monitoring.api import metric_ingestion
from apps.telemetry.models import CardHistory, CardMetrics, Source
from apps.telemetry.selectors import PUSH
from tests.benchmarks.telemetry import ingesting, ingestion
from tests.benchmarks.telemetry.exporters import SERIES

pytestmark = pytest.mark.slow

CARDS, TARGETS = 480, 3
#: A minute's rhythm in six seconds.
RUNS, FLAT_OUT, EVERY = 6, 2, 1.0


@pytest.mark.django_db(transaction=True)
def test_all_that_is_printed_is_kept_and_seen_before_the_next_is_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "PUSHES", 100)
    # What it changes for its own process goes with this test.
    monkeypatch.setattr(metric_ingestion, "MOST_A_MINUTE", metric_ingestion.MOST_A_MINUTE)
    settings.NINEFOLD_TELEMETRY = settings.NINEFOLD_TELEMETRY
    with ingestion.exporters(CARDS, TARGETS) as port:
        result = ingesting.main(port, CARDS, TARGETS, RUNS, FLAT_OUT, EVERY)
    assert result["samples_a_turn"] == CARDS * len(SERIES)
    # One turn before the clock runs, and each push of eight cards.
    assert result["history_rows"] == CARDS * (1 + RUNS + FLAT_OUT) + 8 * 101
    assert CardHistory.objects.count() == result["history_rows"]
    assert CardMetrics.objects.count() == CARDS
    # The slowest says as much of what else the machine does.
    assert result["lag_p50"] < EVERY
    assert result["push_p50"] < 1.0
    read, pushed = Source.objects.exclude(kind=PUSH).get(), Source.objects.get(kind=PUSH)
    assert (read.error, read.refused, pushed.refused) == ("", 0, 0)
