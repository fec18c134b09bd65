from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.conf import settings
from rest_framework import serializers

from apps.quotas.models import CardRate, UsageDay, UsageRecord
from apps.quotas.selectors.usage_reports import Grouping, ReportRow
from controlplane.domain.usage import Cost, card_hours
from controlplane.web.rest import Filters, Query, Reference, StrictSerializer

GROUPINGS = [(one.value, one.value) for one in Grouping]
_EXACT = "Cards × microseconds: exact, and sums of it are."


class _Used(serializers.Serializer[Any]):
    card_microseconds = serializers.IntegerField(help_text=_EXACT)
    card_hours = serializers.SerializerMethodField(help_text="The same to three digits.")

    def get_card_hours(self, row: Any) -> str:
        return str(card_hours(row.card_microseconds))


class UsageRecordSerializer(_Used, serializers.ModelSerializer[UsageRecord]):
    """Cards of one chip that a claim held for a time, on one day (UTC)."""

    claim = serializers.CharField(source="claim.uid", help_text="The claim's uid.")
    team = Reference()
    queue = Reference()
    person = serializers.CharField(
        source="person.username", default=None, allow_null=True, help_text="Who asked for the work."
    )
    card_microseconds = serializers.IntegerField(help_text=_EXACT)

    class Meta:
        model = UsageRecord
        fields = (
            "claim",
            "team",
            "queue",
            "person",
            "work_kind",
            "work_uid",
            "work_name",
            "chip",
            "cards",
            "since",
            "until",
            "card_microseconds",
            "card_hours",
        )


class UsageDaySerializer(_Used, serializers.ModelSerializer[UsageDay]):
    """The records of one day (UTC), summed."""

    team = Reference()
    queue = Reference()
    person = serializers.CharField(source="person.username", default=None, allow_null=True)
    card_microseconds = serializers.IntegerField(help_text=_EXACT)
    claims = serializers.IntegerField(help_text="How many claims that were.")

    class Meta:
        model = UsageDay
        fields = (
            "day",
            "team",
            "queue",
            "person",
            "chip",
            "work_kind",
            "card_microseconds",
            "card_hours",
            "claims",
        )


class _UsageFilters(Filters):
    team = serializers.CharField(required=False, help_text="A team's uid.")
    queue = serializers.CharField(required=False, help_text="A queue's name.")
    person = serializers.CharField(required=False, help_text="A log-in name.")
    chip = serializers.CharField(required=False)
    work_kind = serializers.ChoiceField(choices=["job", "deployment"], required=False)


_LOOKUPS = {
    "team": "team__uid",
    "queue": "queue__name",
    "person": "person__username",
    "chip": "chip",
    "work_kind": "work_kind",
}


class UsageRecordFilters(_UsageFilters):
    lookups = {
        **_LOOKUPS,
        "work": "work_uid",
        "claim": "claim__uid",
        "since": "since__gte",
        "until": "since__lt",
    }

    work = serializers.CharField(required=False, help_text="The uid of a job or a deployment.")
    claim = serializers.CharField(required=False, help_text="A claim's uid.")
    since = serializers.DateTimeField(required=False, help_text="Records that begin then or later.")
    until = serializers.DateTimeField(required=False, help_text="Records that begin before that.")
    format = serializers.ChoiceField(
        choices=["json", "csv"],
        required=False,
        help_text="`csv`: all records that match at once, the oldest first; as `Accept: text/csv`.",
    )


class UsageDayFilters(_UsageFilters):
    lookups = {**_LOOKUPS, "first": "day__gte", "last": "day__lte"}

    first = serializers.DateField(required=False, help_text="Days from that one on.")
    last = serializers.DateField(required=False, help_text="Days up to that one.")


class UsageMonthsQuery(Query):
    first = serializers.DateField(required=False, help_text="By default the first of this month.")
    last = serializers.DateField(required=False, help_text="By default the last of its month.")
    by = serializers.ChoiceField(choices=GROUPINGS, default=Grouping.TEAM.value)


class CostSerializer(serializers.Serializer[Cost]):
    amount = serializers.DecimalField(
        max_digits=None,
        decimal_places=2,
        help_text="Of what has a rate; 0 where nothing has one.",
    )
    unrated = serializers.ListField(
        child=serializers.CharField(), help_text="Chips that were used and have no rate."
    )


class UsageMonthSerializer(_Used):
    month = serializers.SerializerMethodField(help_text="As `2026-05`.")
    name = serializers.CharField(help_text="Of the team, queue, …; empty where nobody is known.")
    cost = CostSerializer()
    share = serializers.FloatField(help_text="Of all that was used, 0 to 1.")

    def get_month(self, row: ReportRow) -> str:
        return f"{row.when:%Y-%m}"


class UsageMonthsSerializer(_Used):
    """Months with what is held right now, counted up to ``at``."""

    first = serializers.DateField(source="period.first")
    last = serializers.DateField(source="period.last")
    at = serializers.DateTimeField()
    currency = serializers.SerializerMethodField()
    cost = CostSerializer()
    rows = UsageMonthSerializer(many=True)

    def get_currency(self, _report: Any) -> str:
        return str(settings.NINEFOLD_CURRENCY)


class CardRateSerializer(serializers.ModelSerializer[CardRate]):
    """What an hour of one card of a chip is charged at in reports."""

    currency = serializers.SerializerMethodField()

    class Meta:
        model = CardRate
        fields = ("chip", "per_hour", "currency")

    def get_currency(self, _rate: CardRate) -> str:
        return str(settings.NINEFOLD_CURRENCY)


class CardRateChangeSerializer(StrictSerializer[Any]):
    per_hour = serializers.DecimalField(max_digits=12, decimal_places=4, min_value=Decimal(0))
