from __future__ import annotations

import json

import pytest

from gateway.engine_responses import engine_response_error, redact_message, token_count
from gateway.metrics import DurationHistogram, MetricCounter


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("no route to http://10.0.0.7:8000/v1/chat", "no route to [hidden]"),
        ("connect 192.168.1.20:39001 refused", "connect [hidden] refused"),
        ("engine-0.engines.svc:8000 is down", "[hidden] is down"),
        ("localhost:9 is down", "[hidden] is down"),
        ("cannot read /srv/models/parser/config.json today", "cannot read [hidden] today"),
        ("the model inner-name has 512 tokens", "the model parser has 512 tokens"),
        ("inner-names are not inner-name", "inner-names are not parser"),
        (
            "temperature must be in 0.0/2.0, and/or absent",
            "temperature must be in 0.0/2.0, and/or absent",
        ),
    ],
)
def test_addresses_in_error_messages_are_redacted(message: str, expected: str) -> None:
    assert redact_message(message, route="parser", model="inner-name") == expected


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "too long"}},
        {"error": "too long"},
        {"object": "error", "message": "too long"},
        {"detail": [{"loc": ["body"], "msg": "too long"}]},
        "too long",
    ],
)
def test_error_message_is_read_from_all_engine_formats(body: object) -> None:
    error = engine_response_error(
        status=422, body=json.dumps(body).encode(), route="parser", model="inner"
    )
    assert (error.status, error.message) == (400, "too long")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"null", b"{}"])
def test_an_error_without_a_reason_is_still_an_error(body: bytes) -> None:
    assert engine_response_error(status=400, body=body, route="parser", model="inner").message


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": "9", "completion_tokens": -1}])
def test_invalid_token_counts_are_zero(usage: object) -> None:
    assert token_count(usage).total == 0


def test_a_counter_escapes_its_labels() -> None:
    counter = MetricCounter("c", "meaning", labels=("route",))
    counter.add('a"b\\c\n')
    assert list(counter.lines())[-1] == 'c{route="a\\"b\\\\c\\n"} 1'


def test_histogram_buckets_are_cumulative() -> None:
    histogram = DurationHistogram("h", "meaning", labels=("route",))
    for seconds in (0.005, 0.3, 10_000.0):
        histogram.observe("r", seconds=seconds)
    lines = list(histogram.lines())
    assert 'h_bucket{route="r",le="0.005"} 1' in lines
    assert 'h_bucket{route="r",le="0.5"} 2' in lines
    assert 'h_bucket{route="r",le="+Inf"} 3' in lines
    assert 'h_count{route="r"} 3' in lines
