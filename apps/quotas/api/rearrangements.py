"""Who sits where, and moves of running work that bring free cards together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.quotas.api import rearrangement_serializers as serializers
from apps.quotas.models import Claim, Queue, Rearrangement
from apps.quotas.selectors import rearrangements as selectors
from apps.quotas.selectors.claims import claims_of_sight
from apps.quotas.selectors.sights import Sight, sight_of
from apps.quotas.selectors.topology import Cell, NoSuchDomain, topology_of
from apps.quotas.services import rearrangements as services
from controlplane.domain.claims import ClaimState
from controlplane.domain.permissions import Scope
from controlplane.web.rest import ResourceViewSet


class TopologyView(APIView):
    """A part of the fleet, and what is below it."""

    token_scope = Scope.ADMIN

    @extend_schema(
        summary="Who sits where",
        tags=["scheduling"],
        parameters=[serializers.TopologyQuery],
        responses=serializers.TopologySerializer,
    )
    def get(self, request: Request) -> Response:
        seen = topology_of(request.user)
        try:
            here = seen.at(serializers.TopologyQuery.read(request)["at"])
        except NoSuchDomain as missing:
            raise Http404 from missing
        cells = seen.cells(here.stand) if here.stand else ()
        answer = {
            "here": serializers.domain_json(here),
            "below": [serializers.domain_json(domain) for domain in here.below],
            "cards": [_cell(cell) for cell in cells],
        }
        return Response(serializers.TopologySerializer(answer).data)


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "index": cell.index,
        "chip": cell.chip,
        "use": cell.use.name.lower(),
        "team": cell.team or None,
        "queue": cell.queue or None,
        "work": cell.claim.work_name if cell.claim and cell.named else None,
        "since": cell.claim.since if cell.claim else None,
    }


@extend_schema_view(
    list=extend_schema(
        summary="Rearrangements",
        description="Those that move work of your teams, make room for it, or that you proposed.",
        tags=["scheduling"],
        parameters=[serializers.RearrangementFilters],
    ),
    retrieve=extend_schema(summary="A rearrangement", tags=["scheduling"]),
)
class RearrangementViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Rearrangement]
):
    token_scope = Scope.ADMIN
    serializer_class = serializers.RearrangementSerializer
    queries = {"list": serializers.RearrangementFilters}

    def get_queryset(self) -> QuerySet[Rearrangement]:
        return selectors.rearrangements_visible(self.request.user)

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        """Rows are written out for the caller, who may not know what all of the work is called."""
        if args and kwargs.get("many"):
            args = ([self._json(row) for row in args[0]], *args[1:])
        elif args and isinstance(args[0], Rearrangement):
            args = (self._json(args[0]), *args[1:])
        return super().get_serializer(*args, **kwargs)

    def _json(self, row: Rearrangement) -> dict[str, Any]:
        return serializers.rearrangement_json(row, list(selectors.moves_of(row)), self._sight())

    def _sight(self) -> Sight:
        return sight_of(self.request.user, Queue.objects.all())

    @extend_schema(
        summary="Propose moves",
        description="They are worked out now, and can be approved for half an hour. "
        "With `dry_run` nothing is kept.",
        tags=["scheduling"],
        request=serializers.WishSerializer,
        responses={
            200: serializers.RearrangementSerializer,
            201: serializers.RearrangementSerializer,
        },
    )
    @idempotent
    def create(self, request: Request) -> Response:
        selectors.require_proposing(request.user)
        body = serializers.WishSerializer(
            data=request.data, claims=_waiting, context=self.get_serializer_context()
        )
        body.is_valid(raise_exception=True)
        wish, at = body.wish(), timezone.now()
        if not body.validated_data["dry_run"]:
            made = services.rearrangement_propose(wish=wish, actor=acting_user(request), at=at)
            return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
        plan = services.rearrangement_preview(wish=wish, at=at).plan
        claims = _claims(move.claim for move in plan.moves)
        answer = serializers.proposal_json(wish.purpose, plan, claims, self._sight())
        return Response(serializers.RearrangementSerializer(answer).data)

    @extend_schema(
        summary="Approve its moves",
        description="Refused if the fleet has changed since, with what has.",
        tags=["scheduling"],
        request=None,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        services.rearrangement_approve(
            rearrangement=row, actor=acting_user(request), at=timezone.now()
        )
        return Response(self.get_serializer(row).data)

    @extend_schema(
        summary="Dismiss it",
        description="While it is under way it ends once the move that is in motion has landed.",
        tags=["scheduling"],
        request=None,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def dismiss(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        services.rearrangement_dismiss(
            rearrangement=row, actor=acting_user(request), at=timezone.now()
        )
        return Response(self.get_serializer(row).data)


def _waiting(user: Any) -> QuerySet[Claim]:
    claims, _ = claims_of_sight(user)
    return claims.filter(state=ClaimState.PENDING)


def _claims(uids: Iterable[str]) -> dict[str, Claim]:
    rows = Claim.objects.filter(uid__in=list(uids)).select_related("team", "queue")
    return {row.uid: row for row in rows}
