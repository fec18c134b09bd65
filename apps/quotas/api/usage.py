from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.quotas.models import CardRate, UsageDay, UsageRecord
from apps.quotas.selectors.usage import (
    MAX_REPORT_DAYS,
    UsageReportGrouping,
    UsageReportInterval,
    UsageReportRow,
    usage_days_visible,
    usage_records_visible,
    usage_report,
)
from apps.quotas.services.usage_ledger import card_rate_set
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.domain.quotas.card_hours import Cost, DayRange, card_hours, month_of
from controlplane.ports import adapter_registry
from controlplane.web import downloads, rest

_EXACT = "Cards × microseconds: exact, and sums of it are."


class _CardHoursSerializer(serializers.Serializer[Any]):
    card_microseconds = serializers.IntegerField(help_text=_EXACT)
    card_hours = serializers.SerializerMethodField(
        help_text="Card-hours, rounded to three decimals."
    )

    def get_card_hours(self, row: Any) -> str:
        return str(card_hours(row.card_microseconds))


class UsageRecordSerializer(_CardHoursSerializer, serializers.ModelSerializer[UsageRecord]):
    """Cards of one chip that a claim held for a time, on one day (UTC)."""

    claim = serializers.CharField(source="claim.uid", help_text="Uid of the claim.")
    team = rest.ObjectReference()
    queue = rest.ObjectReference()
    user = serializers.CharField(
        source="user.username",
        default=None,
        allow_null=True,
        help_text="User who requested the workload.",
    )
    card_microseconds = serializers.IntegerField(help_text=_EXACT)

    class Meta:
        model = UsageRecord
        fields = (
            "claim",
            "team",
            "queue",
            "user",
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


class UsageDaySerializer(_CardHoursSerializer, serializers.ModelSerializer[UsageDay]):
    """The records of one day (UTC), summed."""

    team = rest.ObjectReference()
    queue = rest.ObjectReference()
    user = serializers.CharField(source="user.username", default=None, allow_null=True)
    card_microseconds = serializers.IntegerField(help_text=_EXACT)
    claims = serializers.IntegerField(help_text="Number of claims.")

    class Meta:
        model = UsageDay
        fields = (
            "day",
            "team",
            "queue",
            "user",
            "chip",
            "work_kind",
            "card_microseconds",
            "card_hours",
            "claims",
        )


class _UsageFilters(rest.ListFilters):
    team = serializers.CharField(required=False, help_text="Slug or uid of the team.")
    queue = serializers.CharField(required=False, help_text="Name of the queue.")
    user = serializers.CharField(required=False, help_text="User name.")
    chip = serializers.CharField(required=False)
    work_kind = serializers.ChoiceField(choices=["job", "deployment"], required=False)


_LOOKUPS = {
    "team": "team__uid",
    "queue": "queue__name",
    "user": "user__username",
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

    work = serializers.CharField(required=False, help_text="Uid of a job or a deployment.")
    claim = serializers.CharField(required=False, help_text="Uid of the claim.")
    since = serializers.DateTimeField(
        required=False, help_text="Return records that begin at this time or later."
    )
    until = serializers.DateTimeField(
        required=False, help_text="Return records that begin before this time."
    )
    format = serializers.ChoiceField(
        choices=["json", "csv"],
        required=False,
        help_text="`csv`: all matching records in one response, oldest first, as with `Accept: "
        "text/csv`.",
    )


class UsageDayFilters(_UsageFilters):
    lookups = {**_LOOKUPS, "first": "day__gte", "last": "day__lte"}

    first = serializers.DateField(required=False, help_text="First day.")
    last = serializers.DateField(required=False, help_text="Last day.")


class UsageMonthsQuery(rest.QuerySerializer):
    first = serializers.DateField(
        required=False, help_text="First day. Default: the first day of this month."
    )
    last = serializers.DateField(
        required=False, help_text="Last day. Default: the last day of the month of `first`."
    )
    by = rest.EnumField(UsageReportGrouping, default=UsageReportGrouping.TEAM.value)


class CostSerializer(serializers.Serializer[Cost]):
    amount = serializers.DecimalField(
        max_digits=None,
        decimal_places=2,
        help_text="Cost of usage with a rate; 0 if there is none.",
    )
    unrated = rest.TextListField(help_text="Used chips without a rate.")


class UsageMonthSerializer(_CardHoursSerializer):
    month = serializers.SerializerMethodField(help_text="Month, for example `2026-05`.")
    name = serializers.CharField(
        help_text="Name of the team, queue or other group; empty if unknown."
    )
    cost = CostSerializer()
    share = serializers.FloatField(help_text="Share of the total usage, 0 to 1.")

    def get_month(self, row: UsageReportRow) -> str:
        return f"{row.when:%Y-%m}"


class UsageMonthsSerializer(_CardHoursSerializer):
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


class CardRateChangeSerializer(rest.StrictSerializer[Any]):
    per_hour = serializers.DecimalField(max_digits=12, decimal_places=4, min_value=Decimal(0))


_CHIP = OpenApiParameter("chip", OpenApiTypes.STR, OpenApiParameter.PATH)
_CSV_FIELDS = tuple(name for name in UsageRecordSerializer.Meta.fields if name != "card_hours")


class CSVRenderer(BaseRenderer):
    """Declares CSV for content negotiation; the view streams the response itself."""

    media_type = "text/csv"
    format = "csv"


class UsageRecordViewSet(rest.ResourceViewSet[UsageRecord]):
    """What the caller's teams held, and others in queues that the caller looks after."""

    tag = "scheduling"
    watch_key = "pk"
    append_only = True
    token_scope = Scope.ADMIN
    serializer_class = UsageRecordSerializer
    queries = {"list": UsageRecordFilters}
    renderer_classes = (JSONRenderer, CSVRenderer)
    visible = staticmethod(usage_records_visible)

    @extend_schema(
        summary="Usage records",
        description="Card usage with owner, start and end. Current allocations are recorded when they "
        "end, and at midnight (UTC).",
        responses={
            (200, "application/json"): UsageRecordSerializer(many=True),
            (200, "text/csv"): OpenApiTypes.STR,
        },
    )
    def list(self, request: Request) -> HttpResponseBase:
        rows = self.filter_queryset(self.get_queryset())
        if request.accepted_renderer.format != CSVRenderer.format:
            page = self.paginate_queryset(rows)
            return self.get_paginated_response(self.get_serializer(page, many=True).data)
        return downloads.csv_download(
            filename="usage-records.csv",
            head=_CSV_FIELDS,
            lines=_usage_record_csv_lines(rows.order_by("pk").iterator(chunk_size=1000)),
        )


def _usage_record_csv_lines(rows: Iterable[UsageRecord]) -> Iterator[list[object]]:
    for row in rows:
        yield [
            row.claim.uid,
            row.team.name,
            row.queue.name,
            row.user.username if row.user else "",
            row.work_kind,
            row.work_uid,
            row.work_name,
            row.chip,
            row.cards,
            row.since,
            row.until,
            row.card_microseconds,
        ]


class UsageDayViewSet(mixins.ListModelMixin, rest.ResourceViewSet[UsageDay]):
    """The ledger by day, as it was summed within the last minutes."""

    tag = "scheduling"
    watchable = False
    token_scope = Scope.ADMIN
    serializer_class = UsageDaySerializer
    queries = {"list": UsageDayFilters}
    visible = staticmethod(usage_days_visible)

    @extend_schema(summary="Usage by day")
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)


class UsageMonthsView(rest.StrictView):
    tag = "scheduling"
    token_scope = Scope.ADMIN
    queries = {"get": UsageMonthsQuery}

    @extend_schema(
        summary="Usage and cost by month",
        description="Includes current allocations. A month that is requested in part is the sum of the "
        "requested days.",
        responses=UsageMonthsSerializer,
    )
    def get(self, request: Request) -> Response:
        query, at = self.query, timezone.now()
        first = query.get("first") or month_of(at.date()).first
        last = query.get("last") or month_of(first).last
        if not 0 <= (last - first).days < MAX_REPORT_DAYS:
            raise ValidationError(
                {"last": [f"must be 0 to {MAX_REPORT_DAYS - 1} days after {first}, got {last}"]}
            )
        report = usage_report(
            request.user,
            period=DayRange(first=first, last=last),
            by=UsageReportGrouping(query["by"]),
            per=UsageReportInterval.MONTH,
            at=at,
        )
        return Response(UsageMonthsSerializer(report).data)


@extend_schema_view(
    list=extend_schema(summary="Card rates", description="Chips that are not listed have no rate.")
)
class CardRatesViewSet(mixins.ListModelMixin, rest.ResourceViewSet[CardRate]):
    tag = "scheduling"
    token_scope = Scope.ADMIN
    pagination_class = None
    watch_key = "chip"
    serializer_class = CardRateSerializer

    def get_queryset(self) -> QuerySet[CardRate]:
        return CardRate.objects.all()


class CardRateView(rest.StrictView):
    tag = "scheduling"
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Set the rate of a chip",
        description="Administrators only. Applies to past reports too.",
        parameters=[_CHIP],
        request=CardRateChangeSerializer,
        responses=CardRateSerializer,
    )
    @rest.supports_dry_run
    def put(self, request: Request, chip: str) -> Response:
        self._require_rate_permission(request, chip)
        given = self.validated_body(CardRateChangeSerializer)
        rate = card_rate_set(chip=chip, actor=acting_user(request), **given)
        return Response(CardRateSerializer(rate).data)

    @extend_schema(summary="Delete the rate of a chip", parameters=[_CHIP], responses={204: None})
    @rest.supports_dry_run
    def delete(self, request: Request, chip: str) -> Response:
        self._require_rate_permission(request, chip)
        card_rate_set(chip=chip, per_hour=None, actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_rate_permission(self, request: Request, chip: str) -> None:
        accounts.require_permission(request.user, Permission.MANAGE_QUEUES, team=None)
        if chip not in adapter_registry.all_chips():
            raise Http404
