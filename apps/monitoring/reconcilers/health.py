"""Controllers of health: decide about faults, evaluate health rules, and read what clusters report.

::

    load     one transaction that reads a snapshot
    decide   no transaction; ``controlplane.domain.health``
    apply    a transaction for each batch of decisions, which first checks the lease
    empty    isolations without allocated claims

Clusters are not contacted here: another controller does that (``reconcilers.isolations``).

A run that dies anywhere leaves rows from which the next one makes the same decisions: stored decisions show what
was done about a fault. One run at a time, by a lease with a fencing token.

What clusters report of their nodes and cards becomes signals; what they no longer report ends. Each run queries
anew and compares with the open faults, so nothing is lost with a run, and an unchanged state is not written. The
open faults of a cluster that does not respond stay open.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Cluster
from apps.monitoring.models import Decision, Fault, HealthPolicy, HealthRule
from apps.monitoring.selectors.health_snapshots import (
    health_policy,
    health_snapshot,
)
from apps.monitoring.selectors.rule_samples import (
    MOST,
    candidate_cards,
    longest_lookback,
    metric_samples_by_card,
)
from apps.monitoring.services.faults import signals_record, stale_faults_end
from apps.monitoring.services.health_decisions import (
    LeaderLeaseLost,
    decisions_apply,
    suppressed_decisions_store,
)
from apps.monitoring.services.health_rules import default_health_rules_create
from apps.monitoring.services.isolations import (
    drained_isolations_advance,
    isolations_of_removed_nodes_end,
)
from controlplane.domain.common.reasons import Reason, truncate_reason
from controlplane.domain.health.decisions import decide_actions
from controlplane.domain.health.faults import FaultLevel, FaultMap, FaultSignal, SignalOrigin
from controlplane.domain.health.rules import (
    MetricCondition,
    evaluate_condition,
    parse_health_condition,
)
from controlplane.domain.health.snapshots import HealthAction, HealthDecision, HealthSnapshot
from controlplane.domain.rules.conditions import ConditionStep, RuleInvalid
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import (
    NODE_UNREACHABLE,
    ClusterDiagnosis,
    ClusterError,
    ClusterSignal,
    DiagnosableCluster,
)

log = logging.getLogger(__name__)

HEALTH_LEASE = "monitoring.health"
HEALTH_LEASE_TTL = timedelta(seconds=30)
#: Decisions in one transaction: the cards of so many nodes are locked meanwhile.
BATCH = 50
#: Decisions to do nothing in one transaction, for which nothing is locked.
NOTES = 1000
#: An event that is not reported again for this time has ended, though no end is reported.
_EVENT_RETENTION = timedelta(hours=1)
MANUAL_DECISION_REASON = Reason(
    "health_policy.decision.manual", "the health policy requires a manual decision"
)


def health_reconcile(*, at: datetime) -> int:
    """Run once, unless another process does; return the number of stored decisions."""
    with hold_leader_lease(HEALTH_LEASE, ttl=HEALTH_LEASE_TTL) as lease:
        if lease is None:
            return 0
        policy_row = health_policy()
        stale_faults_end(
            after={
                SignalOrigin.EVENT: _EVENT_RETENTION,
                SignalOrigin.JOB: policy_row.policy.suspicion_within,
            },
            at=at,
        )
        with transaction.atomic():
            snapshot = health_snapshot(policy=policy_row.policy, at=at)
        written = _decide_actions(snapshot, policy_row, lease, at=at)
        isolations_of_removed_nodes_end(at=at)
        drained_isolations_advance(at=at)
    return written


def _decide_actions(
    snapshot: HealthSnapshot, policy_row: HealthPolicy, lease: LeaderLease, *, at: datetime
) -> int:
    decided = decide_actions(snapshot, policy_row.policy, at)
    if not policy_row.automatic:
        decided = tuple(map(_leave_to_operators, decided))
    acting = [each for each in decided if not _is_recorded_only(each)]
    notes = [each for each in decided if _is_recorded_only(each)]
    counts: Counter[str] = Counter()
    try:
        for first in range(0, len(acting), BATCH):
            batch = acting[first : first + BATCH]
            counts.update(decisions_apply(decided=batch, lease=lease, at=at))
            lease.renew(ttl=HEALTH_LEASE_TTL)
        for first in range(0, len(notes), NOTES):
            batch = notes[first : first + NOTES]
            counts[Decision.Outcome.DONE] += suppressed_decisions_store(
                decided=batch, lease=lease, at=at
            )
            lease.renew(ttl=HEALTH_LEASE_TTL)
    except LeaderLeaseLost:
        log.warning(
            "a turn of health lost its lease; another goes on", extra={"lease": HEALTH_LEASE}
        )
    if counts:
        log.info("health was decided about", extra={"outcomes": dict(counts)})
    return counts.total()


def _is_recorded_only(each: HealthDecision) -> bool:
    return each.action is HealthAction.NOTE and not (each.held_back or each.followed)


def _leave_to_operators(each: HealthDecision) -> HealthDecision:
    if each.held_back or each.action is HealthAction.NOTE:
        return each
    return replace(each, held_back=MANUAL_DECISION_REASON)


RULES_LEASE = "monitoring.health-rules"
RULES_LEASE_TTL = timedelta(seconds=120)


def health_rules_reconcile(*, at: datetime) -> int:
    """Evaluate all rules once, unless another process does; return the number of cards for which a rule fires."""
    with hold_leader_lease(RULES_LEASE, ttl=RULES_LEASE_TTL) as lease:
        if lease is None:
            return 0
        default_health_rules_create(at=at)
        rules = list(HealthRule.objects.filter(enabled=True))
        firing = sum(_evaluate_health_rule(rule, at=at) for rule in rules)
        _end_faults_of_removed_rules(rules, at=at)
    return firing


def _evaluate_health_rule(rule: HealthRule, *, at: datetime) -> int:
    """Evaluate one rule on all cards; end its faults on cards that no longer match."""
    try:
        condition = parse_health_condition(rule.condition)
    except RuleInvalid as refusal:
        log.warning("a rule is not understood", extra={"rule": rule.name, "why": str(refusal)})
        return 0
    standing = Fault.objects.filter(origin=SignalOrigin.RULE, code=rule.name, ended_at=None)
    asked = candidate_cards(condition, at=at)
    if len(asked) == MOST:
        log.warning("a rule may hold of too many cards", extra={"rule": rule.name, "cards": MOST})
    cards = sorted({*asked, *standing.exclude(card=None).values_list("card", flat=True)})
    findings = _definite_evaluations_by_card(condition, cards, at=at)
    rows = Card.objects.select_related("node__cluster").in_bulk(list(findings))
    signals = [
        _fault_signal_of_rule(rule, condition, rows[card], finding, at=at)
        for card, finding in findings.items()
        if card in rows
    ]
    if signals:
        signals_record(signals=signals, at=at)
    return sum(signal.active for signal in signals)


def _definite_evaluations_by_card(
    condition: MetricCondition, cards: list[int], *, at: datetime
) -> dict[int, ConditionStep]:
    """Definite results: without measurements the previous state is kept."""
    since = at - longest_lookback(condition)
    series = metric_samples_by_card(cards, condition.metric, since=since, at=at)
    found = {card: evaluate_condition(condition, series.get(card, ()), at) for card in cards}
    return {card: step for card, step in found.items() if step and not step.pending}


def _fault_signal_of_rule(
    rule: HealthRule,
    condition: MetricCondition,
    card: Card,
    finding: ConditionStep,
    *,
    at: datetime,
) -> FaultSignal:
    fires = finding.fired_at is not None
    return FaultSignal(
        origin=SignalOrigin.RULE,
        cluster=card.node.cluster.uid,
        node=card.node.name,
        index=card.index,
        code=rule.name,
        level=FaultLevel(rule.level),
        at=at,
        active=fires,
        message=Reason(
            "fault.signal.health_rule",
            "{rule}: {metric} {aggregation} is {value}",
            rule=rule.title,
            metric=condition.metric,
            aggregation=condition.how,
            value=f"{finding.value:g}",
        )
        if fires
        else "",
    )


def _end_faults_of_removed_rules(rules: list[HealthRule], *, at: datetime) -> None:
    """End the faults of deleted and disabled rules."""
    Fault.objects.filter(origin=SignalOrigin.RULE, ended_at=None).exclude(
        code__in=[rule.name for rule in rules]
    ).update(ended_at=at)


#: Conditions last until a cluster no longer reports them. An event is momentary and lapses.
LASTING = (SignalOrigin.CONDITION, SignalOrigin.MINDCLUSTER, SignalOrigin.NVSENTINEL)
#: Open faults are reported again at this interval, which shows that they are still reported.
REMINDED_AFTER = timedelta(minutes=5)
#: Seconds that a run waits for responses; later ones are handled by a later run.
PATIENCE = 8.0
#: Columns of a fault; texts are compared as they are kept.
_LONGEST_CODE, _LONGEST_MESSAGE = 120, 2000

_asking = ThreadPoolExecutor(max_workers=8, thread_name_prefix="diagnose-cluster")
#: Uid of the cluster → its unanswered query: no cluster is queried twice at once.
_open: dict[str, Future[ClusterDiagnosis]] = {}

#: Node, card, origin, code.
Key = tuple[str, int | None, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportedSignal:
    level: int
    message: str
    reported_at: datetime


def cluster_signals_sync(*, at: datetime, uid: str | None = None) -> int:
    """Query the conditions of each cluster that reports them, or of one; return how many responded in time."""
    rows = Cluster.objects.all() if uid is None else Cluster.objects.filter(uid=uid)
    clusters = {row.uid: row for row in rows}
    late = {_open[each]: each for each in clusters if each in _open}
    asked = {}
    for row in clusters.values():
        if row.uid not in _open and (question := _diagnosis_query(row)) is not None:
            future = _open[row.uid] = _asking.submit(question)
            asked[future] = row.uid
    # Each response is recorded when it arrives, and a cluster that did not respond before is not waited for.
    return sum(
        _record_diagnosis(clusters[each], future, at=at)
        for future, each in _completed_diagnoses(asked, late)
        if _open.pop(each, None) is not None
    )


def _diagnosis_query(cluster: Cluster) -> Callable[[], ClusterDiagnosis] | None:
    """None for a cluster that reports no conditions."""
    try:
        adapter = fleet.cluster_adapter(cluster)
    except (ClusterError, adapter_registry.AdapterNotFound):
        # The inventory reports the error, where users see it.
        return None
    except Exception:
        log.exception("a cluster's adapter could not be made", extra={"cluster": cluster.name})
        return None
    return adapter.diagnose if isinstance(adapter, DiagnosableCluster) else None


def _completed_diagnoses(
    asked: Mapping[Future[ClusterDiagnosis], str], late: Mapping[Future[ClusterDiagnosis], str]
) -> Iterator[tuple[Future[ClusterDiagnosis], str]]:
    yield from ((future, uid) for future, uid in late.items() if future.done())
    with suppress(TimeoutError):
        for future in as_completed(asked, timeout=PATIENCE):
            yield future, asked[future]


def _record_diagnosis(cluster: Cluster, answer: Future[ClusterDiagnosis], *, at: datetime) -> bool:
    """Record a response; return whether there was one. A failing cluster does not affect others."""
    try:
        signals = tuple(changed_fault_signals(cluster, answer.result(), at=at))
        if signals:
            signals_record(signals=signals, at=at)
    except ClusterError as error:
        details = {"cluster": cluster.name, "error": str(error)}
        log.info("a cluster does not say what is wrong with it", extra=details)
        return False
    except Exception:
        log.exception("a cluster's signs could not be recorded", extra={"cluster": cluster.name})
        return False
    return True


def changed_fault_signals(
    cluster: Cluster, diagnosis: ClusterDiagnosis, *, at: datetime
) -> Iterator[FaultSignal]:
    """Signals that are new, changed, due to be repeated, or ended."""
    for unread in diagnosis.unreadable:
        details = {"cluster": cluster.name, "origin": unread.origin, "node": unread.node}
        log.debug("signs could not be read", extra={**details, "reason": unread.reason})
    standing = _open_signals(cluster)
    reported: set[Key] = set()
    for signal in _strongest_signals(cluster, diagnosis, at=at).values():
        key: Key = (signal.node, signal.index, signal.origin, signal.code)
        reported.add(key)
        if _is_new_or_changed(signal, standing.get(key)):
            yield signal
    unreadable = {(unread.origin, unread.node) for unread in diagnosis.unreadable}
    for key, before in standing.items():
        node, index, origin, code = key
        lasts = origin in LASTING or (origin == SignalOrigin.SILENCE and code == NODE_UNREACHABLE)
        unread_origins = {(SignalOrigin(origin), ""), (SignalOrigin(origin), node)} & unreadable
        if lasts and key not in reported and not unread_origins:
            yield FaultSignal(
                origin=SignalOrigin(origin),
                cluster=cluster.uid,
                node=node,
                index=index,
                code=code,
                level=FaultLevel(before.level),
                at=at,
                active=False,
            )


def _open_signals(cluster: Cluster) -> Mapping[Key, _ReportedSignal]:
    origins = (*LASTING, SignalOrigin.SILENCE, SignalOrigin.EVENT)
    rows = Fault.objects.filter(node__cluster=cluster, ended_at=None, origin__in=origins)
    columns = ("node__name", "card__index", "origin", "code", "level", "message", "reported_at")
    return {
        (node, index, origin, code): _ReportedSignal(
            level=level, message=message, reported_at=reported_at
        )
        for node, index, origin, code, level, message, reported_at in rows.values_list(*columns)
    }


def _is_new_or_changed(signal: FaultSignal, before: _ReportedSignal | None) -> bool:
    if signal.origin is SignalOrigin.EVENT:
        return signal.active if before is None else signal.at > before.reported_at
    return (
        before is None
        or (signal.level, signal.message) != (before.level, before.message)
        or signal.at >= before.reported_at + REMINDED_AFTER
    )


def _strongest_signals(
    cluster: Cluster, diagnosis: ClusterDiagnosis, *, at: datetime
) -> Mapping[Key, FaultSignal]:
    """One signal for each fault: the newest event, and the most severe condition."""
    maps = {
        name: plugin.profile().faults for name, plugin in adapter_registry.chip_plugins().items()
    }
    found: dict[Key, FaultSignal] = {}
    for sign in diagnosis.signals:
        signal = _fault_signal_of_cluster(cluster, sign, maps=maps, at=at)
        key: Key = (signal.node, signal.index, signal.origin, signal.code)
        rival = found.get(key)
        if rival is None or (signal.at, signal.level) > (rival.at, rival.level):
            found[key] = signal
    return found


def _fault_signal_of_cluster(
    cluster: Cluster, sign: ClusterSignal, *, maps: Mapping[str, FaultMap], at: datetime
) -> FaultSignal:
    known = maps.get(sign.vendor, FaultMap())
    # Conditions have the current time: clocks of nodes differ, and an end of ours must not look newer.
    moment = sign.origin is SignalOrigin.EVENT and sign.since is not None
    return FaultSignal(
        origin=sign.origin,
        cluster=cluster.uid,
        node=sign.node,
        index=sign.index,
        code=sign.code[:_LONGEST_CODE],
        level=sign.level or known.level(sign.code, minor=sign.minor),
        at=sign.since if moment and sign.since is not None else at,
        active=sign.active,
        message=truncate_reason(sign.message, _LONGEST_MESSAGE),
        vendor=sign.vendor,
    )
