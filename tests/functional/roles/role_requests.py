"""Ask an address as somebody, and tell what came of it."""

from __future__ import annotations

import difflib
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import Client
from django.utils import timezone

from tests.functional.roles.permission_rules import CODE_FILE, ROWS_FILE, Outcome, PermissionRow
from tests.functional.roles.team_data import RANDOM

_PLACE = re.compile(r"\{([a-z_.]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleResponse:
    """What is left of one when all that it did is undone."""

    status: int
    outcome: Outcome | str
    text: str


def filled(text: str, names: Mapping[str, str]) -> str:
    """:raises KeyError: if there is nothing of that name."""
    return _PLACE.sub(lambda found: names[found[1]], text)


def send_request(
    client: Client, row: PermissionRow, names: Mapping[str, str], **headers: str
) -> HttpResponseBase:
    """The answer, not followed if it leads elsewhere."""
    path = filled(row.path, names)
    body = {name: _value(value, names) for name, value in row.body.items()}
    speaks_json = path.startswith(("/api/", "/playground/"))
    options: dict[str, Any] = {"headers": headers} if headers else {}
    method = getattr(client, row.method.lower())
    has_file = any(isinstance(value, SimpleUploadedFile) for value in body.values())
    if row.method == "GET":
        answer = method(path, **options)
    elif speaks_json and not has_file:
        answer = method(path, body, content_type="application/json", **options)
    else:
        answer = method(path, body, **options)
    assert isinstance(answer, HttpResponseBase)
    return answer


def _value(value: Any, names: Mapping[str, str]) -> Any:
    if value == ROWS_FILE:
        return SimpleUploadedFile("rows.jsonl", b'{"instruction": "a", "output": "b"}\n' * 4)
    if value == CODE_FILE:
        return SimpleUploadedFile("code.tar.gz", _archive())
    if value == "{soon}":
        return (timezone.now() + timedelta(days=3)).isoformat()
    return filled(value, names) if isinstance(value, str) else value


def _archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        content = b"print(1)\n"
        entry = tarfile.TarInfo("main.py")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


@contextmanager
def noting_role(who: str) -> Iterator[None]:
    """A failure says who asked."""
    try:
        yield
    except Exception as failure:
        failure.add_note(f"asked by: {who}")
        raise


def response_of(client: Client, row: PermissionRow, names: Mapping[str, str]) -> RoleResponse:
    """The answer, read to its end."""
    answer = send_request(client, row, names)
    return RoleResponse(status=answer.status_code, outcome=outcome_of(answer), text=text_of(answer))


def text_of(answer: HttpResponseBase) -> str:
    """Its body, and where it leads. The test client closes what it was read from at its end."""
    if isinstance(answer, StreamingHttpResponse):
        body = b"".join(answer.streaming_content)  # type: ignore[arg-type]
    else:
        assert isinstance(answer, HttpResponse)
        body = answer.content
    return f"{answer.get('Location', '')}\n{body.decode(errors='replace')}"


def outcome_of(answer: HttpResponseBase) -> Outcome | str:
    """What came of it; a server's fault is told by its number."""
    code = answer.status_code
    where = str(answer.get("Location", ""))
    to_log_in = code == 302 and where.startswith(("/login?next=", "/admin/login"))
    if code == 401 or to_log_in:
        return Outcome.LOG_IN
    if code == 403:
        return Outcome.FORBIDDEN
    if code == 404:
        return Outcome.ABSENT
    # Of those that were let through, some are refused for what they ask: it has no such file, say,
    # or no gateway runs.
    return Outcome.DONE if code < 400 or code in (400, 409, 413, 422, 502) else f"answered {code}"


_VARYING = re.compile(
    r'csrf[\w-]*"\s+(?:value|content)="[^"]*"|"X-CSRFToken": "[^"]*"'
    r'|name="once" value="[^"]*"|request_id[=\":\s]+\w+'
)


def normalized(text: str, names: Mapping[str, str] | None = None) -> str:
    """Without what differs between any two answers; ``names`` become the same word."""
    text = _VARYING.sub("", text)
    for name in sorted((names or {}).values(), key=len, reverse=True):
        text = text.replace(name, "…")
    return text.replace(RANDOM, "…")


def difference(before: str, after: str) -> list[str]:
    """The first lines that changed."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    changes = difflib.unified_diff(old, new, n=0)
    return list(changes)[:10]
