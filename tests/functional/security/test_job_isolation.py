"""What a job's own settings must not reach: cards of others, and secrets of others."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job, SecretVariable
from apps.jobs.services.secret_variables import RETRY_RETENTION, secret_variables_delete
from controlplane.domain.jobs.lifecycle import JobKind, JobState
from controlplane.ports import adapter_registry
from tests.functional.api.callers import API, wrong_fields
from tests.functional.security.database_texts import database_texts
from tests.integration.company import Company


def script(company: Company, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "script",
        "name": "count tokens",
        "spec": {"argv": ["python", "-c", "print(1)"]},
        **changes,
    }


def with_variable(name: str) -> dict[str, Any]:
    return {"argv": ["python", "-c", "print(1)"], "environment": {name: "all"}}


def device_variables() -> set[str]:
    """Every variable that a chip's profile names, and those that container runtimes obey beside them."""
    named = {
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_REQUIRE_CUDA",
        "CUDA_DEVICE_ORDER",
        "ASCEND_RUNTIME_OPTIONS",
        "ASCEND_VNPU_SPECS",
        "ENFLAME_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "HABANA_VISIBLE_MODULES",
        "MTHREADS_DRIVER_CAPABILITIES",
    }
    for plugin in adapter_registry.chip_plugins().values():
        named.add(plugin.profile().runtime_variable)
        named |= {chip.visible_devices_variable for chip in plugin.chips()}
    return named - {""}


def test_no_job_sets_a_variable_that_decides_which_cards_it_sees(
    engineer: APIClient, company: Company
) -> None:
    accepted = []
    for name in sorted(device_variables()):
        for path in ("jobs", "jobs/check"):
            answer = engineer.post(f"{API}/{path}", script(company, spec=with_variable(name)))
            said = (
                wrong_fields(answer, 422, "spec-refused")
                if path == "jobs"
                else {each["field"]: each["message"] for each in answer.json()["findings"]}
            )
            if f"must not set {name}:" not in said.get("environment", ""):
                accepted.append((path, name, said))
    assert accepted == []
    assert not Job.objects.exists()


def test_variables_that_only_look_alike_are_a_jobs_own(
    engineer: APIClient, company: Company
) -> None:
    for name in ("VISIBLE", "MY_DEVICES", "NCCL_DEBUG", "ASCEND_LAUNCH_BLOCKING"):
        answer = engineer.post(f"{API}/jobs/check", script(company, spec=with_variable(name)))
        assert answer.json()["findings"] == [], name


SECRET = "hf_0123456789abcdefSECRET"


def with_secret(company: Company, value: str = SECRET, **changes: Any) -> dict[str, Any]:
    return script(company, secret_variables=[{"name": "HF_TOKEN", "value": value}], **changes)


def submitted(engineer: APIClient, company: Company) -> Job:
    created = engineer.post(f"{API}/jobs", with_secret(company))
    assert created.status_code == 201, created.content
    return Job.objects.get(uid=created.json()["uid"])


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_secret_is_written_once_and_never_returned(engineer: APIClient, company: Company) -> None:
    created = engineer.post(
        f"{API}/jobs", with_secret(company), headers={"Idempotency-Key": "once"}
    )
    assert created.status_code == 201, created.content
    again = engineer.post(f"{API}/jobs", with_secret(company), headers={"Idempotency-Key": "once"})
    assert again.headers["Idempotency-Replayed"] == "true"
    job = Job.objects.get()
    assert created.json()["secret_variables"] == [{"name": "HF_TOKEN", "set": True}]
    answers: list[Any] = [created, again]
    answers += [engineer.get(f"{API}/jobs{path}") for path in ("", f"/{job.uid}")]
    answers += [engineer.get(f"{API}/jobs/{job.uid}/{part}") for part in ("events", "attempts")]
    answers.append(engineer.post(f"{API}/jobs/check", with_secret(company)))
    compared = {**with_secret(company), "on": ["cpu", "nvidia-h800"]}
    answers.append(engineer.post(f"{API}/jobs/render", compared))
    page = signed_in(company.engineer)
    tabs = ("overview", "spec", "rendered", "events", "log", "cluster")
    answers += [page.get(f"{reverse('job', args=[job.uid])}?tab={tab}") for tab in tabs]
    answers.append(page.get(f"/jobs/new/script?clone={job.uid}"))
    leaks = [answer.request["PATH_INFO"] for answer in answers if SECRET in answer.content.decode()]
    assert leaks == []
    assert [answer.status_code for answer in answers if answer.status_code >= 400] == []
    assert SECRET not in database_texts()
    assert selectors.secret_values(job) == {"HF_TOKEN": SECRET}


