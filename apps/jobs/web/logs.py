"""The log of a job on its page: a window of it, followed while it grows, searched, downloaded."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.logs import Match, log_search
from controlplane.web.pages import STOP_POLLING

#: Bytes of one look at a log.
TAIL = 64 * 1024
#: Bytes before a place that somebody looks at.
_CONTEXT = 8 * 1024
_LONGEST_QUERY = 200
_DOWNLOAD = 1 << 20
#: Of a number in an address: more bytes than any log has.
_LARGEST = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Whole characters of a log, and where to go on."""

    text: str
    offset: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Part of a log in its middle, in whole lines."""

    text: str | SafeString
    #: Byte of its first character, and of what follows its last one.
    start: int
    end: int
    #: Nothing follows.
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a search stands."""

    query: str
    count: int
    #: Of the match that is shown, from 1; 0 without any.
    place: int
    line: int
    #: Offsets to go to; None at either end.
    before: int | None
    after: int | None
    #: There may be more.
    cut: bool


def log_tail(attempt: Attempt, *, offset: int = -TAIL) -> Tail:
    """The text from ``offset`` on; negative counts from the end.

    A character that is cut at the end is left for the next look; at the start, only where the offset
    was counted from the end, its rest is dropped.
    """
    chunk = selectors.attempt_log(attempt, offset=offset, limit=TAIL)
    content = chunk.content
    if offset < 0:
        content = content.lstrip(bytes(range(0x80, 0xC0)))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content, final=chunk.complete)
    pending, _flags = decoder.getstate()
    return Tail(text=text, offset=chunk.next_offset - len(pending), complete=chunk.complete)


def log_window(attempt: Attempt, *, around: int, query: str = "") -> Window:
    """The lines around a byte, with every occurrence of the query marked."""
    start = max(0, around - _CONTEXT)
    chunk = selectors.attempt_log(attempt, offset=start, limit=TAIL)
    content, end = chunk.content, start + len(chunk.content)
    if start and (cut := content.find(b"\n", 0, around - start)) >= 0:
        content, start = content[cut + 1 :], start + cut + 1
    if not chunk.complete and (cut := content.rfind(b"\n")) >= 0:
        end -= len(content) - cut - 1
        content = content[: cut + 1]
    text = content.decode("utf-8", "replace")
    marked = _marked(text, query, current=len(content[: around - start].decode("utf-8", "replace")))
    return Window(text=marked, start=start, end=end, complete=chunk.complete)


def _marked(text: str, query: str, *, current: int) -> SafeString | str:
    """Occurrences in ``<mark>``; the one at character ``current`` can be found by its id."""
    if not query:
        return text
    # Letters beyond ASCII stay as they are, as they do in the search.
    lowered, wanted = _lowered(text), _lowered(query)
    parts: list[str] = []
    done = 0
    while (place := lowered.find(wanted, done)) >= 0:
        ident = mark_safe(' id="match" tabindex="-1"') if place == current else ""
        end = place + len(query)
        parts += [text[done:place], format_html("<mark{}>{}</mark>", ident, text[place:end])]
        done = end
    parts.append(text[done:])
    return format_html_join("", "{}", ((part,) for part in parts))


def _lowered(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def log_context(request: SignedIn, job: Job, attempts: list[Attempt]) -> dict[str, Any]:
    """``?attempt=`` chooses one, ``?q=`` searches, ``?at=`` goes to a byte; else its end is followed."""
    number = whole(request, "attempt", default=attempts[0].number)
    attempt = next((one for one in attempts if one.number == number), None)
    if attempt is None:
        raise Http404(f"there is no attempt {number}")
    query = request.GET.get("q", "").strip()[:_LONGEST_QUERY]
    at = whole(request, "at", default=-1) if "at" in request.GET else None
    context: dict[str, Any] = {"shown": attempt, "query": query}
    if query:
        found, at = _find(attempt, query, at=at)
        context["found"] = found
    if at is not None and at >= 0:
        return {**context, "window": log_window(attempt, around=at, query=query)}
    return {**context, "tail": log_tail(attempt)}


def _find(attempt: Attempt, query: str, *, at: int | None) -> tuple[Found, int | None]:
    """Where the search stands, and the byte to look at: the first match from ``at`` on, else the last."""
    search = log_search(attempt, query)
    offsets = [match.offset for match in search.matches]
    if not offsets:
        found = Found(
            query=query, count=0, place=0, line=0, before=None, after=None, cut=not search.whole
        )
        return found, at
    # What went wrong last stands at the end, and so does what people look for.
    place = len(offsets) - 1 if at is None else min(bisect_left(offsets, at), len(offsets) - 1)
    return _standing(query, search.matches, place, cut=not search.whole), offsets[place]


def _standing(query: str, matches: Sequence[Match], place: int, *, cut: bool) -> Found:
    return Found(
        query=query,
        count=len(matches),
        place=place + 1,
        line=matches[place].line,
        before=matches[place - 1].offset if place else None,
        after=matches[place + 1].offset if place + 1 < len(matches) else None,
        cut=cut,
    )


@login_required
def job_log(request: SignedIn, uid: str) -> HttpResponseBase:
    """For htmx the lines after ``?offset=``, until the log is complete; else all of it as a file."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempt = _attempt(request, job)
    if not request.htmx:
        return _download(job, attempt)
    tail = log_tail(attempt, offset=max(0, whole(request, "offset", default=0)))
    context = {"job": job, "shown": attempt, "tail": tail}
    status = STOP_POLLING if tail.complete else 200
    return render(request, "jobs/log.html#lines", context, status=status)


def _download(job: Job, attempt: Attempt) -> HttpResponse | StreamingHttpResponse:
    response = StreamingHttpResponse(_whole_log(attempt), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{job.uid[:8]}-{attempt.number}.log"'
    return response


def _attempt(request: SignedIn, job: Job) -> Attempt:
    try:
        return selectors.attempt_numbered(job, whole(request, "attempt", default=0) or None)
    except Attempt.DoesNotExist:
        raise Http404 from None


def _whole_log(attempt: Attempt) -> Iterator[bytes]:
    """Everything up to now; it does not wait for what is still to come."""
    offset = 0
    while True:
        chunk = selectors.attempt_log(attempt, offset=offset, limit=_DOWNLOAD)
        yield chunk.content
        if chunk.complete or not chunk.content:
            return
        offset = chunk.next_offset


def whole(request: SignedIn, name: str, *, default: int) -> int:
    """A whole number from the address; anything else is a wrong address.

    :raises Http404: if it is none.
    """
    try:
        number = int(request.GET.get(name, default))
    except ValueError:
        raise Http404(f"{name} must be a whole number") from None
    if abs(number) > _LARGEST:
        raise Http404(f"{name} is too large")
    return number
