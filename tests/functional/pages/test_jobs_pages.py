"""The page of one job: its actions, its log, its curves, its history, what was asked for."""

from __future__ import annotations

import json
import shlex
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.logs import search_attempt_log
from apps.jobs.selectors.progress import MAX_POINTS
from apps.models.models import Artifact, ArtifactKind
from controlplane.domain.jobs.lifecycle import AttemptEvent, JobKind
from tests import factories
from tests.functional.sample_rows import FilledCompany

HTMX = {"HX-Request": "true"}


def test_refused_actions_show_their_reasons(
    browser: Client, viewer: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"/jobs/{filled.succeeded.uid}").text
    assert "The job or pipeline has already ended." in text
    assert "Clone the job to run it again" in text
    assert f"/jobs/{filled.succeeded.uid}/cancel" not in text
    looked = viewer.get(f"/jobs/{filled.running.uid}").text
    assert "is read-only" in looked
    assert "/cancel" not in looked
    assert "?clone=" not in looked


def test_a_script_is_not_offered_a_comparison(browser: Client, filled: FilledCompany) -> None:
    text = browser.get(f"/jobs/{filled.script.uid}").text
    assert "no metrics to compare" in text
    assert "/jobs/compare" not in text


def test_a_waiting_job_shows_its_queue_position_and_free_cards(
    browser: Client, filled: FilledCompany
) -> None:
    Job.objects.filter(pk=filled.waiting.pk).update(created_at=timezone.now())
    for number in range(2):
        factories.job(
            actor=filled.user,
            team=filled.team,
            queue=filled.queue,
            kind=JobKind.SCRIPT,
            name=f"later {number}",
            cards=5,
        )
    last = Job.objects.get(name="later 1")
    text = browser.get(f"/jobs/{last.uid}").text
    assert "2 pending workloads ahead in queue default." in text
    assert "2 of 5 matching cards are free." in text
    assert (
        "0 pending workloads ahead in queue default."
        in browser.get(f"/jobs/{filled.waiting.uid}").text
    )


def test_a_stale_time_left_is_not_shown(browser: Client, filled: FilledCompany) -> None:
    attempt = filled.running.attempts.get()
    assert "Time left" in browser.get(f"/jobs/{filled.running.uid}").text
    Attempt.objects.filter(pk=attempt.pk).update(reported_at=timezone.now() - timedelta(minutes=20))
    text = browser.get(f"/jobs/{filled.running.uid}").text
    assert "No report for 20 min" in text
    assert "Time left" not in text


def test_the_time_left_decreases_since_the_report(browser: Client, filled: FilledCompany) -> None:
    attempt = filled.running.attempts.get()
    Attempt.objects.filter(pk=attempt.pk).update(reported_at=timezone.now() - timedelta(seconds=60))
    left = browser.get(f"/jobs/{filled.running.uid}").context["job_progress"].time_left
    assert 28 <= left.total_seconds() <= 30


def test_the_timeline_fills_its_width(browser: Client, filled: FilledCompany) -> None:
    (track,) = browser.get(f"/jobs/{filled.failed.uid}").context["tracks"]
    assert [one.state for one in track.segments] == ["pending", "admitted", "launched", "running"]
    assert track.final_state == "failed"
    assert track.segments[0].x == 0
    last = track.segments[-1]
    assert last.x + last.width == pytest.approx(1000, abs=1)


def test_events_of_job_attempts_and_claims_are_one_list(
    browser: Client, filled: FilledCompany
) -> None:
    events = browser.get(f"/jobs/{filled.failed.uid}?tab=events").context["events"]
    assert [event.at for event in events] == sorted((event.at for event in events), reverse=True)
    assert {event.subject for event in events} == {"job", "attempt", "claim"}
    ended = browser.get(f"/jobs/{filled.failed.uid}?tab=events", headers=HTMX)
    assert ended.status_code == 286


