"""The queue tree as a file, and the history of its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import post_action
from apps.quotas import services
from apps.quotas.api import queues
from apps.quotas.api.queues import (
    IF_MATCH,
    etag_header,
    if_match_tree_fingerprint,
    queue_change_preview_response,
)
from apps.quotas.models import QueueChange
from apps.quotas.selectors.queue_trees import (
    current_tree_fingerprint,
    queue_changes_visible,
    queue_documents_visible,
    queue_names,
)
from apps.quotas.services import QueueTreeUnchanged
from apps.quotas.services.queue_tree_files import (
    MAX_FILE_BYTES,
    dump_yaml,
    load_yaml,
    tree_edit_from_content,
)
from controlplane.domain.common.permissions import Scope
from controlplane.domain.quotas.queue_files import FILE_FIELDS, dump_queue_file
from controlplane.domain.quotas.queues import QUOTA_FIELDS
from controlplane.web import rest

YAML = "application/yaml"


class YAMLRenderer(BaseRenderer):
    """Renders the tree as YAML."""

    media_type = YAML
    format = "yaml"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return dump_yaml(data).encode()


class YAMLParser(BaseParser):
    """Parses YAML with plain values only, bounded in size and without anchors."""

    media_type = YAML

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """:raises BodyTooLarge: if the announced content length exceeds the limit.
        :raises InvalidQueueFile: if it is not valid YAML of that kind.
        """
        rest.require_body_within(parser_context, limit=MAX_FILE_BYTES)
        return load_yaml(stream.read().decode("utf-8", errors="replace"))


class QueueFileQuotaSerializer(rest.StrictSerializer[Any]):
    """The quota of a queue for one chip; what is left out has its default."""

    def get_fields(self) -> dict[str, Any]:
        return {
            name: queues.QueueValueSerializerField(each, required=False)
            for name, each in QUOTA_FIELDS.items()
        }


class QueueFileEntrySerializer(rest.StrictSerializer[Any]):
    """A queue of a file, with the queues below it; what is left out has its default."""

    team = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="Slug of the team; null: every team; left out: that of the queue above.",
    )
    cards = serializers.DictField(
        child=QueueFileQuotaSerializer(),
        required=False,
        help_text="Quotas by chip; total: all chips together.",
    )

    def get_fields(self) -> dict[str, Any]:
        declared = {
            name: queues.QueueValueSerializerField(each, required=False)
            for name, each in FILE_FIELDS.items()
        }
        below = serializers.DictField(
            child=QueueFileEntrySerializer(), required=False, help_text="Queues below it, by name."
        )
        return {**super().get_fields(), **declared, "below": below}


class QueueFileSerializer(rest.StrictSerializer[Any]):
    """A queue tree, or a part of one, as a file."""

    below = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="Name of the queue below which the queues are; null: the top level; left out: the file is the "
        "whole tree.",
    )
    queues = serializers.DictField(child=QueueFileEntrySerializer(), help_text="Queues by name.")


class QueueTreeQuery(rest.QuerySerializer):
    of = serializers.CharField(
        required=False, max_length=60, help_text="Name of a queue, to return only its subtree."
    )


class QueueTreeImportQuery(queues.QueueDryRunQuery):
    prune = serializers.BooleanField(
        default=False,
        help_text="Retire queues in the same part of the tree that are not in the file.",
    )
    note = serializers.CharField(
        required=False, max_length=500, help_text="Note, stored in the history."
    )


class QueueTreeView(rest.StrictView):
    """Queues of the caller's teams and those for every team, as one file."""

    tag = "scheduling"
    token_scope = Scope.ADMIN
    parser_classes = (rest.BoundedJSONParser, YAMLParser)
    renderer_classes = (JSONRenderer, YAMLRenderer)
    queries = {"get": QueueTreeQuery, "put": QueueTreeImportQuery}

    @extend_schema(
        summary="The queue tree as a file",
        description="JSON, or YAML if Accept prefers it, in the format that PUT accepts.",
        responses={
            (200, "application/json"): QueueFileSerializer,
            (200, YAML): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request) -> Response:
        name = self.query.get("of")
        documents = queue_documents_visible(request.user)
        uids = {document.name: uid for uid, document in documents.items()}
        if name is not None and name not in uids:
            raise Http404
        file = dump_queue_file(documents, of=uids[name] if name is not None else "")
        return Response(file, headers=etag_header(current_tree_fingerprint()))

    @extend_schema(
        summary="Apply a file to the queue tree",
        description="Queues that are not in the file are kept unless prune is set.",
        parameters=[IF_MATCH],
        request={"application/json": QueueFileSerializer, YAML: OpenApiTypes.STR},
        responses={
            (200, "application/json"): queues.SavedOrPreviewSerializer,
        },
    )
    def put(self, request: Request) -> Response:
        query = self.query
        edit = tree_edit_from_content(
            request.data,
            prune=query["prune"],
            note=query.get("note", ""),
            seen=if_match_tree_fingerprint(request),
        )
        if query["dry_run"]:
            return queue_change_preview_response(edit, request)
        try:
            change = services.queue_tree_apply(edit, actor=acting_user(request), at=timezone.now())
        except QueueTreeUnchanged:
            return Response({"change": None}, headers=etag_header(current_tree_fingerprint()))
        return Response(
            {"change": queue_change_json(change, request)},
            headers=etag_header(current_tree_fingerprint()),
        )


def queue_change_json(change: QueueChange, request: Request) -> dict[str, Any]:
    """The change as JSON, as far as the requesting user may see it."""
    context = queue_change_serializer_context(request)
    return dict(queues.QueueChangeSerializer(change, context=context).data)


def queue_change_serializer_context(request: Request) -> dict[str, Any]:
    slugs = accounts.teams_visible(request.user).values_list("slug", flat=True)
    return {"names": queue_names(), "teams": frozenset(slugs)}


class QueueChangeViewSet(rest.CollectionViewSet[QueueChange]):
    """For administrators of the company, and for queue admins what touched queues of their teams."""

    tag = "scheduling"
    summaries = {
        "list": "Changes of the queue tree, newest first",
        "retrieve": "A change of the queue tree",
    }
    token_scope = Scope.ADMIN
    serializer_class = queues.QueueChangeSerializer
    queries = {"revert": queues.QueueDryRunQuery}
    visible = staticmethod(queue_changes_visible)

    def get_serializer_context(self) -> dict[str, Any]:
        context = super().get_serializer_context()
        return {**context, **queue_change_serializer_context(self.request)}

    @post_action(
        "Revert a change",
        "Refused (409) if one of the queues was changed again.",
        request=queues.QueueChangeRevertSerializer,
        responses={
            (200, "application/json"): queues.SavedOrPreviewSerializer,
        },
    )
    def revert(self, request: Request, uid: str) -> Response:
        change = self.get_object()
        note = self.validated_body(queues.QueueChangeRevertSerializer).get("note", "")
        if self.query["dry_run"]:
            return queue_change_preview_response(
                services.queue_change_revert_edit(change, note=note), request
            )
        back = services.queue_change_revert(
            change, actor=acting_user(request), at=timezone.now(), note=note
        )
        return Response(
            {"change": queue_change_json(back, request)},
            headers=etag_header(current_tree_fingerprint()),
        )
