"""Queues by REST: looked at, made, changed, moved and retired."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.quotas import selectors, services
from apps.quotas.api import queue_serializers as serializers
from apps.quotas.api.claim_serializers import AskQuery
from apps.quotas.api.claims import QueueAnswers
from apps.quotas.models import Queue
from apps.quotas.selectors.trees import standings_by_queue, tree_documents, tree_fingerprint
from apps.quotas.services import TreeAct, TreeEdit
from controlplane.domain.permissions import Scope
from controlplane.domain.queue_documents import NEW, QueueDocument
from controlplane.domain.queue_edits import fingerprint

IF_MATCH = OpenApiParameter(
    name="If-Match",
    type=str,
    location=OpenApiParameter.HEADER,
    description=(
        "The ETag or fingerprint of the tree that you looked at. If it has been changed since, nothing "
        "is done (412)."
    ),
)


def seen_by(request: Request) -> str:
    """The fingerprint that the client looked at; empty where it does not say."""
    given = request.headers.get("If-Match", "").strip()
    return "" if given == "*" else given.removeprefix("W/").strip('"')


def etag(value: str) -> dict[str, str]:
    return {"ETag": f'"{value}"'}


def previewed(edit: TreeEdit, request: Request) -> Response:
    """What the edit would mean, as the person who asks may know it."""
    preview = services.tree_preview(edit, at=timezone.now(), by_person=acting_user(request))
    return Response(
        serializers.TreePreviewSerializer(preview).data, headers=etag(preview.fingerprint)
    )


@extend_schema_view(
    list=extend_schema(summary="Queues", tags=["scheduling"]),
    retrieve=extend_schema(summary="A queue", tags=["scheduling"]),
)
class QueueViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, QueueAnswers):
    """Queues of the caller's teams and those for every team, with what each has, borrows and lends."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.QueueSerializer
    queries = {
        "create": serializers.DryRunQuery,
        "partial_update": serializers.DryRunQuery,
        "destroy": serializers.RetireQuery,
        "reclaim_preview": AskQuery,
    }

    def get_queryset(self) -> QuerySet[Queue]:
        return selectors.queues_visible(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        shown = self.action in ("list", "retrieve")
        standings = {"standings": standings_by_queue()} if shown else {}
        return {**super().get_serializer_context(), **standings}

    @extend_schema(
        summary="Make a queue",
        tags=["scheduling"],
        parameters=[serializers.DryRunQuery, IF_MATCH],
        request=serializers.QueueWriteSerializer,
        responses={200: serializers.TreePreviewSerializer, 201: serializers.QueueSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(serializers.QueueWriteSerializer)
        document = serializers.document_of(given, uid="")
        edit = TreeEdit(
            queues={f"{NEW}{document.name}": document},
            act=TreeAct.CREATE,
            note=given.get("note", ""),
            seen=seen_by(request),
        )
        return self._answered(edit, code=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change or move a queue",
        description="What is left out stays as it is.",
        tags=["scheduling"],
        parameters=[serializers.DryRunQuery, IF_MATCH],
        request=serializers.QueueWriteSerializer,
        responses={
            (200, "application/json"): serializers.QueueOrPreviewSerializer,
        },
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        document, now = self._document(uid)
        body = serializers.QueueWriteSerializer(
            data=request.data, partial=True, context=self.get_serializer_context()
        )
        body.is_valid(raise_exception=True)
        fields = dict(body.validated_data)
        note = fields.pop("note", "")
        changed = replace(document, **fields)
        edit = TreeEdit(
            queues={uid: changed},
            act=TreeAct.EDIT if changed.parent == document.parent else TreeAct.MOVE,
            note=note,
            # What the body leaves out is as it was read a moment ago.
            seen=seen_by(request) or now,
        )
        return self._answered(edit)

    @extend_schema(
        summary="Retire a queue",
        description="Nothing may wait or hold cards in it, and no queue be below it. Its name stays taken.",
        tags=["scheduling"],
        parameters=[serializers.RetireQuery, IF_MATCH],
        responses={200: serializers.TreePreviewSerializer, 204: None},
    )
    def destroy(self, request: Request, uid: str) -> Response:
        self._document(uid)
        edit = TreeEdit(
            queues={uid: None},
            act=TreeAct.RETIRE,
            note=self.query.get("note", ""),
            seen=seen_by(request),
        )
        return self._answered(edit, code=status.HTTP_204_NO_CONTENT)

    def _document(self, uid: str) -> tuple[QueueDocument, str]:
        """The queue of this address, and the fingerprint of the tree that it is in."""
        self.get_object()
        documents = tree_documents()
        if uid not in documents:
            raise Http404
        return documents[uid], fingerprint(documents)

    def _answered(self, edit: TreeEdit, *, code: int = status.HTTP_200_OK) -> Response:
        """What the edit would mean, if that is all that is asked; otherwise it is done."""
        if self.query["dry_run"]:
            return previewed(edit, self.request)
        change = services.tree_apply(edit, actor=acting_user(self.request), at=timezone.now())
        headers = etag(tree_fingerprint())
        if code == status.HTTP_204_NO_CONTENT:
            return Response(status=code, headers=headers)
        (uid,) = change.after
        context = {**self.get_serializer_context(), "standings": standings_by_queue()}
        queue = selectors.queues_visible(self.request.user).get(uid=uid)
        shown = serializers.QueueSerializer(queue, context=context)
        return Response(shown.data, status=code, headers=headers)
