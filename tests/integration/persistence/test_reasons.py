"""Reasons in the database, and what becomes of the sentences of earlier versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, models
from django.db.migrations.state import ModelState, ProjectState

from apps.fleet.models import Cluster
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.persistence import earlier_reasons
from controlplane.persistence.bulk_writes import bulk_update_rows
from controlplane.persistence.earlier_reasons import AlterToReason, earlier_reason
from controlplane.persistence.reasons import reason_as_json, reason_from_json

pytestmark = pytest.mark.django_db

PLUG_IN = Reason("engine.acme.warming_up", "Acme is warming up on {node}.", node="n1")
REASONS = (
    "",
    "CUDA error: out of memory at 100%",
    PLUG_IN,
    Reason("engine.acme.listed", "Unfit: {reasons}", reasons=[PLUG_IN, "no {cards}"]),
    join_reasons([PLUG_IN, "another"]),
)


def read(name: str = "beat") -> Cluster:
    return Cluster.objects.get(name=name)


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_read_as_it_was_stored(reason: str) -> None:
    Cluster.objects.create(name="beat", kind="local", error=reason)
    error = read().error
    assert error == reason
    assert reason_as_json(error) == reason_as_json(reason)


def test_rows_are_found_by_reason_and_by_code_and_written_in_bulk() -> None:
    row = Cluster.objects.create(name="beat", kind="local")
    row.error = PLUG_IN
    bulk_update_rows([row], ("error",))
    assert Cluster.objects.get(error=PLUG_IN) == row
    assert Cluster.objects.get(error__code=PLUG_IN.code) == row
    assert not Cluster.objects.filter(error="").exists()
    Cluster.objects.update(error="")
    assert Cluster.objects.get(error="") == row


def test_parameters_that_do_not_fit_the_template_any_more_are_shown() -> None:
    stored = {"code": "engine.acme.gone", "params": {"node": "n1"}, "template": "On {rack}."}
    assert reason_from_json(stored) == "engine.acme.gone: {'node': 'n1'}"


EARLIER = {
    "waiting": ["job.waiting", []],
    "stopping: {0}": ["attempt.stopping", ["reason"]],
    "cancelled by {0}": ["job.cancelled", ["user"]],
    "queue {0} holds {1}; needs {2}": ["claim.queue_full", ["queue", "used", "needed"]],
    "{0} must not be {0}": ["spec.not_allowed", ["value"]],
    "{0}: {1} is {2}": ["fault.rule", ["rule", "metric", "value"]],
    "{0} is only {1}; the gate asks for {2}": ["gate.too_low", ["metric", "value", "limit"]],
    "step {0} misses its gate: {1}": ["pipeline.gate_not_passed", ["step", "verdict"]],
}


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    path = tmp_path / "earlier_reasons.py"
    path.with_suffix(".json").write_text(json.dumps(EARLIER))
    monkeypatch.setattr(earlier_reasons, "__file__", str(path))
    earlier_reasons._earlier_texts.cache_clear()
    yield
    earlier_reasons._earlier_texts.cache_clear()


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("waiting", {"code": "job.waiting", "params": {}}),
        ("cancelled by ada", {"code": "job.cancelled", "params": {"user": "ada"}}),
        (
            "stopping: cancelled by ada",
            {
                "code": "attempt.stopping",
                "params": {"reason": {"code": "job.cancelled", "params": {"user": "ada"}}},
            },
        ),
        ("cancelled by waiting", {"code": "job.cancelled", "params": {"user": "waiting"}}),
        (
            "queue maps holds 12; needs 8",
            {"code": "claim.queue_full", "params": {"queue": "maps", "used": 12, "needed": 8}},
        ),
        ("x must not be x", {"code": "spec.not_allowed", "params": {"value": "x"}}),
        (
            "cancelled by ada; no space left",
            {
                "code": "list",
                "params": {
                    "reasons": [
                        {"code": "job.cancelled", "params": {"user": "ada"}},
                        "no space left",
                    ]
                },
            },
        ),
        (
            "hot: temperature is 93",
            {
                "code": "fault.rule",
                "params": {"rule": "hot", "metric": "temperature", "value": 93},
            },
        ),
        ("approved by admin: the base is meant to be bad", None),
        (
            "step 2 misses its gate: match is only 0; the gate asks for 1",
            {
                "code": "pipeline.gate_not_passed",
                "params": {
                    "step": 2,
                    "verdict": {
                        "code": "gate.too_low",
                        "params": {"metric": "match", "value": 0, "limit": 1},
                    },
                },
            },
        ),
        ("x must not be y", None),
        ("CUDA error: out of memory", None),
    ],
)
def test_a_sentence_of_an_earlier_version_becomes_its_code_and_parameters(
    text: str, reason: dict[str, Any] | None
) -> None:
    assert earlier_reason(text) == reason


@pytest.mark.usefixtures("earlier")
def test_a_column_of_texts_becomes_a_column_of_reasons() -> None:
    class Note(models.Model):
        text = models.TextField(blank=True)

        def __str__(self) -> str:
            return self.text

        class Meta:
            app_label = "earlier_reasons_test"

    before = ProjectState()
    before.add_model(ModelState.from_model(Note))
    alter = AlterToReason("note", "text")
    after = before.clone()
    alter.state_forwards("earlier_reasons_test", after)
    with connection.schema_editor(atomic=False) as editor:
        editor.create_model(Note)
        texts = ("", "cancelled by ada", "ENOSPC on {0}")
        Note._default_manager.bulk_create(Note(text=text) for text in texts)
        alter.database_forwards("earlier_reasons_test", editor, before, after)
    with connection.cursor() as cursor:
        cursor.execute("SELECT text FROM earlier_reasons_test_note ORDER BY id")
        assert [json.loads(text) for (text,) in cursor.fetchall()] == [
            {},
            {"code": "job.cancelled", "params": {"user": "ada"}},
            {"detail": "ENOSPC on {0}"},
        ]
