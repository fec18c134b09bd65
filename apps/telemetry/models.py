"""Metric sources, agent tokens, the newest metrics of each card, and their history."""

from __future__ import annotations

from django.db import models
from typing_extensions import TypedDict

from apps.fleet.models import Card, Cluster, Node
from controlplane.persistence.models import LeasedModel, UidModel
from controlplane.persistence.reasons import ReasonField, ReasonsField


class Source(UidModel, LeasedModel):
    """A source of metrics of a cluster's cards, which is read or pushes."""

    name = models.SlugField(max_length=60, unique=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="sources")
    #: The adapter (``controlplane.ports.telemetry``); ``push`` for those that come by themselves.
    kind = models.CharField(max_length=20)
    #: Arguments of the adapter: addresses, the vendor whose names it uses.
    options = models.JSONField(default=dict, blank=True)
    #: The bearer token that it wants, encrypted; None: none.
    credential = models.BinaryField(null=True, blank=True)
    #: Seconds between two readings.
    every = models.PositiveIntegerField(default=10)
    enabled = models.BooleanField(default=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    #: When a reading last succeeded.
    read_at = models.DateTimeField(null=True, blank=True)
    #: Why the last did not; empty when it did.
    error = ReasonField()
    #: Number of samples of the last successful scrape, and reasons for rejected ones.
    readings = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    refusals = ReasonsField(default=list, blank=True)
    #: Targets that did not respond to the last scrape → reason; for example one of many exporters.
    unreachable = ReasonsField(default=dict, blank=True)
    #: Why stale metrics of its cards are ignored: the source itself is the likely cause; else empty.
    stalled = ReasonField()
    created_by_name = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ("name",)


class AgentReport(TypedDict, total=False):
    """What an agent said of itself with its newest batch."""

    #: Name and version.
    name: str
    vendor: str
    #: Whether its reader of metrics works; None: it did not say.
    reader_ok: bool | None


class NodeToken(UidModel):
    """Token with which an agent pushes metrics of one node."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="tokens")
    #: SHA-256 of the token, hexadecimal; the token itself is shown once.
    digest = models.CharField(max_length=64, unique=True)
    created_by_name = models.CharField(max_length=150, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    #: Number of the newest accepted batch: a repeated batch is accepted once.
    sequence = models.BigIntegerField(default=0)
    #: Numbers below it that have not come: ``[[first, last], …]``, the lowest first. What was buffered comes late.
    gaps = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), blank=True
    )
    #: An ``AgentReport``; empty before the first batch.
    agent = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"token of {self.node}"


class MetricColumns(models.Model):
    """A column for each metric, null if not measured."""

    utilization = models.FloatField(null=True)
    memory_used = models.FloatField(null=True)
    memory_total = models.FloatField(null=True)
    temperature = models.FloatField(null=True)
    memory_temperature = models.FloatField(null=True)
    power = models.FloatField(null=True)
    clock = models.FloatField(null=True)
    ecc_corrected = models.FloatField(null=True)
    ecc_uncorrected = models.FloatField(null=True)
    link_errors = models.FloatField(null=True)
    network_errors = models.FloatField(null=True)
    health = models.FloatField(null=True)

    class Meta:
        abstract = True


class CardMetrics(MetricColumns):
    """The latest metrics of one card; a column for each metric, null if not measured."""

    card = models.OneToOneField(
        Card, on_delete=models.CASCADE, primary_key=True, related_name="metrics"
    )
    source = models.ForeignKey(
        Source, on_delete=models.SET_NULL, null=True, related_name="metrics", db_index=False
    )
    #: Serial number of the card as the source reported it last; empty if it reports none.
    serial = models.CharField(max_length=80, blank=True, default="")
    #: When they were measured, by the source's clock as far as it can be believed; and when they came.
    at = models.DateTimeField()
    received_at = models.DateTimeField()

    class Meta:
        # Written often, and never by an indexed column: updates stay on their page.
        db_table = "telemetry_cardfigures"
        verbose_name_plural = "card metrics"

    def __str__(self) -> str:
        return f"figures of {self.card}"


class CardHistory(MetricColumns):
    """History of the metrics of a card: one row for each measurement.

    The table has a partition for each day (``apps.telemetry.services.metric_storage``), unknown to Django:
    migration 0004 creates it. Rows of removed cards are kept until their day is dropped.
    """

    pk = models.CompositePrimaryKey("card_id", "at")
    card = models.ForeignKey(
        Card,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "telemetry_history"

    def __str__(self) -> str:
        return f"figures of card {self.card_id} at {self.at}"


class CardHour(models.Model):
    """One hour of a card's history, aggregated, for charts of long time ranges."""

    pk = models.CompositePrimaryKey("card_id", "hour")
    card = models.ForeignKey(
        Card,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    #: Its beginning.
    hour = models.DateTimeField()
    samples = models.PositiveIntegerField()
    utilization_min = models.FloatField(null=True)
    utilization_mean = models.FloatField(null=True)
    utilization_max = models.FloatField(null=True)
    memory_used_min = models.FloatField(null=True)
    memory_used_mean = models.FloatField(null=True)
    memory_used_max = models.FloatField(null=True)
    memory_total_max = models.FloatField(null=True)
    temperature_min = models.FloatField(null=True)
    temperature_mean = models.FloatField(null=True)
    temperature_max = models.FloatField(null=True)
    memory_temperature_max = models.FloatField(null=True)
    power_min = models.FloatField(null=True)
    power_mean = models.FloatField(null=True)
    power_max = models.FloatField(null=True)
    clock_min = models.FloatField(null=True)
    clock_mean = models.FloatField(null=True)
    #: Counters: the highest value.
    ecc_corrected_max = models.FloatField(null=True)
    ecc_uncorrected_max = models.FloatField(null=True)
    link_errors_max = models.FloatField(null=True)
    network_errors_max = models.FloatField(null=True)
    #: The worst value of the hour.
    health_min = models.FloatField(null=True)

    class Meta:
        indexes = (models.Index(fields=("hour",), name="card_hour_by_hour"),)

    def __str__(self) -> str:
        return f"hour {self.hour} of card {self.card_id}"


class SummedHour(models.Model):
    """An hour of the history that is aggregated, or must be again because late metrics arrived."""

    hour = models.DateTimeField(primary_key=True)
    #: None: it has to be summed up (again).
    summed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("hour",)

    def __str__(self) -> str:
        return f"{self.hour}: {self.summed_at or 'to do'}"