def test_the_page_shows_the_rest_request_of_the_job(
    browser: Client, filled: FilledCompany, client: Client
) -> None:
    context = browser.get(f"/jobs/{filled.running.uid}?tab=spec").context
    arguments = shlex.split(context["call"].replace("\\\n", ""))
    assert arguments[:4] == ["curl", "-X", "POST", "http://testserver/api/v1/jobs"]
    body = json.loads(arguments[-1])
    assert body == json.loads(context["spec_json"])
    # The very body is accepted.
    response = browser.post(
        "/api/v1/jobs/check",
        body,
        content_type="application/json",
    )
    assert response.status_code == 200, response.text
    assert response.json()["accepted"] is True
    assert response.json()["spec"] == filled.running.spec


def retried(filled: FilledCompany) -> Attempt:
    """The failed job's second attempt, which goes on from step 8 and has got to step 9."""
    services.job_retry(job=filled.failed, actor=filled.user, at=timezone.now())
    second: Attempt = filled.failed.attempts.latest("number")
    points = [{"step": step, "loss": 10.0 + step} for step in (8, 9)]
    services.attempt_progress_store(attempt=second, points=points, at=timezone.now())
    return second


def series(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in answer["series"]}


def test_repeated_steps_of_a_retry_reach_an_open_page(
    browser: Client, filled: FilledCompany
) -> None:
    open_page = browser.get(f"/jobs/{filled.failed.uid}/curve/loss").json()
    assert series(open_page)["training loss"]["x"] == list(range(1, 11))
    retried(filled)
    fresh = browser.get(open_page["more"]).json()
    again = series(fresh)["training loss, attempt 2"]
    assert (again["x"], again["y"]) == ([8, 9], [18.0, 19.0])
    later = series(browser.get(fresh["more"]).json())
    assert later["training loss, attempt 2"]["x"] == [9]
    whole = browser.get(f"/jobs/{filled.failed.uid}/curve/loss").json()
    assert whole["marks"] == [{"x": 8, "label": "attempt 2", "kind": "attempt"}]
    assert list(series(whole)) == ["training loss", "training loss, attempt 2"]


def test_checkpoints_are_marked_in_the_curve(browser: Client, filled: FilledCompany) -> None:
    second = retried(filled)
    open_page = browser.get(f"/jobs/{filled.failed.uid}/curve/loss").json()
    saved = [{"checkpoint": {"step": step}} for step in (8, 12)]
    services.attempt_progress_store(
        attempt=second, points=[{"step": 11, "loss": 1.0}, *saved], at=timezone.now()
    )
    marks = [
        {"x": 8, "label": "attempt 2", "kind": "attempt"},
        {"x": 8, "label": "", "kind": "checkpoint"},
        {"x": 12, "label": "checkpoint", "kind": "checkpoint"},
    ]
    fresh = browser.get(open_page["more"]).json()
    assert fresh["marks"] == marks
    assert series(fresh)["training loss, attempt 2"]["x"] == [9, 11]
    assert browser.get(f"/jobs/{filled.failed.uid}/curve/loss").json()["marks"] == marks
    services.attempt_progress_store(
        attempt=second, points=[{"step": 13, "loss": 0.5}], at=timezone.now()
    )
    later = browser.get(fresh["more"]).json()
    assert series(later)["training loss, attempt 2"]["x"] == [13]


def test_the_curve_says_whether_more_will_come(browser: Client, filled: FilledCompany) -> None:
    assert browser.get(f"/jobs/{filled.running.uid}/curve/loss").json()["ended"] is False
    assert browser.get(f"/jobs/{filled.failed.uid}/curve/loss").json()["ended"] is True
    waiting = browser.get(f"/jobs/{filled.waiting.uid}/curve/loss").json()
    assert (waiting["series"], waiting["ended"]) == ([], False)


def test_the_throughput_has_a_unit_and_a_chart_of_its_own(
    browser: Client, filled: FilledCompany
) -> None:
    answer = browser.get(f"/jobs/{filled.running.uid}/curve/throughput").json()
    assert answer["y"] == {"label": "throughput", "unit": "tokens/s"}
    assert answer["series"][0]["y"] == [1234.5] * 10
    assert browser.get(f"/jobs/{filled.running.uid}/curve/secrets").status_code == 404
    address = f"/jobs/{filled.running.uid}/curve/loss?attempt=soon"
    assert browser.get(address).status_code == 404


