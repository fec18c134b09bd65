"""What a log line says, and what it never says."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from pytest_django import Settings

from controlplane.web import logs

FORMATTERS = [logs.WebTextFormatter(), logs.WebJsonFormatter()]


@pytest.fixture(autouse=True)
def secrets_of_the_product(settings: Settings) -> None:
    settings.SECRET_KEY = "the-secret-key-of-pages"
    settings.NINEFOLD_GATEWAY_TOKEN = "the-token-of-gateways"
    settings.NINEFOLD_METRICS_TOKEN = "the-token-of-metrics"
    settings.NINEFOLD_ENCRYPTION_KEYS = ["first-key-at-rest", "second-key-at-rest"]


def record(text: str, *args: object, error: BaseException | None = None, **fields: Any) -> Any:
    log_record = logging.getLogger("apps.jobs").makeRecord(
        "apps.jobs",
        logging.INFO,
        __file__,
        1,
        text,
        args,
        (type(error), error, None) if error else None,
        extra=fields,
    )
    logs.LogContextFilter().filter(log_record)
    return log_record


def as_json(line: Any) -> dict[str, Any]:
    text = logs.WebJsonFormatter().format(line)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text)
    return read


def test_a_text_line_ends_with_its_fields() -> None:
    line = logs.WebTextFormatter().format(record("a turn %s", "failed", state="late", attempt=7))
    assert line == "INFO apps.jobs a turn failed attempt=7 state=late"


def test_a_json_line_is_one_object_with_its_fields() -> None:
    line = as_json(record("一轮 %s", "failed", attempt=7, nested={"a": [1]}))
    assert line.pop("at").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "apps.jobs",
        "message": "一轮 failed",
        "attempt": 7,
        "nested": {"a": [1]},
    }


def test_an_error_brings_its_traceback_in_the_same_object() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        line = as_json(record("a turn failed", error=error))
    assert line["exc_info"].startswith("ValueError: two") or "ValueError: two" in line["exc_info"]


def test_lines_of_a_request_have_its_id_and_later_ones_do_not() -> None:
    with logs.log_request_id("abc-1"):
        assert logs.current_request_id() == "abc-1"
        assert as_json(record("inside"))["request_id"] == "abc-1"
    assert "request_id" not in as_json(record("outside"))
    assert logs.current_request_id() == ""


def test_lines_of_a_task_have_its_name_and_id() -> None:
    logs.set_task_context(name="apps.jobs.tasks.turn", task_id="42")
    try:
        line = as_json(record("inside", task_id="given by the line itself"))
    finally:
        logs.clear_task_context()
    assert (line["task"], line["task_id"]) == ("apps.jobs.tasks.turn", "given by the line itself")
    assert "task" not in as_json(record("outside"))


SECRETS = [
    "the-secret-key-of-pages",
    "the-token-of-gateways",
    "the-token-of-metrics",
    "first-key-at-rest",
    "second-key-at-rest",
    "nfp-Zm9yIHRlc3RzIG9ubHkgYnV0IHJlYWw",
    "nf-Zm9yIHRlc3RzIG9ubHkgYnV0IHJlYWw",
]


@pytest.mark.parametrize("formatter", FORMATTERS, ids=["text", "json"])
@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_redacted_everywhere_in_a_line(
    formatter: logging.Formatter, secret: str
) -> None:
    error = RuntimeError(f"refused {secret}")
    line = formatter.format(
        record("sent %s", secret, error=error, plain=secret, deep={"a": [secret]})
    )
    assert secret not in line
    assert line.count(logs.REDACTED) >= 4


@pytest.mark.parametrize("formatter", FORMATTERS, ids=["text", "json"])
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123, then", "abc.def-123"),
        ("postgresql://ada:swordfish@db:5432/ninefold", "swordfish"),
        ("redis://:swordfish@broker/0", "swordfish"),
    ],
)
def test_tokens_and_passwords_are_known_by_their_place(
    formatter: logging.Formatter, text: str, secret: str
) -> None:
    line = formatter.format(record(text))
    assert secret not in line
    assert logs.REDACTED in line


def test_a_line_without_secrets_is_unchanged(settings: Settings) -> None:
    settings.NINEFOLD_METRICS_TOKEN = ""
    text = "GET http://127.0.0.1:8000/jobs took 3 ms; nf-3 is a node, and bearers carry"
    assert logs.redact_line(text) == text


def test_a_whole_request_never_stands_in_a_line() -> None:
    assert "request" not in as_json(record("not found", request=sys))


@pytest.mark.parametrize(
    "address", ["/password/set/Mg/c4x-0123456789abcdef", "/sign-on/link/WyJhIl0:1vM:c4x-signed"]
)
def test_an_address_that_is_a_key_is_in_no_line(address: str) -> None:
    line = logs.WebTextFormatter().format(
        record("a request was answered", path=address, status=500)
    )
    assert "c4x" not in line
    assert line.endswith(f"path={address.rpartition('/')[0]}/[hidden] status=500")
