from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from apps.jobs.api import views
from apps.jobs.api.views import MAX_FOLLOWERS, LogFollower, TooManyFollowers
from apps.jobs.models import Attempt, Job
from controlplane.ports.clusters import LogChunk
from controlplane.web.log_responses import decode_chunk
from tests.cases import for_each_case
from tests.functional.api.callers import API, body_of, problem, wrong_fields
from tests.integration.company import Company

LINE = "第一步 loss 1.25\n"


@pytest.fixture
def ran(company: Company) -> tuple[Job, Attempt]:
    """A job whose program has written three lines and goes on."""
    job, attempt = company.running()
    write(company, attempt, LINE * 3)
    return job, attempt


def write(company: Company, attempt: Attempt, text: str) -> None:
    company.cluster.write_log(attempt.launch_name, text.encode())


def test_a_log_is_read_piece_by_piece(
    engineer: APIClient, company: Company, ran: tuple[Job, Attempt]
) -> None:
    job, attempt = ran
    address = f"{API}/jobs/{job.uid}/log"
    piece = engineer.get(address).json()
    assert (piece["text"], piece["complete"]) == (LINE * 3, False)
    write(company, attempt, "the end\n")
    rest = engineer.get(f"{address}?offset={piece['next_offset']}").json()
    assert rest["text"] == "the end\n"
    tail = engineer.get(f"{address}?offset=-8").json()
    assert tail["text"] == "the end\n"


def test_a_log_is_plain_text_for_who_prefers_it(
    engineer: APIClient, ran: tuple[Job, Attempt]
) -> None:
    answer = engineer.get(f"{API}/jobs/{ran[0].uid}/log", headers={"Accept": "text/plain"})
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode() == LINE * 3
    assert int(answer["X-Next-Offset"]) == len(answer.content)
    missing = engineer.get(f"{API}/jobs/{'0' * 32}/log", headers={"Accept": "text/plain"})
    problem(missing, 404, "not-found")


def test_the_form_of_a_log_is_named_in_the_address(
    engineer: APIClient, ran: tuple[Job, Attempt]
) -> None:
    address = f"{API}/jobs/{ran[0].uid}/log"
    assert engineer.get(f"{address}?format=txt").content.decode() == LINE * 3
    assert engineer.get(f"{address}?format=json").json()["text"] == LINE * 3


def test_a_piece_never_ends_inside_of_a_character() -> None:
    content = LINE.encode()
    text, offset = "", 0
    while offset < len(content):
        piece = content[offset : offset + 4]
        end = offset + len(piece)
        chunk = LogChunk(content=piece, next_offset=end, complete=end == len(content))
        more, offset = decode_chunk(chunk, tail=False)
        text += more
    assert text == LINE


def test_a_tail_begins_with_a_whole_character() -> None:
    chunk = LogChunk(content="第一".encode()[1:], next_offset=6, complete=True)
    assert decode_chunk(chunk, tail=True) == ("一", 6)


@for_each_case("query", ["limit=10", "limit=9999999", "offset=x", "attempt=0"])
def test_a_piece_that_is_none_is_refused(
    engineer: APIClient, ran: tuple[Job, Attempt], query: str
) -> None:
    refused = engineer.get(f"{API}/jobs/{ran[0].uid}/log?{query}")
    assert set(wrong_fields(refused)) == {query.partition("=")[0]}


def test_an_attempt_that_is_none_has_no_log(engineer: APIClient, ran: tuple[Job, Attempt]) -> None:
    problem(engineer.get(f"{API}/jobs/{ran[0].uid}/log?attempt=2"), 404, "not-found")


def test_following_gives_what_comes_and_ends_with_the_attempt(
    company: Company, ran: tuple[Job, Attempt]
) -> None:
    _, attempt = ran
    chunks = iter(("first\n", "second\n", None))

    def meanwhile(seconds: float) -> None:
        text = next(chunks)
        if text is None:
            company.cluster.finish(attempt.launch_name, exit_code=1)
            company.turn_jobs()
        else:
            write(company, attempt, text)

    follower = LogFollower(attempt, offset=len(LINE.encode()) * 3, sleep=meanwhile)
    assert b"".join(follower) == b"first\nsecond\n"
    follower.close()


def test_the_log_of_an_ended_attempt_is_followed_to_its_end(
    engineer: APIClient, company: Company, ran: tuple[Job, Attempt]
) -> None:
    job, attempt = ran
    company.cluster.finish(attempt.launch_name, exit_code=1)
    company.turn_jobs()
    answer = engineer.get(f"{API}/jobs/{job.uid}/log?follow=true&offset=-{len(LINE.encode())}")
    assert body_of(answer).decode() == LINE
    piece = engineer.get(f"{API}/jobs/{job.uid}/log").json()
    assert piece["complete"] is True


def test_only_so_many_follow_at_once(
    engineer: APIClient, ran: tuple[Job, Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, attempt = ran
    followers = [LogFollower(attempt, offset=0) for _ in range(MAX_FOLLOWERS)]
    try:
        refused = engineer.get(f"{API}/jobs/{job.uid}/log?follow=true")
        problem(refused, 429, "too-many-followers")
        assert int(refused["Retry-After"]) >= 1
        with pytest.raises(TooManyFollowers):
            LogFollower(attempt, offset=0)
    finally:
        for follower in followers:
            follower.close()
            follower.close()
    monkeypatch.setattr(views, "FOLLOW_WITHIN", views.FOLLOW_WITHIN * 0)
    answer = engineer.get(f"{API}/jobs/{job.uid}/log?follow=true")
    assert body_of(answer).decode() == LINE * 3
