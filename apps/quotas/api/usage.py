"""The ledger by REST: its records, days and months, and what a card costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.quotas.api import usage_serializers as serializers
from apps.quotas.models import CardRate, UsageDay, UsageRecord
from apps.quotas.selectors.usage import days_visible, records_visible
from apps.quotas.selectors.usage_reports import (
    LONGEST_REPORT,
    Grouping,
    Rhythm,
    usage_report,
)
from apps.quotas.services.usage import rate_set
from controlplane.domain.permissions import Permission, Scope
from controlplane.domain.usage import Period, month_of
from controlplane.ports import registry
from controlplane.web import spreadsheets
from controlplane.web.parsers import BoundedJSONParser
from controlplane.web.rest import Query, ResourceViewSet

_CHIP = OpenApiParameter("chip", OpenApiTypes.STR, OpenApiParameter.PATH)
_CSV_FIELDS = (
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
)


class CSVRenderer(BaseRenderer):
    """Stands for an answer that the view streams by itself."""

    media_type = "text/csv"
    format = "csv"


class UsageRecordViewSet(ResourceViewSet[UsageRecord]):
    """What the caller's teams held, and others in queues that the caller looks after."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.UsageRecordSerializer
    queries = {"list": serializers.UsageRecordFilters}
    renderer_classes = (JSONRenderer, CSVRenderer)

    def get_queryset(self) -> QuerySet[UsageRecord]:
        return records_visible(self.request.user)

    @extend_schema(
        summary="Records of the ledger",
        description="Who held which cards from when to when. What is held now is recorded when it "
        "ends, and at midnight (UTC).",
        tags=["scheduling"],
        parameters=[serializers.UsageRecordFilters],
        responses={
            (200, "application/json"): serializers.UsageRecordSerializer(many=True),
            (200, "text/csv"): OpenApiTypes.STR,
        },
    )
    def list(self, request: Request) -> HttpResponseBase:
        rows = self.filter_queryset(self.get_queryset())
        if request.accepted_renderer.format != CSVRenderer.format:
            page = self.paginate_queryset(rows)
            return self.get_paginated_response(self.get_serializer(page, many=True).data)
        return spreadsheets.download(
            filename="usage-records.csv",
            head=_CSV_FIELDS,
            lines=_csv_lines(rows.order_by("pk").iterator(chunk_size=1000)),
        )


def _csv_lines(rows: Iterable[UsageRecord]) -> Iterator[list[object]]:
    for row in rows:
        yield [
            row.claim.uid,
            row.team.name,
            row.queue.name,
            row.person.username if row.person else "",
            row.work_kind,
            row.work_uid,
            row.work_name,
            row.chip,
            row.cards,
            row.since,
            row.until,
            row.card_microseconds,
        ]


class UsageDayViewSet(mixins.ListModelMixin, ResourceViewSet[UsageDay]):
    """The ledger by day, as it was summed within the last minutes."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.UsageDaySerializer
    queries = {"list": serializers.UsageDayFilters}

    def get_queryset(self) -> QuerySet[UsageDay]:
        return days_visible(self.request.user)

    @extend_schema(
        summary="Days of the ledger",
        tags=["scheduling"],
        parameters=[serializers.UsageDayFilters],
    )
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)


class UsageMonthsView(APIView):
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Who used what by month, and what it cost",
        description="With what is held right now. A month of which only some days are asked for is "
        "summed of these.",
        tags=["scheduling"],
        parameters=[serializers.UsageMonthsQuery],
        responses=serializers.UsageMonthsSerializer,
    )
    def get(self, request: Request) -> Response:
        query, at = serializers.UsageMonthsQuery.read(request), timezone.now()
        first = query.get("first") or month_of(at.date()).first
        last = query.get("last") or month_of(first).last
        if not 0 <= (last - first).days < LONGEST_REPORT:
            raise ValidationError(
                {"last": [f"must be 0 to {LONGEST_REPORT - 1} days after {first}, got {last}"]}
            )
        report = usage_report(
            request.user,
            period=Period(first=first, last=last),
            by=Grouping(query["by"]),
            per=Rhythm.MONTH,
            at=at,
        )
        return Response(serializers.UsageMonthsSerializer(report).data)


class CardRatesView(APIView):
    token_scope = Scope.ADMIN

    @extend_schema(
        summary="What cards cost",
        description="Chips that are not listed have no rate.",
        tags=["scheduling"],
        operation_id="usage_rates_list",
        responses=serializers.CardRateSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        Query.read(request)
        rows = CardRate.objects.all()
        return Response(serializers.CardRateSerializer(rows, many=True).data)


class CardRateView(APIView):
    token_scope = Scope.ADMIN
    parser_classes = (BoundedJSONParser,)

    @extend_schema(
        summary="Set what a card of a chip costs",
        description="For administrators of the company. It holds for past reports too.",
        tags=["scheduling"],
        parameters=[_CHIP],
        request=serializers.CardRateChangeSerializer,
        responses=serializers.CardRateSerializer,
    )
    def put(self, request: Request, chip: str) -> Response:
        self._allowed(request, chip)
        body = serializers.CardRateChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        rate = rate_set(
            chip=chip, per_hour=body.validated_data["per_hour"], actor=acting_user(request)
        )
        return Response(serializers.CardRateSerializer(rate).data)

    @extend_schema(
        summary="Take the rate of a chip away",
        tags=["scheduling"],
        parameters=[_CHIP],
        responses={204: None},
    )
    def delete(self, request: Request, chip: str) -> Response:
        self._allowed(request, chip)
        rate_set(chip=chip, per_hour=None, actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _allowed(self, request: Request, chip: str) -> None:
        Query.read(request)
        accounts.require(request.user, Permission.MANAGE_QUEUES, team=None)
        if chip not in registry.chips():
            raise Http404
