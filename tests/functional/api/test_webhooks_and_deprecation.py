"""The webhooks of the OpenAPI document describe what is sent; deprecated operations say so."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from jsonschema import (  # type: ignore[import-untyped]
    Draft202012Validator,
    FormatChecker,
)
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from apps.monitoring.api.webhook_schemas import webhook_schemas
from apps.monitoring.models import AlertGroup, AlertNotice
from apps.monitoring.selectors.alerts import alert_webhook_body
from apps.notifications.models import Event
from apps.notifications.selectors.webhooks import SENDABLE, delivery_body
from controlplane.domain.alerts.notifications import NOTIFICATION_TYPES
from controlplane.web.deprecation import deprecated

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
UID = "0f4f6b0c7a4e4d5b9d3c1c8f2f6f5a10"
EVIDENCE = {"isolation": UID, "cluster": "west", "cluster_uid": UID, "node": "n1", "burn_in": ""}
NOTICE = {
    "count": 1,
    "most": 2,
    "measure": "cards.temperature",
    "op": ">",
    "threshold": 90.0,
    "alerts": [{"labels": {"card": "0"}, "value": 95.0, "since": NOW.isoformat(), "link": ""}],
}


def errors_of(body: bytes, component: str) -> list[str]:
    schema = {
        "components": {"schemas": webhook_schemas()},
        "$ref": f"#/components/schemas/{component}",
    }
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    return [error.message for error in validator.iter_errors(json.loads(body))]


def test_what_is_sent_fits_the_schemas_of_webhooks() -> None:
    found = {}
    for kind in SENDABLE:
        event = Event(
            kind=kind,
            subject_kind=NOTIFICATION_TYPES[kind].subject,
            subject_uid=UID,
            subject_name="tune",
            payload={"reason": "it ended", "evidence": EVIDENCE},
            at=NOW,
        )
        found[kind.value] = errors_of(delivery_body(event), "WebhookEvent")
    group = AlertGroup(
        rule_name="hot",
        title="Card is hot",
        severity="critical",
        labels={"chip": "a100"},
        began_at=NOW,
    )
    for code, _ in AlertNotice.KINDS:
        notice = AlertNotice(
            kind=code, at=NOW, group=None if code == "test" else group, content=NOTICE
        )
        found[f"alert.{code}"] = errors_of(alert_webhook_body(notice), "AlertWebhookEvent")
    assert len(found) > 15
    assert {kind: errors for kind, errors in found.items() if errors} == {}


class EarlierView(APIView):
    authentication_classes = ()
    permission_classes = (AllowAny,)

    @deprecated(since=date(2027, 1, 15), sunset=date(2027, 7, 15), successor="/api/v1/jobs")
    @extend_schema(summary="Earlier", responses={204: None})
    def get(self, request: Request) -> Response:
        return Response(status=204)

    @extend_schema(summary="Current", request=None, responses={204: None})
    def post(self, request: Request) -> Response:
        return Response(status=204)


def test_a_deprecated_operation_has_headers_and_a_mark_in_the_document() -> None:
    view = EarlierView.as_view()
    response = view(APIRequestFactory().get("/earlier"))
    assert response["Deprecation"] == f"@{int(datetime(2027, 1, 15, tzinfo=UTC).timestamp())}"
    assert response["Sunset"] == "Thu, 15 Jul 2027 00:00:00 GMT"
    assert '</api/v1/jobs>; rel="successor-version"' in response["Link"]
    assert "Sunset" not in view(APIRequestFactory().post("/earlier"))
    document = SchemaGenerator(patterns=[path("api/v1/earlier", view)]).get_schema(public=True)
    operations = document["paths"]["/api/v1/earlier"]
    assert (operations["get"]["deprecated"], operations["get"]["summary"]) == (True, "Earlier")
    assert "deprecated" not in operations["post"]
    assert document["webhooks"]["job.failed"]["post"]["summary"] == "A job has failed"
    with pytest.raises(ValueError, match="90 days or more after since"):
        deprecated(since=date(2027, 1, 15), sunset=date(2027, 4, 14))
