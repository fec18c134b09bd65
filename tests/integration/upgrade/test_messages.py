"""Celery messages and outbox messages that the earlier version left in its queues."""

from __future__ import annotations

import inspect
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from celery import Task
from django.db import transaction
from kombu import Connection

from config import tasks
from config.celery import app
from controlplane.outbox import messages
from controlplane.outbox.models import OutboxMessage
from tests.integration.upgrade.local_machine import Machine
from tests.integration.upgrade.recorded import read

pytestmark = pytest.mark.slow

_QUEUED: list[dict[str, Any]] = read("messages.json")["messages"]

#: A task and its keyword arguments.
Sent = tuple[Task[..., Any], dict[str, Any]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """What is sent to the broker from here on; the tests have none."""
    collected: list[Sent] = []

    def apply_async(task: Task[..., Any], *, kwargs: dict[str, Any], **_: Any) -> None:
        collected.append((task, kwargs))

    monkeypatch.setattr(Task, "apply_async", apply_async)
    return collected


def _task(name: str) -> Task[..., Any] | None:
    app.loader.import_default_modules()
    found: Task[..., Any] | None = app.tasks.get(name)
    return found


def test_every_queued_task_is_registered_and_takes_its_arguments() -> None:
    wrong = []
    for message in _QUEUED:
        task = _task(message["task"])
        if task is None:
            wrong.append(f"{message['task']} is not registered")
            continue
        try:
            inspect.signature(task.run).bind(*message["args"], **message["kwargs"])
        except TypeError as error:
            wrong.append(f"{message['task']}: {error}")
    assert wrong == []
    assert len({message["task"] for message in _QUEUED}) > 60


def test_every_queued_task_runs_on_the_upgraded_database(
    machine: Machine, sent: list[Sent], caplog: pytest.LogCaptureFixture
) -> None:
    failed = []
    for message in _QUEUED:
        task = _task(message["task"])
        assert task is not None
        failed += _failure(task, message["kwargs"])
    assert failed == []
    assert _errors(caplog) == []


def test_a_message_file_of_the_broker_is_received(tmp_path: Path) -> None:
    raw = read("messages.json")["raw"]
    (tmp_path / "1_0.celery.msg").write_text(json.dumps(raw))
    options = {
        "data_folder_in": str(tmp_path),
        "data_folder_out": str(tmp_path),
        "control_folder": str(tmp_path / "control"),
    }
    with (
        Connection("filesystem://", transport_options=options) as connection,
        connection.SimpleQueue("celery") as queue,
    ):
        message = queue.get(block=False)
        message.ack()
    arguments, keywords, _ = message.payload
    queued = {"task": message.headers["task"], "args": arguments, "kwargs": keywords}
    assert queued in [{name: one[name] for name in queued} for one in _QUEUED]


def test_unsent_outbox_messages_of_every_topic_are_sent_and_handled(
    machine: Machine, sent: list[Sent], caplog: pytest.LogCaptureFixture
) -> None:
    unsent = OutboxMessage.objects.filter(delivered_at=None)
    assert len(set(unsent.values_list("topic", flat=True))) == unsent.count() == 23
    assert messages.relay_messages(tasks.queue_subscribed_tasks) == 23
    assert unsent.count() == 0
    assert messages.outbox_backlog().unsubscribed == {}
    assert [failure for task, kwargs in sent for failure in _failure(task, kwargs)] == []
    assert _errors(caplog) == []


def _failure(task: Task[..., Any], kwargs: dict[str, Any]) -> list[str]:
    """Why the task fails; empty if it succeeds. What it changes is taken back."""
    before = transaction.savepoint()
    try:
        task.run(**kwargs)
    except Exception as error:  # noqa: BLE001 - all failures are reported together
        return [f"{task.name}: {type(error).__name__}: {error}"]
    finally:
        transaction.savepoint_rollback(before)
    return []


def _errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What reconcilers logged of failures that they do not raise."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
