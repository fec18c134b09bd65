"""LoRA adapters of a deployment: validation, names, launches, and routes of gateways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.jobs.services import SpecRefused
from apps.models.models import ModelVersion
from apps.serving.models import AdapterRoute, Deployment
from apps.serving.selectors.lora_adapters import AdapterConfiguration
from apps.serving.services import deployments as services
from apps.serving.services import gateways
from controlplane.ports.engines import EngineProfile, LoraSupport
from tests.integration.company import CONFIG, Company, PlainEngine, ready_model, safetensors, stored
from tests.integration.serving.deployments import (
    configuration,
    ready_deployment,
    replicas_of,
    snapshot,
    start_replicas,
)

LORA = {"peft_type": "LORA", "r": 8, "rank_pattern": {"q_proj": 24}, "bias": "none"}


@pytest.fixture(autouse=True)
def adapter_engine(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = EngineProfile(
        title="Plain", lora=LoraSupport(max_rank=64, request_name="{model}:{adapter}")
    )
    monkeypatch.setattr(PlainEngine, "profile", lambda _: profile)


def adapter(company: Company, *, base: ModelVersion | None = None, **config: Any) -> ModelVersion:
    """A version that a fine-tuning with LoRA created: merged weights, and the adapter beside them."""
    version = ready_model(team=company.team, name="tuned")
    assert version.artifact is not None
    files = [
        stored("config.json", CONFIG),
        stored("model.safetensors", safetensors(embed=(8, 4))),
        stored("adapter/adapter_config.json", json.dumps({**LORA, **config}).encode()),
        stored("adapter/adapter_model.safetensors", safetensors(a=(8, 4))),
    ]
    version.artifact.files = [
        {"path": path, "digest": digest, "size": size} for path, digest, size in files
    ]
    version.artifact.save()
    version.base = base or company.model
    version.save()
    return version


def revise(company: Company, deployment: Deployment, **adapters: ModelVersion) -> None:
    services.deployment_revise(
        deployment=deployment,
        configuration=configuration(
            company,
            adapters=tuple(
                AdapterConfiguration(name=name, model_version=version)
                for name, version in adapters.items()
            ),
        ),
        actor=company.engineer,
        at=company.at,
    )


def routes(company: Company) -> dict[str, Any]:
    gateways.gateway_snapshot_publish(at=company.at)
    return {
        route["name"]: route
        for route in json.loads(gateways.gateway_snapshot_body(snapshot()))["routes"]
    }


def test_each_adapter_is_a_model_at_the_gateway_while_a_revision_serves_it(
    company: Company,
) -> None:
    deployment = ready_deployment(company)
    tuned = adapter(company)
    revise(company, deployment, formal=tuned, casual=tuned)
    assert routes(company)["formal"]["backends"] == []

    start_replicas(company)
    start_replicas(company)

    replica = replicas_of(deployment)[-1]
    launch = company.cluster.launched(replica.launch_name)
    assert [tree.name for tree in launch.inputs] == ["model", "adapter-1", "adapter-2"]
    assert set(launch.inputs[1].files) == {"adapter_config.json", "adapter_model.safetensors"}
    published = routes(company)
    assert set(published) == {"parser", "formal", "casual"}
    (backend,) = published["casual"]["backends"]
    assert backend["model"] == "parser:casual"
    assert backend["endpoints"] == published["parser"]["backends"][0]["endpoints"]
    assert {one.rank for one in replica.backend.revision.adapters.all()} == {24}

    revise(company, deployment, casual=tuned)
    assert set(routes(company)) == {"parser", "formal", "casual"}
    start_replicas(company)
    start_replicas(company)
    assert set(routes(company)) == {"parser", "casual"}


def test_everything_wrong_with_adapters_is_said(company: Company) -> None:
    deployment = ready_deployment(company)
    other = ready_model(team=company.team, name="other")
    wrong = {
        "has no LoRA adapter, only merged or fully trained weights": other,
        f"was trained from {other}, and the deployment serves {company.model}": adapter(
            company, base=other
        ),
        "has rank 128; Plain supports at most 64": adapter(company, r=128),
        "uses DoRA, which Plain does not support": adapter(company, use_dora=True),
        "must have peft_type LORA": adapter(company, peft_type="IA3"),
    }
    with pytest.raises(SpecRefused) as refusal:
        revise(
            company, deployment, **{f"a-{number}": one for number, one in enumerate(wrong.values())}
        )
    found = [finding.message for finding in refusal.value.findings]
    assert {finding.field for finding in refusal.value.findings} == {"adapters"}
    for message in wrong:
        assert any(message in each for each in found), (message, found)
    twice = AdapterConfiguration(name="same", model_version=adapter(company))
    for adapters, message in (
        ((twice, twice), "2 LoRA adapters have the name 'same'"),
        (
            tuple(
                AdapterConfiguration(name=f"n-{number}", model_version=twice.model_version)
                for number in range(17)
            ),
            "at most 16 LoRA adapters, got 17",
        ),
    ):
        with pytest.raises(SpecRefused, match=message):
            services.deployment_revise(
                deployment=deployment,
                configuration=configuration(company, adapters=adapters),
                actor=company.engineer,
                at=company.at,
            )
    assert not AdapterRoute.objects.exists()


def test_an_engine_without_adapters_names_those_with(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainEngine, "profile", lambda _: EngineProfile(title="Plain"))
    deployment = ready_deployment(company)
    with pytest.raises(SpecRefused, match="Plain does not serve LoRA adapters; engines that do"):
        revise(company, deployment, formal=adapter(company))


def test_a_name_belongs_to_one_route_or_adapter(company: Company) -> None:
    deployment = ready_deployment(company)
    tuned = adapter(company)
    with pytest.raises(SpecRefused, match="'parser' is already in use"):
        revise(company, deployment, parser=tuned)
    revise(company, deployment, formal=tuned)
    # A later revision of the same deployment may have the name again.
    revise(company, deployment, formal=tuned)
    with pytest.raises(SpecRefused, match="'formal' is already in use"):
        services.deployment_create(
            actor=company.engineer,
            team=company.team,
            name="formal",
            configuration=configuration(company),
            queue=company.queue,
        )
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    services.deployment_delete(deployment=deployment, actor=company.engineer, at=company.at)
    assert not AdapterRoute.objects.exists()
