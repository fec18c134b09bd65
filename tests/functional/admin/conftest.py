"""A company with rows in every table, and its administrator."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client

from apps.accounts import services as accounts
from apps.accounts.models import (
    ExternalIdentity,
    IdempotencyRecord,
    PersonalToken,
    User,
)
from apps.jobs import services as jobs
from apps.jobs.models import Job
from apps.models.models import ModelVersion, ModelVersionTransition
from apps.serving.models import ApiKey, Deployment
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments, gateways
from controlplane.domain.common.permissions import Scope
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.registry.versions import MODEL, ModelEvent
from controlplane.persistence.state_transitions import apply_transition
from tests.integration.company import ENGINE, Company
from tests.integration.founding import committed_company, company, installation

__all__ = ["committed_company", "company", "installation"]


@dataclass(frozen=True, kw_only=True)
class LivedIn:
    """A company with rows in every table."""

    company: Company
    boss: User
    key: ApiKey
    key_text: str
    token: PersonalToken
    token_text: str
    running: Job
    deployment: Deployment


@pytest.fixture
def boss(db: None) -> User:
    return User.objects.create_superuser("boss", password="a long password")


@pytest.fixture
def lived_in(company: Company, boss: User) -> LivedIn:
    _, trained = company.running()
    jobs.attempt_progress_store(attempt=trained, points=[{"step": 1, "loss": 2.0}], at=company.at)
    company.finish(trained)
    jobs.saved_filter_save(owner=company.engineer, name="failures", query="state=failed")
    _, evaluated = company.running(kind=JobKind.EVALUATE, output_name="")
    company.finish(evaluated, {"report.json": b"{}"})
    company.turn_jobs()
    deployment = deployments.deployment_create(
        actor=company.engineer,
        team=company.team,
        name="parser",
        configuration=RevisionConfiguration(model_version=company.model, engine=ENGINE),
        queue=company.queue,
    )
    running, _ = company.running()
    company.turn_deployments()
    company.schedule()
    company.turn_deployments()
    broken = ModelVersion.objects.create(line=company.model.line, number=99)
    apply_transition(
        broken, MODEL, ModelEvent.FAIL, into=ModelVersionTransition, at=company.at, reason="gone"
    )
    key, key_text = gateways.api_key_create(
        actor=company.engineer, team=company.team, name="robot", at=company.at
    )
    token, token_text = accounts.token_create(
        user=company.engineer, name="laptop", scopes=frozenset({Scope.ALL})
    )
    ExternalIdentity.objects.create(
        user=company.engineer, issuer="https://sign-on.example", subject="s-1", name="mei"
    )
    IdempotencyRecord.objects.create(
        user=company.engineer, key="k1", fingerprint="f" * 64, status=201, body={"key": "nf-hush"}
    )
    gateways.gateway_mark_seen(name="gateway-1", version=1, at=company.at)
    record = {
        "at": company.at.isoformat(),
        "key": key.uid,
        "route": "parser",
        "backend": "",
        "operation": "chat",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "duration_ms": 5.0,
        "first_token_ms": None,
    }
    for name in company.cluster.names():
        company.cluster.run(name)
    for _ in range(2):
        company.turn_deployments()
    gateways.usage_batch_record(gateway="gateway-1", sequence=1, records=[record])
    return LivedIn(
        company=company,
        boss=boss,
        key=key,
        key_text=key_text,
        token=token,
        token_text=token_text,
        running=running,
        deployment=deployment,
    )


@pytest.fixture
def browser(client: Client, boss: User) -> Client:
    client.force_login(boss)
    return client
