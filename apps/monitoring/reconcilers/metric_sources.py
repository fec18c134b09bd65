"""Read each source when it is due, and detect cards with stale metrics.

Sources are read outside of any transaction, several at a time; each is leased, so that no two workers read the
same one. Staleness is evaluated separately, from stored metrics: a lost run makes no difference for the next
one.

::

    metrics of a card are stale ──▶ is the source degraded? ──yes──▶ nothing; the source shows why
                                            └──no──▶ UNKNOWN, until there are new metrics
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Q

from apps.fleet.services.card_availability import (
    METRICS_STALE,
    cards_mark_metrics_fresh,
    cards_mark_metrics_stale,
)
from apps.monitoring.selectors.health_snapshots import health_policy
from apps.monitoring.services.metric_ingestion import readings_record
from apps.telemetry.models import CardMetrics, Source
from apps.telemetry.selectors import (
    due_metric_sources,
    metric_source_heartbeat_timeout,
    source_adapter,
)
from apps.telemetry.services.metric_sources import (
    metric_source_record_failure,
    metric_source_record_scrape,
    metric_source_record_stall,
)
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.persistence.leases import keep_leases_renewed, lease_rows, release_row_lease
from controlplane.ports.telemetry import TelemetryBatch, TelemetryError

log = logging.getLogger(__name__)

_AT_ONCE = 8
_LEASE = timedelta(minutes=2)


def metric_sources_read(*, at: datetime) -> int:
    """Read every due source; return how many had new metrics. A failing source does not affect others."""
    due = Source.objects.filter(pk__in=due_metric_sources(at=at)).select_related("cluster")
    taken = lease_rows(due, limit=50, ttl=_LEASE)
    if not taken:
        return 0
    Source.objects.filter(pk__in=[source.pk for source in taken]).update(tried_at=at)
    answered, began = 0, time.monotonic()
    with (
        keep_leases_renewed(taken, ttl=_LEASE),
        ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="read-source") as workers,
    ):
        waiting = {workers.submit(_read_source, source): source for source in taken}
        for done in as_completed(waiting):
            # What was measured while we waited for it is not from the future.
            now = at + timedelta(seconds=time.monotonic() - began)
            answered += _record_metric_source_batch(waiting[done], done, at=now)
            release_row_lease(waiting[done])
    return answered


def _read_source(source: Source) -> TelemetryBatch:
    """In a thread of its own: it comes near no database."""
    return source_adapter(source).read()


def _record_metric_source_batch(
    source: Source, done: Future[TelemetryBatch], *, at: datetime
) -> bool:
    """Return whether there were new metrics."""
    try:
        batch = done.result()
        recorded = readings_record(
            source=source,
            readings=batch.readings,
            metric_batches=batch.metric_batches,
            at=at,
            refused=batch.refused,
        )
        metric_source_record_scrape(source=source, at=at, recorded=recorded, batch=batch)
    except TelemetryError as error:
        log.warning("a source of figures does not answer", extra={"source": source.name})
        metric_source_record_failure(source=source, error=str(error))
    except Exception as error:
        log.exception("a source of figures could not be read", extra={"source": source.name})
        metric_source_record_failure(source=source, error=f"{type(error).__name__}: {error}")
    else:
        return True
    return False


@dataclass(slots=True)
class _SourceFreshness:
    """Cards of a source with and without recent metrics."""

    fresh_nodes: set[int] = field(default_factory=set)
    #: Nodes and cards without metrics within the heartbeat timeout.
    nodes: set[int] = field(default_factory=set)
    cards: list[int] = field(default_factory=list)
    #: Nodes with cards that became unknown within the policy's window and have no new metrics.
    given_up: set[int] = field(default_factory=set)


def stale_cards_reconcile(*, at: datetime) -> int:
    """Set cards with stale metrics to unknown, and those with new metrics back; return the number of changes.

    Nothing changes if the source itself is degraded, or so many nodes are stale that the source is the likely
    cause.
    """
    sources = {
        source.pk: source
        for source in Source.objects.filter(enabled=True).select_related("cluster")
    }
    lost = _find_stale_cards()
    again = {one for one in lost if _has_fresh_metrics(one, sources, at=at)}
    changed = cards_mark_metrics_fresh(cards=[one.card for one in again])
    policy = health_policy().policy
    share = policy.stall_share
    silences = _freshness_by_source(sources, at=at)
    for one in lost:
        # Staleness that spreads from node to node is caused by the source as well.
        if one not in again and one.became_stale_within(sources, window=policy.window, at=at):
            silences[one.source].given_up.add(one.node)
    for pk, source in sources.items():
        silence = silences[pk]
        reason = _stalled_ingestion_reason(source, silence, share=share, at=at)
        if metric_source_record_stall(source=source, reason=reason) and reason:
            log.warning("silence of cards is not acted upon", extra={"source": source.name})
        if silence.cards and not reason:
            changed += cards_mark_metrics_stale(cards=silence.cards)
    return changed


class _CardWithStaleMetrics(NamedTuple):
    """A card that became unknown because of stale metrics."""

    card: int
    node: int
    #: Primary key of the source that reported it last.
    source: int | None
    received_at: datetime

    def became_stale_within(
        self, sources: dict[int, Source], *, window: timedelta, at: datetime
    ) -> bool:
        """Whether it was given up within the window."""
        source = sources.get(self.source or 0)
        return (
            source is not None
            and self.received_at > at - metric_source_heartbeat_timeout(source) - window
        )


def _find_stale_cards() -> list[_CardWithStaleMetrics]:
    rows = CardMetrics.objects.filter(
        card__state=CardState.UNKNOWN, card__state_reason=METRICS_STALE
    ).values_list("card_id", "card__node_id", "source_id", "received_at")
    return [_CardWithStaleMetrics._make(row) for row in rows]


def _has_fresh_metrics(
    one: _CardWithStaleMetrics, sources: dict[int, Source], *, at: datetime
) -> bool:
    """It has recent metrics, or no source measures it any more."""
    source = sources.get(one.source or 0)
    return source is None or at - one.received_at <= metric_source_heartbeat_timeout(source)


def _freshness_by_source(
    sources: dict[int, Source], *, at: datetime
) -> dict[int | None, _SourceFreshness]:
    """By source. One statement for recent nodes, and one for stale cards."""
    found: dict[int | None, _SourceFreshness] = {pk: _SourceFreshness() for pk in sources}
    if not sources:
        return found
    late = Q()
    for pk, source in sources.items():
        late |= Q(source=pk, received_at__lt=at - metric_source_heartbeat_timeout(source))
    usable = CardMetrics.objects.filter(
        source__in=list(sources), card__state=CardState.USABLE, card__removed_at=None
    )
    fresh = usable.exclude(late).values_list("source_id", "card__node_id").distinct()
    for pk, node in fresh:
        found[pk].fresh_nodes.add(node)
    for pk, node, card in usable.filter(late).values_list("source_id", "card__node_id", "card_id"):
        found[pk].nodes.add(node)
        found[pk].cards.append(card)
    return found


def _stalled_ingestion_reason(
    source: Source, silence: _SourceFreshness, *, share: int, at: datetime
) -> str:
    """Why the source and not the cards are at fault; empty if it is the cards."""
    if not silence.cards:
        return ""
    if source.error:
        return Reason(
            "telemetry_source.staleness.source_unreadable",
            "the source cannot be read, so missing metrics of its cards are ignored",
        )
    if source.read_at is None or at - source.read_at > metric_source_heartbeat_timeout(source):
        return Reason(
            "telemetry_source.staleness.source_stale",
            "the source has sent no data within its heartbeat timeout, so missing "
            "metrics of its cards are ignored",
        )
    stale_nodes = silence.nodes | silence.given_up
    stale, total = len(stale_nodes), len(stale_nodes | silence.fresh_nodes)
    if stale > 1 and stale * 1000 > share * total:
        return Reason(
            "telemetry_source.staleness.many_nodes",
            "{stale} of {nodes} nodes are stale at the same time; above {threshold} "
            "%, a failure of the source is more likely than failures of the nodes",
            stale=stale,
            nodes=total,
            threshold=f"{share / 10:g}",
        )
    return ""
