"""How much of its cards' arithmetic a run uses is shown where it is known, and only there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.progress import attempt_utilization, jobs_scaling_efficiency
from apps.models.models import ModelVersion
from controlplane.domain.common.accelerators import Dtype
from controlplane.ports import adapter_registry
from tests import factories
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany
from tests.unit.domain.sizing.model_configs import QWEN2_7B

PARAMETERS = 7_615_616_512


@pytest.fixture
def job(empty: EmptyCompany) -> Job:
    """A fine-tune of a model of which the build is known, on eight cards."""
    model = factories.model_version(actor=empty.user, team=empty.team)
    ModelVersion.objects.filter(pk=model.pk).update(config=QWEN2_7B, parameters=PARAMETERS)
    created = factories.job(
        actor=empty.user,
        team=empty.team,
        queue=empty.queue,
        model=model,
        dataset=factories.dataset_version(actor=empty.user, team=empty.team, name="lessons"),
    )
    return run_on(created, cards=8, tokens_per_second=90_000)


def run_on(job: Job, *, cards: int, tokens_per_second: float, chip: str = "nvidia-h800") -> Job:
    """As if its attempt had reported that speed."""
    shape = [{**role, "cards": cards} for role in job.shape]
    Job.objects.filter(pk=job.pk).update(shape=shape, spec={**job.spec, "max_length": 1024})
    Attempt.objects.filter(job=job).update(
        chip=chip,
        progress={"step": 5, "total_steps": 10, "tokens_per_second": tokens_per_second},
    )
    return Job.objects.get(pk=job.pk)


def test_an_attempt_with_known_chip_and_throughput_has_a_utilization(
    browser: Client, job: Job
) -> None:
    found = attempt_utilization(job.attempts.get())
    assert found is not None
    peak = adapter_registry.all_chips()["nvidia-h800"].peak_rates[Dtype.BFLOAT16]
    # The rows of the tests are short, so that attention adds little to six times the parameters.
    assert found.token_operations == pytest.approx(6 * PARAMETERS, rel=0.01)
    assert found.mfu == pytest.approx(90_000 * found.token_operations / (8 * peak))
    text = browser.get(f"/jobs/{job.uid}").text
    assert "Utilization (MFU)" in text
    assert "misses the target of 60 %" in text


def test_sixty_percent_meets_the_target(browser: Client, job: Job) -> None:
    run_on(job, cards=8, tokens_per_second=110_000)
    assert "meets the target of 60 %" in browser.get(f"/jobs/{job.uid}").text


@for_each_case(
    ("chip", "progress"),
    [
        # A processor has no published rate.
        ("cpu", {"tokens_per_second": 90_000}),
        ("nvidia-h800", {}),
        ("nvidia-h800", {"tokens_per_second": 0}),
        ("nvidia-h800", {"tokens_per_second": "fast"}),
        ("", {"tokens_per_second": 90_000}),
    ],
)
def test_an_unknown_utilization_is_not_shown(
    browser: Client, job: Job, chip: str, progress: Mapping[str, Any]
) -> None:
    Attempt.objects.filter(job=job).update(
        chip=chip, progress={"step": 5, "total_steps": 10, **progress}
    )
    assert attempt_utilization(job.attempts.get()) is None
    assert "Utilization" not in browser.get(f"/jobs/{job.uid}").text


def test_a_model_of_unknown_architecture_has_no_utilization(job: Job) -> None:
    ModelVersion.objects.update(config={"architectures": ["Foo"]})
    assert attempt_utilization(job.attempts.get()) is None


def test_jobs_on_more_cards_have_a_scaling_efficiency(
    browser: Client, empty: EmptyCompany, job: Job
) -> None:
    assert job.model_version is not None
    assert job.dataset_version is not None
    more = factories.job(
        actor=empty.user,
        team=empty.team,
        queue=empty.queue,
        model=job.model_version,
        dataset=job.dataset_version,
    )
    more = run_on(more, cards=16, tokens_per_second=162_000)
    attempts = {each.pk: each.attempts.get() for each in (job, more)}
    assert jobs_scaling_efficiency([job, more], attempts) == (1.0, 0.9)
    similar = run_on(more, cards=8, tokens_per_second=162_000)
    attempts[similar.pk] = similar.attempts.get()
    assert jobs_scaling_efficiency([job, similar], attempts) == ()
    text = browser.get("/jobs/compare", {"job": [job.uid, more.uid]}).text
    assert "utilization" in text.lower()