def test_a_validation_that_comes_later_joins_the_loss_of_its_step(
    browser: Client, filled: FilledCompany
) -> None:
    attempt = filled.running.attempts.get()
    at = timezone.now()
    services.attempt_progress_store(attempt=attempt, points=[{"step": 10, "eval_loss": 0.5}], at=at)
    answer = series(browser.get(f"/jobs/{filled.running.uid}/curve/loss").json())
    assert answer["validation loss"]["x"] == [10]
    assert answer["training loss"]["x"][-1] == 10


def test_a_long_curve_is_thinned_out_and_keeps_its_end_and_its_validations(
    browser: Client, filled: FilledCompany
) -> None:
    attempt = filled.running.attempts.get()
    points: list[dict[str, Any]] = [
        {"step": step, "loss": 1.0, **({"eval_loss": 2.0} if step % 1000 == 500 else {})}
        for step in range(1, 4 * MAX_POINTS + 2)
    ]
    services.attempt_progress_store(attempt=attempt, points=points, at=timezone.now())
    answer = series(browser.get(f"/jobs/{filled.running.uid}/curve/loss").json())
    assert len(answer["training loss"]["x"]) <= MAX_POINTS + 3
    assert answer["training loss"]["x"][-1] == 4 * MAX_POINTS + 1
    assert answer["validation loss"]["x"] == [500, 1500]


def log_of(filled: FilledCompany, content: bytes) -> Attempt:
    attempt = filled.succeeded.attempts.get()
    digest = factories.stored("log", content)[1]
    Attempt.objects.filter(pk=attempt.pk).update(log_digest=digest)
    attempt.refresh_from_db()
    return attempt


def test_a_search_counts_and_goes_from_match_to_match(
    browser: Client, filled: FilledCompany
) -> None:
    lines = [
        f"line {number}: {'ERROR (x.y)' if number % 10 == 0 else 'fine'}" for number in range(1, 41)
    ]
    log_of(filled, "\n".join(lines).encode())
    page = f"/jobs/{filled.succeeded.uid}?tab=log&q=error+(x.y)"
    last = browser.get(page)
    found = last.context["found"]
    assert (found.count, found.position, found.line, found.next_offset) == (4, 4, 40, None)
    before = browser.get(f"{page}&at={found.previous_offset}").context["found"]
    assert (before.position, before.line) == (3, 30)
    first = browser.get(f"{page}&at=0")
    assert first.context["found"].line == 10
    assert first.text.count("<mark") == 4
    assert first.text.count('id="match"') == 1


def test_a_search_takes_its_text_as_it_stands_and_escapes_what_it_marks(
    browser: Client, filled: FilledCompany
) -> None:
    log_of(filled, b"a <script>alert(1)</script> b\n")
    text = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&q=%3Cscript%3E").text
    assert '<mark id="match" tabindex="-1">&lt;script&gt;</mark>alert(1)' in text
    assert "<script>alert" not in text
    nothing = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&q=.*").text
    assert "No matches for" in nothing


