"""Secret variables reach the process of a job, and nothing that is shown or kept of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from apps.fleet import selectors as fleet
from apps.jobs import selectors
from apps.jobs.models import Attempt
from apps.jobs.selectors.secret_variables import mask_secrets
from apps.models import selectors as models
from controlplane.adapters.clusters.local.launch_folders import LocalClusterFolder
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind
from controlplane.ports import adapter_registry
from controlplane.ports.engines import RenderRequest
from controlplane.ports.launches import Launch
from tests.contract.cluster_harness import NODE, LocalHarness
from tests.contract.waiting import until
from tests.functional.security.database_texts import database_texts
from tests.integration import company as companies
from tests.integration.company import Company

SECRET = "hf_0123456789abcdefSECRET"
PROGRAM = """
import hashlib, os, sys
token = os.environ["HF_TOKEN"]
print("digest", hashlib.sha256(token.encode()).hexdigest())
print("token", token)
sys.exit("ends with " + token)
"""


class ProgramEngine(companies.PlainEngine):
    """Runs a Python program, on the cluster's plain Python."""

    name = "program"

    def render(self, request: RenderRequest) -> Launch:
        launch = super().render(request)
        role = replace(launch.roles[0], argv=("{python}", "-c", request.spec["program"]))
        return replace(launch, roles=(role,))


@pytest.fixture
def local(installation: object) -> Iterator[LocalHarness]:
    harness = LocalHarness()
    try:
        yield harness
    finally:
        harness.close()


def submitted(company: Company, **changes: Any) -> Attempt:
    """Its newest attempt, launched."""
    _, attempt = company.launched(
        kind=JobKind.SCRIPT,
        output_name="",
        model_version=None,
        dataset_version=None,
        secret_variables={"HF_TOKEN": SECRET},
        **changes,
    )
    return attempt


def test_only_the_process_receives_a_secret_value(
    local: LocalHarness, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ProgramEngine()
    monkeypatch.setattr(adapter_registry, "engine_by_name", {engine.name: engine}.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: (engine.name,))
    company = companies.found(node=NODE)
    monkeypatch.setattr(fleet, "cluster_adapter", lambda _row: local.cluster)
    attempt = submitted(company, engine=engine.name, spec={"program": PROGRAM})
    record = LocalClusterFolder(local.home).launch(attempt.launch_name).record
    assert SECRET in record.read_text()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert record.stat().st_uid == os.geteuid()

    def ended() -> bool:
        company.turn_jobs()
        attempt.refresh_from_db()
        return attempt.ended_at is not None

    until(ended, within=60.0, what="the attempt has ended")
    assert attempt.state == AttemptState.FAILED
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    shown = selectors.attempt_log(attempt, offset=0, limit=1 << 20).content.decode()
    assert f"digest {digest}" in shown
    assert SECRET not in shown
    assert SECRET not in attempt.message
    assert SECRET not in database_texts()
    with models.artifact_store().open(attempt.log_digest) as log:
        assert SECRET.encode() not in log.read()


def test_logs_of_a_cluster_without_masking_are_masked(company: Company) -> None:
    attempt = submitted(company)
    launch = company.cluster.launched(attempt.launch_name)
    assert launch.secrets["HF_TOKEN"] == SECRET
    assert SECRET not in str(launch.roles)
    assert SECRET not in str(launch.files)
    company.cluster.run(attempt.launch_name)
    company.turn_jobs()
    company.cluster.write_log(attempt.launch_name, f"before {SECRET} after\n".encode())
    shown = selectors.attempt_log(attempt, offset=0, limit=1000).content.decode()
    assert shown == f"before {'*' * len(SECRET)} after\n"
    company.cluster.finish(attempt.launch_name, exit_code=1, message=f"died of {SECRET}")
    company.turn_jobs()
    attempt.refresh_from_db()
    assert attempt.message == f"died of {'*' * len(SECRET)}"
    assert attempt.log_tail == shown
    assert SECRET not in database_texts()


def test_every_piece_of_a_log_is_that_piece_of_the_masked_log(company: Company) -> None:
    attempt = submitted(company)
    company.cluster.run(attempt.launch_name)
    company.turn_jobs()
    attempt.refresh_from_db()
    whole = f"a{SECRET}{SECRET}b\n{SECRET[:7]}-{SECRET}".encode()
    masked = whole.replace(SECRET.encode(), b"*" * len(SECRET))
    company.cluster.write_log(attempt.launch_name, whole)
    wrong = []
    for offset in range(len(whole) + 1):
        for limit in (1, 3, len(SECRET), len(whole)):
            chunk = selectors.attempt_log(attempt, offset=offset, limit=limit)
            if chunk.content != masked[offset : offset + limit]:
                wrong.append((offset, limit, chunk.content))
    for back in range(1, len(whole) + 5):
        chunk = selectors.attempt_log(attempt, offset=-back, limit=len(whole))
        if chunk.content != masked[-back:]:
            wrong.append((-back, len(whole), chunk.content))
    assert wrong == []


def test_a_partial_value_at_the_end_is_withheld(company: Company) -> None:
    attempt = submitted(company)
    company.cluster.run(attempt.launch_name)
    company.turn_jobs()
    attempt.refresh_from_db()
    company.cluster.write_log(attempt.launch_name, f"token {SECRET[:9]}".encode())
    first = selectors.attempt_log(attempt, offset=0, limit=100)
    assert (first.content, first.next_offset, first.complete) == (b"token ", 6, False)
    company.cluster.write_log(attempt.launch_name, f"{SECRET[9:]}!".encode())
    second = selectors.attempt_log(attempt, offset=first.next_offset, limit=100)
    assert second.content == b"*" * len(SECRET) + b"!"


def test_the_end_of_a_value_at_the_beginning_is_masked() -> None:
    secrets = [SECRET.encode()]
    assert mask_secrets(f"{SECRET[-6:]} died".encode(), secrets) == b"****** died"
    assert mask_secrets(b"ET died", secrets) == b"ET died"
    assert mask_secrets(b"died", secrets) == b"died"


def test_the_token_of_the_attempt_is_not_replaced(company: Company) -> None:
    attempt = submitted(company)
    token = selectors.attempt_token(attempt)
    assert token in company.cluster.launched(attempt.launch_name).secrets.values()
