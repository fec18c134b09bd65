"""A fine-tuning with LoRA, whose adapter is served beside the base model, through the gateway."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.main_job import ENDED, RECIPES, MainJob, talking_client
from tests.e2e.product import Product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.product, pytest.mark.engine, pytest.mark.full]

WITHIN = 900.0
PROMPT = "青海省西宁市城北区朝阳街道人民路12号"


def test_an_adapter_answers_by_its_own_name_beside_the_base_model(
    product: Product, client: RestClient
) -> None:
    job = MainJob(client, gateway=product.gateway, recipe=RECIPES["quick"])
    base, dataset = job._base_model(), job._upload()
    team = client.get("teams")["results"][0]["uid"]
    spec = {"method": "lora", "max_steps": 20, "learning_rate": 0.01, "validation_split": None}
    tuning = client.post(
        "jobs",
        {
            "team": team,
            "kind": "finetune",
            "name": "adapter",
            "model_version": base,
            "dataset_version": dataset,
            "output_name": f"adapter-{job.stamp}",
            "spec": spec,
        },
    )
    ended = _until(client, f"jobs/{tuning['uid']}", *ENDED)
    assert ended["state"] == "succeeded", client.text(f"jobs/{tuning['uid']}/log", offset=-4000)
    (tuned,) = client.get("model-versions", model=f"adapter-{job.stamp}")["results"]

    name, adapter = f"base-{job.stamp}", f"formal-{job.stamp}"
    deployment = client.post(
        "deployments",
        {
            "team": team,
            "name": name,
            "model_version": base,
            "adapters": [{"name": adapter, "model_version": tuned["uid"]}],
        },
    )
    path = f"deployments/{deployment['uid']}"
    served = _until(client, path, "ready")["revisions"][0]["adapters"]
    assert [each["name"] for each in served] == [adapter]
    key = client.post("keys", {"team": team, "name": "adapters"})["text"]
    with (
        talking_client(product.gateway, key=key, model=name) as api,
        talking_client(product.gateway, key=key, model=adapter),
    ):
        assert {name, adapter} <= {each.id for each in api.models.list()}
        known = _logprob(api, name)
        assert _logprob(api, adapter) != pytest.approx(known, abs=1e-3)
        assert _logprob(api, name) == pytest.approx(known, abs=1e-6)
    for route in (name, adapter):
        usage = wait_until(
            partial(_usage, client, route),
            bool,
            within=WITHIN,
            what=f"usage of {route}",
        )
        assert {each["route"] for each in usage} == {route}
    client.post(f"{path}/stop")
    _until(client, path, "stopped")


def _usage(client: RestClient, route: str) -> list[dict[str, Any]]:
    """Its usage as the gateway has reported it so far."""
    found: list[dict[str, Any]] = client.get("usage", route=route)["results"]
    return found


def _logprob(api: OpenAI, model: str) -> float:
    """Of the likeliest first token; the answer bears the name that was asked."""
    answer = api.completions.create(
        model=model, prompt=PROMPT, max_tokens=1, temperature=0, logprobs=1
    )
    assert answer.model == model
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.token_logprobs is not None
    return float(logprobs.token_logprobs[0] or 0.0)


def _until(client: RestClient, path: str, *states: str) -> Any:
    return wait_until(
        lambda: client.get(path),
        lambda one: one["state"] in states,
        within=WITHIN,
        what=f"{path} {' or '.join(states)}",
    )
