"""Recorded requests, sent to the present web as the programs of the earlier version sent them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.test import Client

from tests.integration.upgrade.recorded import Exchange


@dataclass(kw_only=True)
class Clock:
    """The time of the product; a millisecond passes with each look."""

    at: datetime

    def now(self) -> datetime:
        self.at += timedelta(milliseconds=1)
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        return json.loads(self.body)


def send(exchange: Exchange, *, clock: Clock) -> Response:
    """The response of the present web at the instant of the recording.

    :raises AssertionError: if it has another status than the recorded one, or lacks a header or a field of it.
    """
    clock.at = exchange.at
    given = dict(exchange.headers)
    content_type = given.pop("Content-Type", "application/octet-stream")
    response = Client().generic(
        exchange.method, exchange.path, exchange.body, content_type=content_type, headers=given
    )
    said = f"{exchange.name}: {response.content[:500]!r}"
    assert response.status_code == exchange.status, said
    absent = [name for name in exchange.response_headers if name not in response.headers]
    assert absent == [], said
    if exchange.response:
        assert differences(json.loads(exchange.response), json.loads(response.content)) == [], said
    return Response(body=response.content, headers=response.headers)


def differences(recorded: Any, present: Any, *, at: str = "") -> list[str]:
    """The fields of the recorded response that the present one lacks or gives as another type.

    Fields that are new do no harm. Of two lists the first elements are compared.
    """
    if isinstance(recorded, dict) and isinstance(present, dict):
        found = [f"{at}.{name} is missing" for name in recorded.keys() - present.keys()]
        for name in recorded.keys() & present.keys():
            found += differences(recorded[name], present[name], at=f"{at}.{name}")
        return found
    if isinstance(recorded, list) and isinstance(present, list):
        return differences(recorded[0], present[0], at=f"{at}[0]") if recorded and present else []
    if recorded is None or present is None or type(recorded) is type(present):
        return []
    return [f"{at} was {recorded!r} and is {present!r}"]
