"""The section ``webhooks`` of the OpenAPI document: what the product sends to URLs of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import translation

from apps.monitoring.models import AlertNotice
from apps.monitoring.services.alert_evaluation import NoticeContent
from apps.monitoring.services.health_notifications import (
    RepairEvidence,
    SuppressedDecisionsEvidence,
)
from apps.notifications.models import Event
from apps.notifications.selectors.notifications import NOTIFICATION_LABELS
from apps.notifications.selectors.webhooks import SENDABLE
from controlplane.domain.alerts.notifications import NOTIFICATION_TYPES
from controlplane.domain.alerts.rules import AlertSeverity
from controlplane.web.type_schemas import declared_schema

_STRING: Mapping[str, Any] = {"type": "string"}
_TIME: Mapping[str, Any] = {"type": "string", "format": "date-time"}
_LINK: Mapping[str, Any] = {
    "type": "string",
    "format": "uri",
    "description": "URL of the page of the object.",
}

WEBHOOK_EVENT: Mapping[str, Any] = {
    "type": "object",
    "description": "An event, as webhooks of teams get it. It is delivered at least once: ignore repeated ids.",
    "properties": {
        "id": {"type": "string", "description": "Uid of the event, the same in every delivery."},
        "kind": {"type": "string", "enum": [kind.value for kind in SENDABLE]},
        "at": _TIME,
        "team": {"type": ["string", "null"], "description": "Slug of the team; null: the fleet."},
        "subject": {
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": [code for code, _ in Event.SUBJECTS]},
                "uid": _STRING,
                "name": _STRING,
            },
            "required": ["kind", "uid", "name"],
            "additionalProperties": False,
        },
        "reason": {"type": "string", "description": "Message in English; may be empty."},
        "link": _LINK,
    },
    "required": ["id", "kind", "at", "team", "subject", "reason", "link"],
    "additionalProperties": False,
}
ALERT_WEBHOOK_EVENT: Mapping[str, Any] = {
    "type": "object",
    "description": "A notice of an alert, as receivers of the kind webhook get it. Without an "
    "alert, in a test, the members about alerts are absent.",
    "properties": {
        "id": {"type": "string", "description": "Uid of the notice, the same in every delivery."},
        "kind": {"type": "string", "enum": [f"alert.{code}" for code, _ in AlertNotice.KINDS]},
        "at": _TIME,
        "rule": {
            "type": ["string", "null"],
            "description": "Name of the alert rule; null: a test.",
        },
        "title": _STRING,
        "severity": {"type": "string", "enum": [severity.value for severity in AlertSeverity]},
        "labels": {"type": "object", "additionalProperties": _STRING},
        "episode": {"type": ["string", "null"], "description": "Uid of the alert; null: a test."},
        "began_at": {"type": ["string", "null"], "format": "date-time"},
        "link": _LINK,
    },
    "required": [
        "id",
        "kind",
        "at",
        "rule",
        "title",
        "severity",
        "labels",
        "episode",
        "began_at",
        "link",
    ],
    "additionalProperties": False,
}


def _with_properties(schema: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **more}}


def _header(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "schema": _STRING,
        "description": description,
    }


_EVENT_HEADERS = (
    _header("Ninefold-Kind", "Kind of the event."),
    _header("Ninefold-Id", "Uid of the event."),
    _header("Ninefold-Delivery", "Uid of the delivery."),
    _header("Ninefold-Timestamp", "Unix time in seconds at which the call was signed."),
    _header(
        "Ninefold-Signature",
        "sha256= and the HMAC-SHA256 of timestamp, full stop and body by the webhook's secret, in hexadecimal.",
    ),
)


def _call(
    name: str, *, tag: str, summary: str, schema: str, headers: tuple[dict[str, Any], ...]
) -> dict[str, Any]:
    return {
        "post": {
            "operationId": f"webhook_{name}",
            "summary": summary,
            "description": "Sent by Ninefold. A status other than 2xx is retried for about a day.",
            "tags": [tag],
            "security": [],
            "parameters": list(headers),
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}
                },
            },
            "responses": {"2XX": {"description": "Received."}},
        }
    }


def webhook_schemas() -> dict[str, Any]:
    """The components of what webhooks get, by name."""
    evidence, its_components = declared_schema(RepairEvidence | SuppressedDecisionsEvidence)
    evidence["description"] = "Of events of the fleet: what they rest on."
    notice, notice_components = declared_schema(NoticeContent)
    return {
        **its_components,
        **notice_components,
        "WebhookEvent": _with_properties(WEBHOOK_EVENT, {"evidence": evidence}),
        "AlertWebhookEvent": _with_properties(ALERT_WEBHOOK_EVENT, notice["properties"]),
    }


def add_webhooks_to_openapi(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Describe the webhooks of teams and of alert receivers; a post-processing hook of drf-spectacular."""
    result["components"].setdefault("schemas", {}).update(webhook_schemas())
    with translation.override("en"):
        calls = {
            kind.value: _call(
                kind.value.replace(".", "_"),
                tag="notifications",
                summary=str(NOTIFICATION_LABELS[kind].label),
                schema="WebhookEvent",
                headers=_EVENT_HEADERS,
            )
            for kind in NOTIFICATION_TYPES
            if kind in SENDABLE
        }
    calls["alert"] = _call(
        "alert",
        tag="alerts",
        summary="An alert fires or is resolved",
        schema="AlertWebhookEvent",
        # The secret of a receiver is optional.
        headers=(*_EVENT_HEADERS[:-1], {**_EVENT_HEADERS[-1], "required": False}),
    )
    result["webhooks"] = calls
    return result
