"""Metric sources: create, change, test, record readings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.models import Cluster
from apps.fleet.selectors import require_fleet_operator
from apps.telemetry.models import CardMetrics, Source
from apps.telemetry.selectors import (
    PUSH,
    readable_source_kinds,
    telemetry_adapter_for_kind,
)
from apps.telemetry.services.metric_batches import MAX_EXAMPLES, MetricBatchResult
from controlplane.domain.common.reasons import FieldRefused, Reason, truncate_reason
from controlplane.domain.outbound.egress import is_same_origin
from controlplane.persistence.encryption import DecryptionFailed, decrypt, encrypt
from controlplane.persistence.models import new_uid
from controlplane.ports.telemetry import RejectedReading, TelemetryBatch, TelemetryError

SHORTEST, LONGEST = 5, 3600
#: Maximum number of unreachable targets that are stored with their reasons.
_MAX_UNREACHABLE_STORED = 50
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,58}[a-z0-9])?")
#: How often a source that is pushed to notes that it was.
_NOTED = timedelta(seconds=5)
#: Readings that this process noted: primary key → when.
_noted: dict[int, datetime] = {}
#: Sources that this process was pushed to, by their primary keys; neither these nor their clusters ever change.
_cached_sources: dict[int, Source] = {}


class MetricSourceRefused(FieldRefused):
    """It cannot be like that; ``field`` is what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSourceTestResult:
    """The result of a test scrape; nothing is stored."""

    cards: int
    #: Nodes in the metrics, and those of them that the cluster does not have.
    nodes: tuple[str, ...]
    strangers: tuple[str, ...]
    refused: tuple[RejectedReading, ...]
    unreachable: Mapping[str, str]

    @property
    def refusals(self) -> tuple[str, ...]:
        return tuple(
            Reason(
                "telemetry_source.reading.rejected",
                "{reason} ({reading})",
                reason=one.reason,
                reading=one.what,
            )
            for one in self.refused
        )


def metric_source_create(
    *,
    actor: User,
    name: str,
    cluster: Cluster,
    kind: str,
    options: Mapping[str, Any],
    every: int = 10,
    token: str = "",
    enabled: bool = True,
) -> Source:
    """Create a source, from which metrics of the cluster's cards are read from now on.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises MetricSourceRefused: if a field is not valid.
    """
    require_fleet_operator(actor)
    if not _NAME.fullmatch(name):
        raise MetricSourceRefused(
            "telemetry_source.name.invalid",
            "enter a name of up to 60 lower-case letters, digits and hyphens, for "
            "example dcgm-east",
            field="name",
        )
    if kind not in readable_source_kinds():
        known = ", ".join(readable_source_kinds())
        raise MetricSourceRefused(
            "telemetry_source.kind.not_supported",
            "{kind} is not a kind of source; choose from {kinds}",
            kind=repr(kind),
            kinds=known,
            field="kind",
        )
    _check_source(kind=kind, options=options, every=every, token=token)
    try:
        with transaction.atomic():
            source = Source.objects.create(
                name=name,
                cluster=cluster,
                kind=kind,
                options=dict(options),
                every=every,
                credential=encrypt(token.encode()) if token else None,
                enabled=enabled,
                created_by_name=actor.username,
            )
            _audit_source(source, actor=actor, action="source.create", kind=kind)
    except IntegrityError:
        raise MetricSourceRefused(
            "telemetry_source.name.already_exists",
            "a source named {name} already exists; choose another name",
            name=name,
            field="name",
        ) from None
    return source