def test_what_is_wrong_with_a_secret_is_said_without_its_value(
    engineer: APIClient, company: Company
) -> None:
    refused = {
        "NVIDIA_VISIBLE_DEVICES": (SECRET, "must not set NVIDIA_VISIBLE_DEVICES"),
        "ASCEND_RUNTIME_OPTIONS": (SECRET, "must not set ASCEND_RUNTIME_OPTIONS"),
        "NINEFOLD_ATTEMPT_TOKEN": (SECRET, "must not set NINEFOLD_ATTEMPT_TOKEN"),
        "LD_PRELOAD": (SECRET, "must not set LD_PRELOAD"),
        "NO-NAME": (SECRET, "has the invalid name 'NO-NAME'"),
        "SHORT": ("hunter2", "the value of SHORT must have 8 to"),
        "LONG": (SECRET + "x" * 16_384, None),
        "TWICE": (SECRET, "TWICE is also set in environment"),
    }
    spec = with_variable("TWICE")
    for name, (value, said) in refused.items():
        body = script(company, spec=spec, secret_variables=[{"name": name, "value": value}])
        answer = engineer.post(f"{API}/jobs", body)
        assert answer.status_code in (400, 422), name
        assert value not in answer.content.decode(), name
        if said is not None:
            assert said in wrong_fields(answer, 422, "spec-refused")["secret_variables"]
    twice = [{"name": "A_KEY", "value": SECRET}] * 2
    answer = engineer.post(f"{API}/jobs", script(company, secret_variables=twice))
    assert "more than once" in wrong_fields(answer)["secret_variables"]
    assert not Job.objects.exists()
    assert SECRET not in database_texts()


def test_the_form_takes_secrets_and_never_shows_them_again(company: Company) -> None:
    page, url = signed_in(company.engineer), "/jobs/new/script"
    values = {
        "team": company.team.uid,
        "argv": "python\n-c\nprint(1)",
        "chip": "cpu",
        "cards": "1",
        "secret_variables-name": ["HF_TOKEN", "", "A_KEY"],
        "secret_variables-value": [SECRET, "", "another-" + SECRET],
    }
    wrong = page.post(url, {**values, "cards": "0"})
    assert wrong.status_code == 422
    assert SECRET not in wrong.content.decode()
    assert 'value="HF_TOKEN"' in wrong.content.decode()
    checked = page.post(reverse("job-check", args=["script"]), values)
    assert SECRET not in checked.content.decode()
    done = page.post(url, values)
    assert done.status_code == 302, done.content.decode()
    job = Job.objects.get()
    assert selectors.secret_values(job) == {
        "A_KEY": "another-" + SECRET,
        "HF_TOKEN": SECRET,
    }
    clone = page.get(f"{url}?clone={job.uid}").content.decode()
    assert 'value="HF_TOKEN"' in clone
    assert SECRET not in clone
    unfilled = page.post(url, {**values, "secret_variables-value": ["", "", ""]})
    assert unfilled.status_code == 422
    assert "Enter the value of HF_TOKEN." in unfilled.content.decode()
    assert SECRET not in database_texts()


def test_nobody_of_another_team_learns_of_a_secret(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    job = submitted(engineer, company)
    assert stranger.get(f"{API}/jobs/{job.uid}").status_code == 404
    page = signed_in(company.stranger)
    clone = page.get(f"/jobs/new/script?clone={job.uid}")
    assert clone.status_code == 404


def test_a_job_that_runs_again_has_its_secrets_until_they_are_deleted(
    engineer: APIClient, company: Company
) -> None:
    job = submitted(engineer, company)
    now = job.created_at
    Attempt.objects.update(state="failed", ended_at=now)
    Job.objects.update(state=JobState.FAILED, ended_at=now)
    assert secret_variables_delete(at=now) == 0
    assert engineer.post(f"{API}/jobs/{job.uid}/retry").status_code == 200
    assert selectors.secret_values(job) == {"HF_TOKEN": SECRET}

    Attempt.objects.update(state="failed", ended_at=now)
    Job.objects.update(state=JobState.FAILED, ended_at=now)
    assert secret_variables_delete(at=now + RETRY_RETENTION) == 1
    assert selectors.secret_values(job) == {}
    shown = engineer.get(f"{API}/jobs/{job.uid}").json()["secret_variables"]
    assert shown == [{"name": "HF_TOKEN", "set": False}]
    refused = wrong_fields(engineer.post(f"{API}/jobs/{job.uid}/retry"), 422, "spec-refused")
    assert "the value of HF_TOKEN has been deleted" in refused["secret_variables"]


def test_a_job_that_succeeded_keeps_no_secret(engineer: APIClient, company: Company) -> None:
    job = submitted(engineer, company)
    Job.objects.update(state=JobState.SUCCEEDED, ended_at=job.created_at)
    secret_variables_delete(at=job.created_at)
    assert SecretVariable.objects.get().value is None


def test_a_new_key_encrypts_secrets_again(
    engineer: APIClient, company: Company, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    job = submitted(engineer, company)
    old = settings.NINEFOLD_ENCRYPTION_KEYS
    new = Fernet.generate_key().decode()
    settings.NINEFOLD_ENCRYPTION_KEYS = [new, *old]
    call_command("rotate_encryption_key")
    assert "secret variable: value: 1 encrypted" in capsys.readouterr().out
    settings.NINEFOLD_ENCRYPTION_KEYS = [new]
    assert selectors.secret_values(job) == {"HF_TOKEN": SECRET}


def test_no_value_stands_in_the_text_of_a_request(company: Company) -> None:
    request = services.JobRequest(
        kind=JobKind.SCRIPT,
        name="n",
        spec={},
        queue=company.queue,
        secret_variables={"HF_TOKEN": SECRET},
    )
    assert SECRET not in repr(request)
