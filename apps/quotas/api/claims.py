"""Why claims wait, when they start, and what would be different: mixed into the views of claims and queues."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.quotas.api import claim_serializers as serializers
from apps.quotas.models import Claim, Queue, WhatIf
from apps.quotas.selectors.policies import policy_now
from apps.quotas.selectors.previews import Ask, reclaim_preview
from apps.quotas.selectors.queues import queues_alive
from apps.quotas.selectors.sights import sight_of
from apps.quotas.selectors.what_ifs import answer_of, what_ifs_visible
from apps.quotas.selectors.whys import why_of
from apps.quotas.services.what_ifs import Question, what_if_ask
from controlplane.domain.permissions import Permission, Scope
from controlplane.web.rest import ResourceViewSet


class ClaimAnswers(ResourceViewSet[Claim]):
    """What people ask about a claim."""

    @extend_schema(
        summary="Why a claim waits, or why it got these cards",
        tags=["scheduling"],
        responses=serializers.WhySerializer,
    )
    @action(detail=True)
    def why(self, request: Request, uid: str) -> Response:
        found = why_of(self.get_object(), user=request.user)
        return Response(serializers.WhySerializer(found).data)

    @extend_schema(
        summary="When a claim that waits will probably start",
        description="From the last look ahead, at most a day; `starts_at` is null where nobody knows.",
        tags=["scheduling"],
        responses=serializers.OutlookSerializer,
    )
    @action(detail=True)
    def forecast(self, request: Request, uid: str) -> Response:
        found = why_of(self.get_object(), user=request.user)
        return Response(serializers.outlook_json(found.outlook))

    @extend_schema(
        summary="Ask what would make a claim start earlier",
        description="Nothing is touched. The answer takes a moment; look for it at `/what-ifs/{uid}`.",
        tags=["scheduling"],
        request=serializers.QuestionSerializer,
        responses={202: serializers.AnsweredSerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"], url_path="what-if")
    def what_if(self, request: Request, uid: str) -> Response:
        claim = self.get_object()
        accounts.require(request.user, Permission.VIEW, team=claim.team)
        given = self.checked(serializers.QuestionSerializer)
        question = Question(
            changes=serializers.changes_of(given, claim=claim), queue=claim.queue, claim=claim
        )
        asked = what_if_ask(question=question, actor=acting_user(request))
        return Response(_what_if(asked, request), status=status.HTTP_202_ACCEPTED)


class QueueAnswers(ResourceViewSet[Queue]):
    """What people ask about a queue."""

    @extend_schema(
        summary="Who would have to stop if a queue asked for cards now",
        description="The scheduler's own plan, with a claim that nobody made. Nothing is touched.",
        tags=["scheduling"],
        parameters=[serializers.AskQuery],
        responses=serializers.ReclaimPreviewSerializer,
    )
    @action(detail=True, url_path="reclaim-preview")
    def reclaim_preview(self, request: Request, uid: str) -> Response:
        ask = Ask(queue=self.get_object(), **self.query)
        found = reclaim_preview(
            ask,
            sight=sight_of(request.user, queues_alive()),
            policy=policy_now(),
            at=timezone.now(),
        )
        return Response(serializers.ReclaimPreviewSerializer(found).data)


@extend_schema_view(
    list=extend_schema(summary="Questions of the kind “what if”", tags=["scheduling"]),
)
class WhatIfViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[WhatIf]):
    """Questions about claims of the caller's teams."""

    token_scope = Scope.JOBS
    serializer_class = serializers.WhatIfSerializer

    def get_queryset(self) -> QuerySet[WhatIf]:
        return what_ifs_visible(self.request.user)

    @extend_schema(
        summary="A question and, once it is there, its answer",
        tags=["scheduling"],
        responses=serializers.AnsweredSerializer,
    )
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(_what_if(self.get_object(), request))


def _what_if(asked: WhatIf, request: Request) -> dict[str, Any]:
    answer = answer_of(asked, sight=sight_of(request.user, queues_alive()))
    return {
        "asked": serializers.WhatIfSerializer(asked).data,
        "answer": serializers.AnswerSerializer(answer).data if answer else None,
    }