@transaction.atomic
def metric_source_change(
    *,
    source: Source,
    actor: User,
    options: Mapping[str, Any] | None = None,
    every: int | None = None,
    token: str | None = None,
    enabled: bool | None = None,
) -> None:
    """What is None stays; an empty token is removed. A token stays only for the URLs that it was given for.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises MetricSourceRefused: if something is wrong with it.
    """
    require_fleet_operator(actor)
    row = Source.objects.select_for_update(no_key=True, of=("self",)).get(pk=source.pk)
    if row.kind == PUSH and enabled is False:
        # It would not stop agents from pushing, only hide that their metrics are stale.
        raise MetricSourceRefused(
            "telemetry_source.push.pause_not_supported",
            "agents push their metrics to this source, so it cannot be paused; "
            "revoke their tokens instead",
            field="enabled",
        )
    if options is not None:
        keeps_credential = token is None and row.credential is not None
        if keeps_credential and not is_same_origin(before=row.options, after=options):
            raise MetricSourceRefused(
                "telemetry_source.credential.host_changed",
                "the host of the URL has changed; enter the credential again",
                field="token",
            )
        row.options = dict(options)
    if every is not None:
        row.every = every
    if token is not None:
        row.credential = encrypt(token.encode()) if token else None
    if enabled is not None:
        row.enabled = enabled
    # One that became unusable can still be switched off.
    if options is not None or token is not None or every is not None:
        _check_source(
            kind=row.kind, options=row.options, every=row.every, token=_decrypt_token(row)
        )
    changed = [
        name
        for name, value in (("options", options), ("every", every), ("enabled", enabled))
        if value is not None
    ]
    row.save(update_fields=["options", "every", "credential", "enabled"])
    _audit_source(
        row, actor=actor, action="source.change", changed=changed, token=token is not None
    )
    source.refresh_from_db()


