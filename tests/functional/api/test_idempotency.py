from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import IdempotencyRecord, PersonalToken
from apps.accounts.services import IDEMPOTENCY_RETENTION, idempotency_prune
from apps.jobs.models import Job
from apps.models.models import DatasetVersion
from config.tasks import tidy_up
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.functional.api.test_jobs import finetune
from tests.integration.company import Company, rows


def post(client: APIClient, path: str, body: dict[str, Any], key: str = "k1") -> Any:
    return client.post(f"{API}/{path}", body, headers={"Idempotency-Key": key})


def test_a_repetition_is_answered_as_before_and_does_nothing(
    engineer: APIClient, company: Company
) -> None:
    first = post(engineer, "jobs", finetune(company))
    again = post(engineer, "jobs", finetune(company))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert ("Idempotency-Replayed" in first, again["Idempotency-Replayed"]) == (False, "true")
    assert Job.objects.count() == 1


def test_the_same_key_with_another_request_is_refused(
    engineer: APIClient, company: Company
) -> None:
    post(engineer, "jobs", finetune(company))
    refused = post(engineer, "jobs", finetune(company, name="other"))
    problem(refused, 422, "idempotency-mismatch")
    problem(post(engineer, "tokens", {"name": "x"}), 422, "idempotency-mismatch")
    assert Job.objects.count() == 1


def test_keys_of_two_people_do_not_meet(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    post(engineer, "tokens", {"name": "x"})
    assert "Idempotency-Replayed" not in post(stranger, "tokens", {"name": "x"})


def test_a_refused_request_leaves_its_key_free_for_the_corrected_one(
    engineer: APIClient, company: Company
) -> None:
    wrong = post(engineer, "jobs", finetune(company, spec={"learning_rate": -1}))
    problem(wrong, 422, "spec-refused")
    assert post(engineer, "jobs", finetune(company)).status_code == 201


def test_a_secret_is_repeated_but_never_stored_in_clear(engineer: APIClient) -> None:
    first = post(engineer, "tokens", {"name": "nightly"}).json()
    assert post(engineer, "tokens", {"name": "nightly"}).json() == first
    assert PersonalToken.objects.filter(name="nightly").count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT body::text FROM accounts_idempotencyrecord")
        stored = json.dumps(cursor.fetchall())
    assert first["text"] not in stored
    assert "nightly" not in stored


def test_an_action_is_repeatable_too(engineer: APIClient, company: Company) -> None:
    job = company.submit()
    post(engineer, f"jobs/{job.uid}/cancel", {})
    company.turn_jobs()
    again = post(engineer, f"jobs/{job.uid}/cancel", {})
    assert (again.status_code, again["Idempotency-Replayed"]) == (200, "true")


def test_an_upload_is_known_by_its_content_not_by_its_boundary(engineer: APIClient) -> None:
    def upload(count: int) -> Any:
        file = SimpleUploadedFile("rows.jsonl", rows(count).getvalue())
        return engineer.post(
            f"{API}/datasets",
            {"name": "orders", "file": file},
            format="multipart",
            headers={"Idempotency-Key": "u1"},
        )

    first, again = upload(20), upload(20)
    assert (first.status_code, again.json()) == (201, first.json())
    problem(upload(21), 422, "idempotency-mismatch")
    assert DatasetVersion.objects.filter(dataset__name="orders").count() == 1


def test_an_answer_is_forgotten_after_a_day(engineer: APIClient) -> None:
    post(engineer, "tokens", {"name": "nightly"})
    yesterday = timezone.now() - IDEMPOTENCY_RETENTION
    IdempotencyRecord.objects.update(created_at=yesterday)
    # Two that work cannot have one name.
    PersonalToken.objects.filter(name="nightly").update(revoked_at=timezone.now())
    assert "Idempotency-Replayed" not in post(engineer, "tokens", {"name": "nightly"})
    assert PersonalToken.objects.filter(name="nightly").count() == 2
    IdempotencyRecord.objects.update(created_at=yesterday)
    tidy_up()
    assert not IdempotencyRecord.objects.exists()
    assert idempotency_prune(at=timezone.now() + timedelta(days=2)) == 0


def test_a_key_that_is_none_is_refused(engineer: APIClient) -> None:
    for key in ("", "x" * 121, "käse"):
        assert "Idempotency-Key" in wrong_fields(post(engineer, "tokens", {"name": "x"}, key))


def test_of_two_at_once_one_works_and_the_other_gets_its_answer(
    committed_company: Company,
) -> None:
    client, body = caller(committed_company.engineer), finetune(committed_company)
    start, answers = threading.Barrier(4), []

    def submit() -> None:
        try:
            start.wait(timeout=10)
            answers.append(post(client, "jobs", body))
        finally:
            connection.close()

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert [answer.status_code for answer in answers] == [201] * 4
    assert len({answer.json()["uid"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer for answer in answers) == 3
    assert Job.objects.count() == 1
