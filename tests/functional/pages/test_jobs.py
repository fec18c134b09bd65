"""Jobs: putting them together, watching them, stopping them."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.web.logs import log_tail
from controlplane.domain.jobs.lifecycle import JobEvent, JobKind
from controlplane.domain.quotas.queues import QueueState
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany

HTMX = {"HX-Request": "true"}


@pytest.fixture
def finetune(empty: EmptyCompany) -> dict[str, str]:
    """A form of which nothing is wrong."""
    model = factories.model_version(actor=empty.user, team=empty.team)
    dataset = factories.dataset_version(actor=empty.user, team=empty.team)
    return {
        "team": empty.team.uid,
        "model_version": model.uid,
        "dataset_version": dataset.uid,
        "output_name": "addresses",
        "method": "full",
        "chip": "cpu",
        "cards": "1",
    }


def test_a_plain_form_submits_a_fine_tune(browser: Client, finetune: dict[str, str]) -> None:
    response = browser.post("/jobs/new/finetune", {**finetune, "learning_rate": "0.002"})
    job = Job.objects.get()
    assert response["Location"] == f"/jobs/{job.uid}"
    assert job.spec["learning_rate"] == 0.002
    assert job.name == "fine-tune addresses"


def test_an_engines_finding_is_shown_at_its_field_and_input_is_kept(
    browser: Client, finetune: dict[str, str]
) -> None:
    response = browser.post("/jobs/new/finetune", {**finetune, "learning_rate": "-1"})
    assert response.status_code == 422
    form = response.context["form"]
    assert "-1" in form.errors["learning_rate"][0]
    assert escape(form.errors["learning_rate"][0]) in response.text
    assert 'value="-1"' in response.text
    assert 'aria-invalid="true"' in response.text
    assert not Job.objects.exists()


def test_a_collapsed_group_with_an_invalid_field_is_opened(
    browser: Client, finetune: dict[str, str]
) -> None:
    response = browser.post("/jobs/new/finetune", {**finetune, "batch_size": "0"})
    assert '<details class="nf-more" open>' in response.text


@pytest.mark.parametrize(("cards", "error"), [("1", False), ("none", True)])
def test_an_empty_form_shows_no_error(browser: Client, cards: str, error: bool) -> None:
    form = {"chip": "any", "cards": cards}
    text = browser.post("/jobs/new/script/check", form, headers=HTMX).text
    assert "data-error-field=" in text
    assert ("Fix the following fields" in text) is error
    assert ("Required fields" in text) is not error


def test_the_live_check_shows_findings_and_stores_nothing(
    browser: Client, finetune: dict[str, str]
) -> None:
    wrong = browser.post("/jobs/new/finetune/check", {**finetune, "epochs": "0"}, headers=HTMX)
    assert wrong.status_code == 200
    assert "epochs must be &gt; 0" in wrong.text
    assert 'href="#id_epochs"' in wrong.text
    assert "<html" not in wrong.text
    right = browser.post("/jobs/new/finetune/check", finetune, headers=HTMX)
    assert "Ready to submit" in right.text
    assert not Job.objects.exists()


def test_an_evaluation_is_submitted(browser: Client, finetune: dict[str, str]) -> None:
    form = {**finetune, "metrics": ["exact_match", "perplexity"], "split": "validation"}
    browser.post("/jobs/new/evaluate", form)
    assert Job.objects.get().spec["metrics"] == ["exact_match", "perplexity"]


def test_an_empty_split_is_refused_before_the_job_is_queued(
    browser: Client, empty: EmptyCompany, finetune: dict[str, str]
) -> None:
    few = factories.dataset_version(actor=empty.user, team=empty.team, name="few", rows=3)
    form = {**finetune, "dataset_version": few.uid, "split": "test"}
    response = browser.post("/jobs/new/evaluate", form)
    assert "it has train" in response.context["form"].errors["split"][0]
    assert not Job.objects.exists()


SCRIPT = {"argv": "python\nrun.py\n--fast", "chip": "cpu", "cards": "1"}


def test_a_scripts_lines_become_arguments_and_variables(
    browser: Client, empty: EmptyCompany
) -> None:
    form = {**SCRIPT, "team": empty.team.uid, "environment": "RATE=0.1\n\nNAME=a=b"}
    browser.post("/jobs/new/script", form)
    spec = Job.objects.get().spec
    assert spec["argv"] == ["python", "run.py", "--fast"]
    assert spec["environment"] == {"RATE": "0.1", "NAME": "a=b"}


def test_a_line_that_is_not_a_variable_is_reported(browser: Client, empty: EmptyCompany) -> None:
    form = {**SCRIPT, "team": empty.team.uid, "environment": "RATE=0.1\nnonsense"}
    response = browser.post("/jobs/new/script", form)
    assert "Line 2 must have the form NAME=value: nonsense" in response.text


def test_a_viewer_may_not_submit(viewer: Client, finetune: dict[str, str]) -> None:
    response = viewer.post("/jobs/new/finetune", finetune)
    assert response.status_code == 403
    assert "permission to run" in response.text


def test_a_form_without_an_open_queue_is_refused(
    browser: Client, empty: EmptyCompany, finetune: dict[str, str]
) -> None:
    empty.queue.state = QueueState.CLOSED
    empty.queue.save()
    assert "has no open queue" in browser.post("/jobs/new/finetune", finetune).text


def test_another_teams_dataset_cannot_be_chosen(outsider: Client, finetune: dict[str, str]) -> None:
    response = outsider.post("/jobs/new/finetune", finetune)
    assert response.status_code == 422
    assert set(response.context["form"].errors) >= {"team", "model_version", "dataset_version"}


def test_a_waiting_job_has_its_reason_with_numbers(browser: Client, filled: FilledCompany) -> None:
    text = browser.get(f"/jobs/{filled.waiting.uid}").text
    assert "needs 1 × 4 cards of cpu; 2 of 5 are free" in text


def test_a_failed_job_shows_its_last_lines(browser: Client, filled: FilledCompany) -> None:
    text = browser.get(f"/jobs/{filled.failed.uid}").text
    assert "the disk is full" in text
    assert "No space left on device" in text


def test_a_running_job_is_polled_and_an_ended_one_no_longer(
    browser: Client, filled: FilledCompany
) -> None:
    live = browser.get(f"/jobs/{filled.running.uid}", headers=HTMX)
    assert live.status_code == 200
    assert 'hx-trigger="every 2s"' in live.text
    ended = browser.get(f"/jobs/{filled.succeeded.uid}", headers=HTMX)
    assert ended.status_code == 286
    assert "every 2s" not in ended.text
    assert "<html" not in ended.text


@pytest.mark.parametrize("address", ["/", "/jobs", "/deployments"])
def test_a_list_is_polled_only_while_a_job_on_it_is_live(
    browser: Client, filled: FilledCompany, address: str
) -> None:
    assert browser.get(address, headers=HTMX).status_code == 200
    assert browser.get("/jobs?state=failed", headers=HTMX).status_code == 286


def test_filters_are_in_the_address(browser: Client, filled: FilledCompany) -> None:
    text = browser.get("/jobs?state=failed&kind=finetune&mine=on").text
    assert "ran out of disk" in text
    assert "teach addresses" not in text
    assert '<option value="finetune" selected>' in text


def test_older_jobs_are_on_the_next_page(browser: Client, empty: EmptyCompany) -> None:
    for number in range(27):
        factories.job(
            actor=empty.user,
            team=empty.team,
            queue=empty.queue,
            kind=JobKind.SCRIPT,
            name=f"count {number:02}",
        )
    first = browser.get("/jobs")
    assert "count 26" in first.text
    assert "count 01" not in first.text
    second = browser.get(f"/jobs{first.context['table'].next_href}").text
    assert "count 01" in second
    assert "count 02" not in second


def test_a_complete_log_ends_its_polling(browser: Client, filled: FilledCompany) -> None:
    address = f"/jobs/{filled.succeeded.uid}/log?offset=10"
    response = browser.get(address, headers=HTMX)
    assert response.status_code == 286
    assert "step 40 of 40" in response.text
    assert "hx-get" not in response.text


def test_a_log_is_downloaded_whole(browser: Client, filled: FilledCompany) -> None:
    response = browser.get(f"/jobs/{filled.succeeded.uid}/log")
    assert response["Content-Type"].startswith("text/plain")
    assert b"".join(response).decode() == "第一行\nstep 40 of 40\n"


def test_a_log_never_shows_half_a_character(filled: FilledCompany) -> None:
    attempt = Attempt.objects.get(job=filled.succeeded)
    size = len("第一行\nstep 40 of 40\n".encode())
    assert log_tail(attempt, offset=1 - size).text.startswith("一行")


def test_an_unknown_attempt_has_no_log(browser: Client, filled: FilledCompany) -> None:
    assert browser.get(f"/jobs/{filled.failed.uid}/log?attempt=9").status_code == 404


def test_a_file_that_a_script_left_is_downloaded(browser: Client, filled: FilledCompany) -> None:
    response = browser.get(f"/jobs/{filled.script.uid}/files/answer.txt")
    assert b"".join(response) == b"forty-two"
    assert "attachment" in response["Content-Disposition"]
    assert browser.get(f"/jobs/{filled.script.uid}/files/../secret").status_code == 404


def test_cancelling_twice_is_one_request(browser: Client, filled: FilledCompany) -> None:
    address = f"/jobs/{filled.running.uid}/cancel"
    browser.post(address)
    filled.running.refresh_from_db()
    asked = filled.running.cancel_requested_at
    assert asked is not None
    browser.post(address)
    filled.running.refresh_from_db()
    assert filled.running.cancel_requested_at == asked


def test_cancelling_an_ended_job_shows_a_message(browser: Client, filled: FilledCompany) -> None:
    response = browser.post(f"/jobs/{filled.succeeded.uid}/cancel", follow=True)
    assert response.status_code == 200
    assert "a job that is succeeded cannot cancel" in response.text


def test_two_retries_of_a_page_make_one_attempt(browser: Client, filled: FilledCompany) -> None:
    address = f"/jobs/{filled.failed.uid}/retry"
    assert "is pending again" in browser.post(address, follow=True).text
    assert "cannot retry" in browser.post(address, follow=True).text
    assert filled.failed.attempts.count() == 2


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_actions_need_the_role_the_team_and_a_post(
    browser: Client, viewer: Client, outsider: Client, filled: FilledCompany, action: str
) -> None:
    address = f"/jobs/{filled.failed.uid}/{action}"
    assert browser.get(address).status_code == 405
    assert viewer.post(address).status_code == 403
    assert outsider.post(address).status_code == 404


def test_a_cancelled_job_can_be_retried_from_its_page(
    browser: Client, filled: FilledCompany
) -> None:
    services.job_transition(
        filled.waiting,
        JobEvent.CANCEL,
        at=timezone.now(),
        reason="cancelled by ada",
    )
    assert f"/jobs/{filled.waiting.uid}/retry" in browser.get(f"/jobs/{filled.waiting.uid}").text