def test_a_match_across_two_pieces_is_found_once_in_its_line(filled: FilledCompany) -> None:
    piece = 1 << 20
    content = (b"x" * 63 + b"\n") * (piece // 64)
    content = content[: piece - 3] + "断needle".encode() + b"\n" + content
    attempt = log_of(filled, content)
    search = search_attempt_log(attempt, "断Needle")
    (match,) = search.matches
    assert match.offset == piece - 3
    assert match.line == content[: match.offset].count(b"\n") + 1
    assert search.complete


def test_a_large_log_is_read_by_ranges(
    browser: Client, filled: FilledCompany, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 MB: no look at it holds more than a small part."""
    line = b"step 1 loss 2.0 " + b"." * 83 + b"\n"
    attempt = log_of(filled, line * 1_000_000 + b"the end\n")
    tracemalloc.start()
    page = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log")
    found = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&q=the+end").context["found"]
    middle = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&at=50000000").context["window"]
    _now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "the end" in page.text
    assert found.line == 1_000_001
    assert middle.start <= 50_000_000 < middle.end
    assert len(middle.text) < 100_000
    assert most < 30_000_000
    assert attempt.log_digest


def test_a_log_window_has_whole_lines(browser: Client, filled: FilledCompany) -> None:
    content = "".join(f"第{number}行 of the log\n" for number in range(10_000))
    log_of(filled, content.encode())
    window = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&at=100000").context["window"]
    assert window.text.startswith("第")
    assert window.text.endswith("log\n")
    later = browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&at={window.end}").context["window"]
    assert later.start <= window.end < later.end
    assert browser.get(f"/jobs/{filled.succeeded.uid}?tab=log&at=999999999").status_code == 200


def test_each_attempt_has_its_own_log(browser: Client, filled: FilledCompany) -> None:
    retried(filled)
    page = f"/jobs/{filled.failed.uid}?tab=log"
    assert "No space left on device" in browser.get(f"{page}&attempt=1").text
    assert "No space left on device" not in browser.get(page).text
    assert browser.get(f"{page}&attempt=7").status_code == 404


def test_a_succeeded_job_links_to_its_next_steps(browser: Client, filled: FilledCompany) -> None:
    text = browser.get(f"/jobs/{filled.succeeded.uid}").text
    assert f"/jobs/new/evaluate?model={filled.tuned.uid}&amp;dataset={filled.dataset.uid}" in text
    assert f'action="{reverse("deployment-quick", args=[filled.tuned.uid])}"' in text
    # 0.75 against the base's 0.01 on the same rows.
    assert "+0.74" in text


def test_a_stopping_job_shows_its_state(browser: Client, filled: FilledCompany) -> None:
    attempt = filled.running.attempts.get()
    services.job_cancel(job=filled.running, actor=filled.user, at=timezone.now())
    services.attempt_transition(
        attempt, AttemptEvent.STOP, at=timezone.now(), reason="stopping: cancelled by ada"
    )
    text = browser.get(f"/jobs/{filled.running.uid}").text
    assert 'data-state="stopping"' in text
    assert "Cancellation requested by ada." in text
    assert "The job or pipeline is already being cancelled." in text


def test_a_clone_has_the_same_request(browser: Client, filled: FilledCompany) -> None:
    job = factories.job(
        actor=filled.user,
        team=filled.team,
        queue=filled.queue,
        model=filled.base,
        dataset=filled.dataset,
        name="as it was",
        spec={"method": "lora", "learning_rate": 0.003, "lora": {"rank": 32}},
    )
    form = browser.get(f"/jobs/new/finetune?clone={job.uid}").context["form"]
    posted = {field.name: field.value() for field in form if field.value() is not None}
    browser.post("/jobs/new/finetune", posted)
    clone = Job.objects.first()
    assert clone is not None
    assert clone.pk != job.pk
    for name in (
        "name",
        "spec",
        "model_version",
        "dataset_version",
        "output_name",
        "chips",
        "shape",
    ):
        assert getattr(clone, name) == getattr(job, name)


def test_a_cloned_script_keeps_its_code(browser: Client, filled: FilledCompany) -> None:
    code = Artifact.objects.create(
        team=filled.team, kind=ArtifactKind.CODE, files=[], size=0, created_by="upload"
    )
    Job.objects.filter(pk=filled.script.pk).update(
        code=code, spec={**filled.script.spec, "environment": {"RATE": "0.1"}}
    )
    response = browser.get(f"/jobs/new/script?clone={filled.script.uid}")
    assert "The code of the cloned job is used" in response.text
    form = response.context["form"]
    posted = {field.name: field.value() for field in form if field.value() is not None}
    browser.post("/jobs/new/script", posted)
    clone = Job.objects.first()
    assert clone is not None
    assert clone.code == code
    assert clone.spec["environment"] == {"RATE": "0.1"}


def test_only_visible_jobs_are_cloned_and_only_as_their_kind(
    browser: Client, outsider: Client, filled: FilledCompany
) -> None:
    assert outsider.get(f"/jobs/new/finetune?clone={filled.running.uid}").status_code == 404
    assert browser.get(f"/jobs/new/script?clone={filled.running.uid}").status_code == 404
