"""REST of notifications and of webhooks: serializers, views and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent, post_action
from apps.accounts.api.serializers import TeamOwnedSerializer
from apps.notifications.models import Notification, Webhook, WebhookDelivery, WebhookTry
from apps.notifications.selectors import notifications as inbox
from apps.notifications.selectors import webhooks as selectors
from apps.notifications.selectors.notifications import (
    event_subject_url,
    render_notification,
)
from apps.notifications.selectors.webhooks import SENDABLE, webhooks_visible
from apps.notifications.services import notifications, webhooks
from apps.notifications.services.webhooks import WebhookRefused
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.permissions import Scope
from controlplane.web import rest
from controlplane.web.problem_details import register_problem
from controlplane.web.reasons import ReasonSerializerField, reason_as_response_data


class NotificationSerializer(serializers.ModelSerializer[Notification]):
    team = rest.ObjectReference(source="event.team", allow_null=True)
    subject = serializers.SerializerMethodField(help_text="Kind, uid and name of the object.")
    title = serializers.SerializerMethodField(help_text="Title.")
    reason = serializers.SerializerMethodField(help_text="Reason; may be empty.")
    link = serializers.SerializerMethodField(help_text="Path of the page of the object.")

    class Meta:
        model = Notification
        fields = (
            "uid",
            "kind",
            "severity",
            "title",
            "reason",
            "subject",
            "team",
            "link",
            "count",
            "first_at",
            "at",
            "read_at",
        )

    def get_subject(self, row: Notification) -> dict[str, str]:
        event = row.event
        return {
            "kind": event.subject_kind,
            "uid": event.subject_uid,
            "name": event.subject_name,
        }

    def get_title(self, row: Notification) -> str:
        return render_notification(row.event).title

    @extend_schema_field(ReasonSerializerField)
    def get_reason(self, row: Notification) -> dict[str, Any]:
        return reason_as_response_data(row.event.reason)

    def get_link(self, row: Notification) -> str:
        return event_subject_url(row.event)


class NotificationFilters(rest.ListFilters):
    kind = rest.EnumField(NotificationKind, required=False)
    unread = serializers.BooleanField(required=False, help_text="Return only unread notifications.")
    lookups = {"kind": "kind"}

    @classmethod
    def apply(cls, rows: QuerySet[rest.M, Any], given: Mapping[str, Any]) -> QuerySet[rest.M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(read_at__isnull=given["unread"]) if "unread" in given else rows


class MarkedReadCountSerializer(serializers.Serializer[Any]):
    marked = serializers.IntegerField(help_text="Number of notifications that were unread.")


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    team = rest.ObjectReference()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=SENDABLE))

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "team",
            "url",
            "kinds",
            "active",
            "error",
            "created_by",
            "created_at",
            "tried_at",
            "last_status",
            "last_error",
        )


class WebhookWithSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(
        help_text="Secret that signs each request, shown only in this response."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookWithNewSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(
        help_text="New secret if scheme, host or port of the URL changed, shown only in this "
        "response; else empty."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookCreateSerializer(TeamOwnedSerializer):
    name = serializers.CharField(max_length=80)
    url = serializers.CharField(max_length=2000)
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=SENDABLE), min_length=1)
    active = serializers.BooleanField(required=False, help_text="False: paused. Default: true.")


class WebhookChangeSerializer(rest.StrictSerializer[Any]):
    url = serializers.CharField(max_length=2000, required=False)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=SENDABLE), min_length=1, required=False
    )
    active = serializers.BooleanField(required=False, help_text="False: paused.")


class WebhookTrySerializer(serializers.ModelSerializer[WebhookTry]):
    class Meta:
        model = WebhookTry
        fields = ("at", "status", "seconds", "error", "answer")


class WebhookDeliveryFilters(rest.ListFilters):
    webhook = rest.VisibleUidField(
        visible=webhooks_visible, required=False, help_text="Uid of the object."
    )
    state = rest.EnumField(DeliveryState, required=False)
    lookups = {"webhook": "webhook", "state": "state"}


class WebhookDeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    webhook = rest.ObjectReference()
    event = serializers.CharField(source="event.uid", help_text="Event id that the receiver gets.")
    kind = serializers.CharField(source="event.kind")
    tries = WebhookTrySerializer(source="history", many=True, help_text="Newest first.")

    class Meta:
        model = WebhookDelivery
        fields = (
            "uid",
            "webhook",
            "event",
            "kind",
            "state",
            "created_at",
            "next_try_at",
            "ended_at",
            "tries",
        )


class NotificationViewSet(rest.CollectionViewSet[Notification]):
    """The caller's own."""

    tag = "notifications"
    summaries = {"list": "My notifications", "retrieve": "A notification"}
    token_scope = Scope.ALL
    queries = {"list": NotificationFilters}
    serializer_class = NotificationSerializer
    visible = staticmethod(inbox.notifications_of_user)

    @post_action("Mark a notification as read")
    def read(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        user = acting_user(request)
        notifications.notifications_mark_read(user=user, uids=[row.uid], at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @post_action(
        "Mark all of my notifications as read",
        responses=MarkedReadCountSerializer,
        detail=False,
        url_path="read-all",
    )
    def read_all(self, request: Request) -> Response:
        user = acting_user(request)
        marked = notifications.notifications_mark_read(user=user, uids=None, at=timezone.now())
        return Response({"marked": marked})


class WebhookViewSet(rest.CollectionViewSet[Webhook]):
    """Those of teams that the caller may manage."""

    tag = "notifications"
    summaries = {"list": "Webhooks of my teams", "retrieve": "A webhook"}
    token_scope = Scope.ADMIN
    serializer_class = WebhookSerializer
    visible = staticmethod(selectors.webhooks_visible)

    @extend_schema(
        summary="Create a webhook",
        description="The URL is called for each event of the selected kinds. The secret is shown "
        "only in this response.",
        request=WebhookCreateSerializer,
        responses={201: WebhookWithSecretSerializer},
    )
    @rest.supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(WebhookCreateSerializer)
        webhook, secret = webhooks.webhook_create(actor=acting_user(request), **given)
        body = {**self.get_serializer(webhook).data, "secret": secret}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change, pause or resume a webhook",
        description="If scheme, host or port of the URL change, a new secret is created and shown "
        "only in this response.",
        request=WebhookChangeSerializer,
        responses=WebhookWithNewSecretSerializer,
    )
    @rest.supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        webhook, actor = self.get_object(), acting_user(request)
        given = self.validated_body(WebhookChangeSerializer)
        active = given.pop("active", None)
        secret = webhooks.webhook_change(webhook=webhook, actor=actor, active=active, **given)
        return Response({**self.get_serializer(webhook).data, "secret": secret})

    @extend_schema(summary="Delete a webhook")
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        webhooks.webhook_delete(webhook=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @post_action("Rotate the secret of a webhook", responses=WebhookWithSecretSerializer)
    def rotate(self, request: Request, uid: str) -> Response:
        webhook = self.get_object()
        secret = webhooks.webhook_secret_rotate(webhook=webhook, actor=acting_user(request))
        return Response({**self.get_serializer(webhook).data, "secret": secret})

    @post_action(
        "Send a test event to a webhook",
        "The result is shown by the delivery.",
        responses={202: WebhookDeliverySerializer},
    )
    def test(self, request: Request, uid: str) -> Response:
        delivery = webhooks.webhook_test(
            webhook=self.get_object(), actor=acting_user(request), at=timezone.now()
        )
        body = WebhookDeliverySerializer(delivery).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


class WebhookDeliveryViewSet(rest.CollectionViewSet[WebhookDelivery]):
    """To webhooks of teams that the caller may manage."""

    tag = "notifications"
    summaries = {
        "list": "Webhook deliveries",
        "retrieve": "Get a webhook delivery with all attempts",
    }
    token_scope = Scope.ADMIN
    queries = {"list": WebhookDeliveryFilters}
    serializer_class = WebhookDeliverySerializer
    visible = staticmethod(selectors.webhook_deliveries_visible)

    @post_action(
        "Send a delivery again",
        "The id and the content are unchanged.",
        responses={202: WebhookDeliverySerializer},
    )
    def again(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        webhooks.webhook_delivery_retry(delivery=self.get_object(), actor=actor, at=timezone.now())
        body = self.get_serializer(self.get_object()).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


register_problem(WebhookRefused, code="webhook-refused")


router = SimpleRouter(trailing_slash=False)
router.register("notifications", NotificationViewSet, basename="api-notification")
router.register("webhooks", WebhookViewSet, basename="api-webhook")
router.register("deliveries", WebhookDeliveryViewSet, basename="api-delivery")

urlpatterns = router.urls
