"""References by name in bodies and filters: what they find and refuse, and what another team may not learn."""

from __future__ import annotations

from typing import cast

import pytest
from django.utils import translation
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient

from apps.accounts import services as accounts
from apps.accounts.models import ApplySet
from apps.accounts.selectors import teams_visible
from apps.jobs.models import Job
from apps.quotas.models import Queue
from controlplane.domain.common.permissions import TeamRole
from controlplane.web.reasons import render_reason
from controlplane.web.references import resolve_reference
from tests import factories
from tests.functional.api.callers import API, problem, wrong_fields
from tests.functional.api.test_jobs import finetune
from tests.integration.company import Company


def reasons(response: object) -> dict[str, str]:
    """Codes of the reasons, by field."""
    body = problem(response, 400, "invalid")
    return {error["field"]: error["reason"]["code"] for error in body["errors"]}


def test_names_and_uids_submit_the_same_job(engineer: APIClient, company: Company) -> None:
    names = {
        "team": "addresses",
        "model_version": "tiny@1",
        "dataset_version": "addresses/addresses@1",
        "queue": "default",
    }
    uids = {"team": company.team.uid, "queue": company.queue.uid}
    for references in (names, uids):
        created = engineer.post(f"{API}/jobs", finetune(company, **references))
        assert created.status_code == 201, created.content
    by_name, by_uid = Job.objects.order_by("pk")
    for field in ("team_id", "model_version_id", "dataset_version_id", "queue_id"):
        assert getattr(by_name, field) == getattr(by_uid, field), field
    listed = engineer.get(f"{API}/jobs", {"team": "addresses", "model_version": "tiny@1"})
    assert len(listed.json()["results"]) == 2


def test_wrong_references_are_refused_with_codes(engineer: APIClient, company: Company) -> None:
    cases = {
        "nobody@1": "reference.unknown",
        "tiny": "reference.version.missing",
        "tiny@": "reference.version.missing",
        "tiny@9": "reference.version.unknown",
        "tiny@latest": "reference.version.unknown",
        "tiny@99999999999999999999": "reference.version.unknown",
        "routing/tiny@1": "reference.unknown",
        "../tiny": "reference.unknown",
        "f" * 32: "reference.unknown",
    }
    for value, code in cases.items():
        refused = engineer.post(f"{API}/jobs/check", finetune(company, model_version=value))
        assert reasons(refused) == {"model_version": code}, value
    refused = engineer.post(f"{API}/jobs/check", finetune(company, model_version=7))
    assert reasons(refused) == {"model_version": "reference.not_a_string"}
    refused = engineer.post(f"{API}/jobs/check", finetune(company, model_version="tiny@9"))
    assert wrong_fields(refused) == {"model_version": "tiny has no version 9; latest versions: 1"}
    refused = engineer.get(f"{API}/jobs", {"team": "nobody"})
    assert reasons(refused) == {"team": "reference.unknown"}


def test_an_empty_reference_is_refused_rather_than_taken_for_null(
    operator: APIClient, company: Company
) -> None:
    refused = operator.post(f"{API}/apply-sets", {"name": "fresh", "team": ""})
    assert reasons(refused) == {"team": "reference.not_a_string"}
    assert wrong_fields(refused)["team"].endswith("such as vision, or a uid, got ''")
    assert not ApplySet.objects.exists()
    refused = operator.get(f"{API}/jobs", {"team": ""})
    assert reasons(refused) == {"team": "reference.not_a_string"}
    created = operator.post(f"{API}/apply-sets", {"name": "fresh", "team": None})
    assert created.status_code == 201, created.content


def test_another_team_learns_nothing_by_names(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    Queue.objects.create(name="own", team=company.team)
    body = finetune(company, team="addresses", model_version="tiny@1", queue="own")
    body["dataset_version"] = "addresses@1"
    codes = reasons(stranger.post(f"{API}/jobs/check", body))
    assert codes == dict.fromkeys(
        ("team", "model_version", "dataset_version", "queue"), "reference.unknown"
    )
    absent = {**body, "model_version": "absent@1"}
    refusal = wrong_fields(stranger.post(f"{API}/jobs/check", body))["model_version"]
    as_absent = wrong_fields(stranger.post(f"{API}/jobs/check", absent))["model_version"]
    assert refusal == as_absent.replace("absent@1", "tiny@1")


def test_a_name_of_two_teams_must_be_qualified(engineer: APIClient, company: Company) -> None:
    factories.model_version(actor=company.stranger, team=company.other_team, name="tiny")
    body = finetune(company, team="addresses", model_version="tiny@1")
    assert engineer.post(f"{API}/jobs/check", body).status_code == 200, "the other is not visible"

    accounts.membership_set(
        team=company.other_team,
        user=company.engineer,
        roles=frozenset({TeamRole.VIEWER}),
        actor=None,
    )
    refused = engineer.post(f"{API}/jobs/check", body)
    assert reasons(refused) == {"model_version": "reference.ambiguous"}
    assert "addresses/tiny@1, routing/tiny@1" in wrong_fields(refused)["model_version"].replace(
        "routing/tiny@1, addresses/tiny@1", "addresses/tiny@1, routing/tiny@1"
    )
    qualified = engineer.post(f"{API}/jobs/check", {**body, "model_version": "addresses/tiny@1"})
    assert qualified.status_code == 200, qualified.content


def test_a_queue_of_another_team_is_refused_with_the_queues_of_the_team(
    engineer: APIClient, company: Company
) -> None:
    accounts.membership_set(
        team=company.other_team,
        user=company.engineer,
        roles=frozenset({TeamRole.ENGINEER}),
        actor=None,
    )
    other = Queue.objects.create(name="theirs", team=company.other_team)
    for queue in ("theirs", other.uid):
        body = finetune(company, team="addresses", queue=queue)
        refused = engineer.post(f"{API}/jobs/check", body)
        assert reasons(refused) == {"queue": "reference.queue.not_of_team"}
    served = {"name": "tiny", "team": "addresses", "model_version": "tiny@1", "queue": "theirs"}
    refused = engineer.post(f"{API}/deployments", served)
    assert reasons(refused) == {"queue": "reference.queue.not_of_team"}


def test_an_unknown_reference_is_explained_in_the_language_of_the_reader(
    company: Company,
) -> None:
    with pytest.raises(ValidationError) as refused:
        resolve_reference(teams_visible(company.engineer), "routing")
    [reason] = cast("list[str]", refused.value.get_codes())
    with translation.override("zh-hans"):
        assert render_reason(reason).startswith("团队 routing 不存在或对你不可见")
