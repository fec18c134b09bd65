"""What a job's own settings must not reach: cards of others, and secrets of others."""

from __future__ import annotations

from typing import Any

from rest_framework.test import APIClient

from apps.jobs.models import Job
from controlplane.ports import registry
from tests.functional.api.callers import API, wrong_fields
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
    for plugin in registry.chip_plugins().values():
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
            if f"may not set {name}:" not in said.get("environment", ""):
                accepted.append((path, name, said))
    assert accepted == []
    assert not Job.objects.exists()


def test_variables_that_only_look_alike_are_a_jobs_own(
    engineer: APIClient, company: Company
) -> None:
    for name in ("VISIBLE", "MY_DEVICES", "NCCL_DEBUG", "ASCEND_LAUNCH_BLOCKING"):
        answer = engineer.post(f"{API}/jobs/check", script(company, spec=with_variable(name)))
        assert answer.json()["findings"] == [], name
