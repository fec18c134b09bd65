"""The declaration of the fields of a queue and of its quota."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain.quotas.queue_documents import PLAIN_FIELDS, QUEUE_FIELDS
from controlplane.domain.quotas.queues import QUOTA_FIELDS, QueueState

DECLARED = {**QUEUE_FIELDS, **QUOTA_FIELDS}


def test_every_field_has_label_and_help_and_its_default_is_allowed() -> None:
    for name, declared in DECLARED.items():
        assert declared.name == name
        assert declared.label, name
        assert declared.help.endswith("."), name
        assert declared.required or declared.error(declared.default) is None, name
    assert [name for name, declared in DECLARED.items() if declared.required] == ["name"]
    assert set(QUEUE_FIELDS) - set(PLAIN_FIELDS) == {"parent", "team"}


@pytest.mark.parametrize(
    ("field", "given", "value"),
    [
        ("name", "a-b_3", "a-b_3"),
        ("state", "draining", QueueState.DRAINING),
        ("weight", 2, 2.0),
        ("lends", False, False),
        ("max_running_per_user", None, None),
        ("max_running_per_user", 3.0, 3),
        ("cap", 0, 0),
        ("cap", None, None),
        ("guaranteed", 2**31 - 1, 2**31 - 1),
    ],
)
def test_an_allowed_value_is_read_and_written(field: str, given: Any, value: Any) -> None:
    declared = DECLARED[field]
    assert declared.error(given) is None
    read = declared.from_json(given)
    assert (read, type(read)) == (value, type(value))
    assert declared.to_json(read) == given
    assert type(declared.to_json(read)) in (str, bool, int, float, type(None))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 61),
        ("name", "two words"),
        ("name", 3),
        ("state", "shut"),
        ("state", None),
        ("description", "\0"),
        ("description", "x" * 2001),
        ("weight", 0),
        ("weight", True),
        ("weight", "2"),
        ("weight", float("nan")),
        ("weight", float("inf")),
        ("lends", 1),
        ("lends", None),
        ("max_running_per_user", 0),
        ("max_running_per_user", 1.5),
        ("reserved", -1),
        ("reserved", None),
        ("guaranteed", 2**31),
        ("cap", True),
    ],
)
def test_another_value_is_refused_with_field_requirement_and_value(field: str, value: Any) -> None:
    declared = DECLARED[field]
    message = declared.error(value)
    assert message is not None
    assert message.startswith(f"{field} must be {declared.requirement}, got ")
    assert declared.error(value, path="lab › vision") == f"lab › vision: {message}"