def metric_source_prepare_deletion(*, source: Source, actor: User) -> None:
    """Prepare the deletion of a source within the caller's transaction: the metrics that came from it stay.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    _audit_source(source, actor=actor, action="source.delete")
    # Metrics before faults, each in one order, as a reading of it has them.
    rows = CardMetrics.objects.select_for_update(no_key=True).filter(source=source)
    list(rows.order_by("card_id").values_list("pk"))
    CardMetrics.objects.filter(source=source).update(source=None)


def metric_source_test(*, source: Source, actor: User) -> MetricSourceTestResult:
    """Scrape the source once without storing anything; return the result.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises MetricSourceRefused: if agents push to it, or nothing could be read.
    """
    require_fleet_operator(actor)
    if source.kind == PUSH:
        raise MetricSourceRefused(
            "telemetry_source.push.read_not_supported",
            "agents push their metrics to this source, so it cannot be read on request",
            field="kind",
        )
    try:
        adapter = telemetry_adapter_for_kind(
            kind=source.kind, options=source.options, token=_decrypt_token(source)
        )
        batch = adapter.read()
    except TelemetryError as error:
        raise MetricSourceRefused(str(error), field=_option_field(error.option)) from error
    readings = batch.all_readings()
    reported = {reading.node for reading in readings}
    known = set(source.cluster.nodes.values_list("name", flat=True))
    return MetricSourceTestResult(
        cards=len(readings),
        nodes=tuple(sorted(reported)),
        strangers=tuple(sorted(reported - known)),
        refused=batch.refused[:MAX_EXAMPLES],
        unreachable=_stored_refusals(batch),
    )


def _check_source(*, kind: str, options: Mapping[str, Any], every: int, token: str) -> None:
    if not SHORTEST <= every <= LONGEST:
        raise MetricSourceRefused(
            "telemetry_source.interval.out_of_range",
            "the interval must be {minimum} to {maximum} seconds, got {value}",
            minimum=SHORTEST,
            maximum=LONGEST,
            value=every,
            field="every",
        )
    if not token.isascii() or not token.isprintable():
        raise MetricSourceRefused(
            "telemetry_source.token.not_ascii",
            "a token must consist of ASCII characters",
            field="token",
        )
    if kind == PUSH:
        if options:
            raise MetricSourceRefused(
                "telemetry_source.push.options_not_supported",
                "a push source has no options",
                field="options",
            )
        return
    reserved = sorted({"outbound", "token", "clock"} & set(options))
    if reserved:
        raise MetricSourceRefused(
            "telemetry_source.options.reserved",
            "{option} is not an option of a source",
            option=reserved[0],
            field=_option_field(reserved[0]),
        )
    try:
        telemetry_adapter_for_kind(kind=kind, options=dict(options), token=token)
    except TelemetryError as error:
        raise MetricSourceRefused(str(error), field=_option_field(error.option)) from error


def _option_field(option: str) -> str:
    return f"options.{option}" if option else "options"


def _decrypt_token(source: Source) -> str:
    """:raises MetricSourceRefused: if none of the current keys decrypts it."""
    try:
        return decrypt(source.credential).decode() if source.credential else ""
    except DecryptionFailed as error:
        raise MetricSourceRefused(str(error), field="token") from error


def _audit_source(source: Source, *, actor: User, action: str, **detail: Any) -> None:
    record_audit_entry(source, actor=actor, action=action, cluster=source.cluster.name, **detail)


def metric_source_record_scrape(
    *, source: Source, at: datetime, recorded: MetricBatchResult, batch: TelemetryBatch
) -> None:
    """Record a scrape with its rejections and unreachable targets."""
    Source.objects.filter(pk=source.pk).update(
        read_at=at,
        error="",
        readings=recorded.cards,
        refused=recorded.refused,
        refusals=list(recorded.refusals),
        unreachable=_stored_refusals(batch),
    )


def metric_source_record_failure(*, source: Source, error: str) -> None:
    """Record why it could not be read. The state of its cards is unchanged."""
    Source.objects.filter(pk=source.pk).update(error=truncate_reason(error, 2000))


def metric_source_record_stall(*, source: Source, reason: str) -> bool:
    """Record why stale metrics of its cards are ignored; empty: they are not. Return whether that has changed."""
    return bool(Source.objects.filter(pk=source.pk).exclude(stalled=reason).update(stalled=reason))


def target_unreachable_reason(source: Source, part: str) -> str | None:
    """Why that target did not respond to the last scrape; empty if it did, None if unknown.

    Unknown after a failed scrape, and beyond the maximum number of stored targets.
    """
    if reason := source.unreachable.get(_storable_text(part)):
        return str(reason)
    known = not source.error and len(source.unreachable) < _MAX_UNREACHABLE_STORED
    return "" if known else None


def _stored_refusals(batch: TelemetryBatch) -> dict[str, str]:
    unreachable = sorted(batch.unreachable.items())[:_MAX_UNREACHABLE_STORED]
    return {_storable_text(name): _storable_reason_text(reason) for name, reason in unreachable}


def _storable_text(text: str) -> str:
    """A text that PostgreSQL can store, whatever an exporter returned."""
    return "".join(one if one.isprintable() else "?" for one in text[:300])


def _storable_reason_text(reason: str) -> str:
    """As :func:`_storable_text`; a reason that is storable as it is keeps its code."""
    text = _storable_text(reason)
    return reason if text == reason else text


def agent_push_source(cluster: Cluster, *, standing: int | None = None) -> Source:
    """The source to which the cluster's agents push; created with the first of them.

    ``standing`` is its primary key if the caller knows it, which saves a query.
    """
    cached = _cached_sources.get(standing) if standing is not None else None
    if cached is None:
        cached = _get_or_create_push_source(cluster)
        _cached_sources[cached.pk] = cached
    return cached


def _get_or_create_push_source(cluster: Cluster) -> Source:
    found = Source.objects.filter(cluster=cluster, kind=PUSH).select_related("cluster").first()
    if found is not None:
        return found
    name = f"{cluster.name}-agents"
    if Source.objects.filter(name=name).exclude(cluster=cluster, kind=PUSH).exists():
        name = f"agents-{new_uid()[:12]}"
    source, _ = Source.objects.get_or_create(
        name=name, defaults={"cluster": cluster, "kind": PUSH, "every": SHORTEST}
    )
    return source


def metric_source_record_push(*, source: Source, at: datetime, recorded: MetricBatchResult) -> None:
    """Record a push of one of its agents; not each time, as many agents would update the same row."""
    last = _noted.get(source.pk)
    if last is not None and at - last < _NOTED and not recorded.refused:
        return
    _noted[source.pk] = at
    Source.objects.filter(Q(read_at=None) | Q(read_at__lt=at), pk=source.pk).update(
        read_at=at,
        tried_at=at,
        error="",
        readings=recorded.cards,
        refused=recorded.refused,
        refusals=list(recorded.refusals),
    )
