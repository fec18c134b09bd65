"""What REST answers where a type of the product declares the shape: it fits the OpenAPI document."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from apps.models.models import StorageRun
from apps.monitoring.models import Isolation
from apps.monitoring.services import alerts
from apps.monitoring.services.burn_ins import BurnInResult, _burn_in_evidence
from apps.quotas.models import WhatIf
from apps.telemetry.models import NodeToken
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.scheduling.what_if import (
    AddGuaranteedCards,
    AddNodes,
    ChangePriority,
    DrainNode,
    RemoveClaim,
    changes_as_json,
)
from tests import factories
from tests.api_document import api_document
from tests.factories.ailing import ailing_card
from tests.factories.measured import source
from tests.functional.api.callers import API, caller

pytestmark = pytest.mark.django_db
UID = "0f4f6b0c7a4e4d5b9d3c1c8f2f6f5a10"
CHANGES = (
    AddGuaranteedCards(queue=UID, chip="cpu", cards=-2),
    AddNodes(like=UID, nodes=2),
    DrainNode(node=UID),
    ChangePriority(claim=UID, priority=5),
    RemoveClaim(claim=UID),
)
REMOVED = {"kind": "version", "name": "tiny@1", "size": 12, "reason": "older than 30 days"}
#: As ``ninefold_runtime.burnin.outcomes.burnin_result`` writes it.
REPORT = {
    "kind": "burnin",
    "passed": True,
    "device": "cpu",
    "seconds": 1.5,
    "node": "n1",
    "torch": "2.9",
    "tests": [
        {
            "test": "matrix",
            "card": 0,
            "verdict": "passed",
            "measured": 1.0,
            "expected": None,
            "unit": "TFLOP/s",
            "message": "1.0 TFLOP/s",
        }
    ],
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api_document()


def errors(document: dict[str, Any], path: str, answer: object) -> list[str]:
    """Where the answer of GET differs from the document."""
    content = document["paths"][f"{API}{path}"]["get"]["responses"]["200"]["content"]
    schema = {"components": document["components"], **content["application/json"]["schema"]}
    # The other is what others than operators get.
    schema = {**schema, **schema.pop("anyOf", [{}])[0]}
    return [error.json_path for error in Draft202012Validator(schema).iter_errors(answer)]


def test_answers_fit_their_declared_types(document: dict[str, Any]) -> None:
    now, root = timezone.now(), factories.user("root", admin=True)
    client = caller(root)
    cluster = factories.cluster()
    cluster.options = {"namespace": "lab", "mounts": [{"host_path": "/a", "at": "/b"}]}
    cluster.kind = "kubernetes"
    cluster.save()
    source(cluster, options={"vendor": "nvidia", "targets": [{"url": "https://1.1.1.1/m"}]})
    source(cluster, name="pushed", kind="push")
    isolation = Isolation.objects.get(uid=ailing_card(actor=root, at=now)["isolation"])
    result = BurnInResult(passed=True, message="passed", content=REPORT)
    isolation.evidence = {"launch": "burnin-1", **_burn_in_evidence(isolation, result)}
    isolation.save()
    node_token_issue(node=cluster.nodes.get(), actor=root)
    NodeToken.objects.update(agent={"name": "agent 1", "vendor": "nvidia", "reader_ok": None})
    StorageRun.objects.create(kind="retention", started_at=now, details=[REMOVED])
    queue = factories.queue(name="vision", weight=2)
    queue.entitlements.create(chip="cpu", guaranteed=1)
    asked = WhatIf.objects.create(queue=queue, user=root, changes=changes_as_json(CHANGES))
    alerts.default_alert_rules_sync(at=now)
    found, answers = {}, {}
    for path, uid in {
        "/alert-rules": "",
        "/catalog": "",
        "/clusters/{uid}": cluster.uid,
        "/engines": "",
        "/isolations": "",
        "/queue-tree": "",
        "/status": "",
        "/storage/runs": "",
        "/telemetry-sources": "",
        "/node-tokens": "",
        "/what-ifs/{uid}": asked.uid,
    }.items():
        response = client.get(
            f"{API}{path.format(uid=uid)}", headers={"Accept": "application/json"}
        )
        assert response.status_code == 200, (path, response.content)
        answers[path] = response.json()
        found[path] = errors(document, path, answers[path])
    assert {path: wrong for path, wrong in found.items() if wrong} == {}
    for path, wrong in (
        ("/queue-tree", {"queues": {"a": {"weight": "much"}}}),
        ("/clusters/{uid}", {**answers["/clusters/{uid}"], "options": {"mounts": "/a"}}),
        ("/engines", {"results": 1}),
    ):
        assert errors(document, path, wrong), path


def test_a_wrong_queue_file_names_the_path_of_the_field() -> None:
    factories.queue(name="vision")
    client = caller(factories.user("root", admin=True))
    body = {"queues": {"vision": {"below": {"a": {"weight": -1, "cards": {"cpu": {"cap": "x"}}}}}}}
    answer = client.put(f"{API}/queue-tree", body, format="json")
    assert answer.status_code == 422, answer.content
    fields = {each["field"] for each in answer.json()["errors"]}
    assert fields == {"queues.vision.below.a.weight", "queues.vision.below.a.cards.cpu.cap"}
