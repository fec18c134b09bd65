"""The log tab of a job: the end of the log followed while it grows, windows, search, and download."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs import selectors
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.logs import search_attempt_log
from controlplane.web.pages import STOP_POLLING

#: Maximum number of bytes of a log that are shown at once.
TAIL_BYTES = 64 * 1024
#: Bytes shown before the requested offset.
_CONTEXT_BYTES = 8 * 1024
_MAX_QUERY_LENGTH = 200
_DOWNLOAD_BYTES = 1 << 20
#: Maximum integer in a URL; larger than any log.
_MAX_INTEGER = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """Whole characters from a log, and the offset that follows."""

    text: str
    offset: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWindow:
    """A part of a log in whole lines."""

    text: str | SafeString
    #: Offsets of its first byte and of the byte after its last one.
    start: int
    end: int
    #: Whether it contains the end of the log.
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSearchPosition:
    """The state of a search: the current match and its neighbours."""

    query: str
    count: int
    #: Number of the current match, from 1; 0 if there is none.
    position: int
    line: int
    #: Offsets of the neighbouring matches; None at either end.
    previous_offset: int | None
    next_offset: int | None
    #: Whether the search stopped at a limit, so that there may be more matches.
    truncated: bool


def log_tail(attempt: Attempt, *, offset: int = -TAIL_BYTES) -> LogTail:
    """The text from ``offset`` on; negative counts from the end.

    An incomplete character at the end is left for the next request; one at the start is dropped if the offset was
    counted from the end.
    """
    chunk = selectors.attempt_log(attempt, offset=offset, limit=TAIL_BYTES)
    content = chunk.content
    if offset < 0:
        content = content.lstrip(bytes(range(0x80, 0xC0)))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content, final=chunk.complete)
    pending, _flags = decoder.getstate()
    return LogTail(text=text, offset=chunk.next_offset - len(pending), complete=chunk.complete)


def log_window(attempt: Attempt, *, around: int, query: str = "") -> LogWindow:
    """The lines around an offset, with every occurrence of the query marked."""
    start = max(0, around - _CONTEXT_BYTES)
    chunk = selectors.attempt_log(attempt, offset=start, limit=TAIL_BYTES)
    content, end = chunk.content, start + len(chunk.content)
    if start and (cut := content.find(b"\n", 0, around - start)) >= 0:
        content, start = content[cut + 1 :], start + cut + 1
    if not chunk.complete and (cut := content.rfind(b"\n")) >= 0:
        end -= len(content) - cut - 1
        content = content[: cut + 1]
    text = content.decode("utf-8", "replace")
    marked = _highlight_matches(
        text, query, current=len(content[: around - start].decode("utf-8", "replace"))
    )
    return LogWindow(text=marked, start=start, end=end, complete=chunk.complete)


def _highlight_matches(text: str, query: str, *, current: int) -> SafeString | str:
    """Wrap occurrences in ``<mark>``; the one at character ``current`` has the id ``match``."""
    if not query:
        return text
    # Only ASCII letters match in either case, as in ``search_attempt_log``.
    lowered, needle = _ascii_lower(text), _ascii_lower(query)
    parts: list[str] = []
    done = 0
    while (position := lowered.find(needle, done)) >= 0:
        ident = mark_safe(' id="match" tabindex="-1"') if position == current else ""
        end = position + len(query)
        parts += [text[done:position], format_html("<mark{}>{}</mark>", ident, text[position:end])]
        done = end
    parts.append(text[done:])
    return format_html_join("", "{}", ((part,) for part in parts))


def _ascii_lower(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def log_context(request: AuthenticatedRequest, job: Job, attempts: list[Attempt]) -> dict[str, Any]:
    """``?attempt=`` selects an attempt, ``?q=`` searches, ``?at=`` shows an offset; else the end of the log."""
    number = integer_parameter(request, "attempt", default=attempts[0].number)
    attempt = next((one for one in attempts if one.number == number), None)
    if attempt is None:
        raise Http404(f"there is no attempt {number}")
    query = request.GET.get("q", "").strip()[:_MAX_QUERY_LENGTH]
    at = integer_parameter(request, "at", default=-1) if "at" in request.GET else None
    context: dict[str, Any] = {"shown": attempt, "query": query}
    if query:
        found, at = _search_log(attempt, query, at=at)
        context["found"] = found
    if at is not None and at >= 0:
        return {**context, "window": log_window(attempt, around=at, query=query)}
    return {**context, "tail": log_tail(attempt)}


def _search_log(
    attempt: Attempt, query: str, *, at: int | None
) -> tuple[LogSearchPosition, int | None]:
    """The search position and the offset to show: the first match from ``at`` on, else the last one."""
    search = search_attempt_log(attempt, query)
    matches = search.matches
    offsets = [match.offset for match in matches]
    # The last match is the default, because failures are at the end of a log.
    last = len(offsets) - 1
    position = last if at is None else min(bisect_left(offsets, at), last)
    found = LogSearchPosition(
        query=query,
        count=len(matches),
        position=position + 1,
        line=matches[position].line if matches else 0,
        previous_offset=offsets[position - 1] if position > 0 else None,
        next_offset=offsets[position + 1] if position < last else None,
        truncated=not search.complete,
    )
    return found, offsets[position] if matches else at


@login_required
def job_log(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """For htmx the lines after ``?offset=`` until the log is complete; else the whole log as a download."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempt = _requested_attempt(request, job)
    if not request.htmx:
        return _download_log(job, attempt)
    tail = log_tail(attempt, offset=max(0, integer_parameter(request, "offset", default=0)))
    context = {"job": job, "shown": attempt, "tail": tail}
    status = STOP_POLLING if tail.complete else 200
    return render(request, "jobs/log.html#lines", context, status=status)


def _download_log(job: Job, attempt: Attempt) -> HttpResponse | StreamingHttpResponse:
    response = StreamingHttpResponse(_full_log(attempt), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{job.uid[:8]}-{attempt.number}.log"'
    return response


def _requested_attempt(request: AuthenticatedRequest, job: Job) -> Attempt:
    try:
        return selectors.attempt_by_number(
            job, integer_parameter(request, "attempt", default=0) or None
        )
    except Attempt.DoesNotExist:
        raise Http404 from None


def _full_log(attempt: Attempt) -> Iterator[bytes]:
    """The log up to now, without waiting for further output."""
    offset = 0
    while True:
        chunk = selectors.attempt_log(attempt, offset=offset, limit=_DOWNLOAD_BYTES)
        yield chunk.content
        if chunk.complete or not chunk.content:
            return
        offset = chunk.next_offset


def integer_parameter(request: AuthenticatedRequest, name: str, *, default: int) -> int:
    """An integer parameter of the URL.

    :raises Http404: if it is not an integer, or too large.
    """
    try:
        number = int(request.GET.get(name, default))
    except ValueError:
        raise Http404(f"{name} must be a whole number") from None
    if abs(number) > _MAX_INTEGER:
        raise Http404(f"{name} is too large")
    return number
