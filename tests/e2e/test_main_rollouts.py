"""A rolling update under load, and a killed engine, on the product's own server through the real gateway."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from openai import OpenAI, OpenAIError

from tests.e2e.main_job import RECIPES, MainJob, talking_client
from tests.e2e.product import Product, processes
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

WITHIN = 900.0
#: Enough for a second of the sample model, which seldom ends by itself.
STREAM_TOKENS = 400
# Each of its steps may take that long on a busy machine.
pytestmark = [
    pytest.mark.product,
    pytest.mark.engine,
    pytest.mark.full,
    pytest.mark.timeout(4 * WITHIN),
]


@dataclass
class Load:
    """Requests one after the other, without retries, until it is stopped."""

    gateway: str
    key: str
    model: str
    answered: int = 0
    errors: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        url = f"{self.gateway}/v1"
        with OpenAI(base_url=url, api_key=self.key, max_retries=0, timeout=WITHIN) as api:
            while not self.stopped.is_set():
                try:
                    self.request(api)
                    self.answered += 1
                except (OpenAIError, httpx.HTTPError) as error:
                    self.errors.append(repr(error))

    def request(self, api: OpenAI) -> None:
        api.completions.create(model=self.model, prompt="西宁", max_tokens=16)


@dataclass
class StreamLoad(Load):
    """Streams one after the other, each read to its end."""

    #: From the first event to the last of each.
    spans: list[tuple[datetime, datetime]] = field(default_factory=list)

    def request(self, api: OpenAI) -> None:
        with streamed_events(api, model=self.model) as events:
            first = next(events)
            began = datetime.now(UTC)
            if error := incomplete((first, *events)):
                self.errors.append(error)
            self.spans.append((began, datetime.now(UTC)))


@contextmanager
def streamed_events(api: OpenAI, *, model: str) -> Iterator[Iterator[str]]:
    """The data of the events as the gateway sends them; the client library hides how a stream ends."""
    created = api.completions.with_streaming_response.create(
        model=model, prompt="西宁", max_tokens=STREAM_TOKENS, stream=True
    )
    with created as response:
        yield (
            line.removeprefix("data: ")
            for line in response.iter_lines()
            if line.startswith("data: ")
        )


def incomplete(events: Sequence[str]) -> str:
    """How a stream ended that did not end in order; empty if it did."""
    *content, last = events
    errors = [each for each in content if "error" in json.loads(each)]
    return "" if last == "[DONE]" and not errors else f"{last}, {errors}"


@contextmanager
def steady_load(product: Product, *, key: str, model: str) -> Iterator[list[Load]]:
    loads = [
        kind(gateway=product.gateway, key=key, model=model)
        for kind in (Load, Load, StreamLoad, StreamLoad)
    ]
    threads = [threading.Thread(target=load.run) for load in loads]
    for thread in threads:
        thread.start()
    try:
        yield loads
    finally:
        for load in loads:
            load.stopped.set()
        for thread in threads:
            thread.join()


def test_a_rolling_update_loses_no_request_and_a_killed_engine_comes_back(
    product: Product, client: RestClient
) -> None:
    job = MainJob(client, gateway=product.gateway, recipe=RECIPES["quick"])
    base = job._base_model()
    team = client.get("teams")["results"][0]["uid"]
    name = f"rolled-{job.stamp}"
    deployment = client.post(
        "deployments", {"team": team, "name": name, "model_version": base, "replicas": 1}
    )
    path = f"deployments/{deployment['uid']}"
    _until(client, path, lambda one: one["state"] == "ready")
    key = client.post("keys", {"team": team, "name": "rolling update"})["text"]
    with talking_client(product.gateway, key=key, model=name):
        pass

    with steady_load(product, key=key, model=name) as loads:
        wait_until(lambda: min(load.answered for load in loads), bool, within=WITHIN, what="load")
        client.post(f"{path}/revise", {"model_version": base, "spec": {"queue_size": 32}})
        _until(client, path, lambda one: _live_revisions(one) == {2} and one["state"] == "ready")
        after = sum(load.answered for load in loads)
        wait_until(
            lambda: sum(load.answered for load in loads) - after,
            lambda more: more >= 20,
            within=WITHIN,
            what="load after the update",
        )
    assert [load.errors for load in loads] == [[], [], [], []]
    (drained_at,) = (
        datetime.fromisoformat(event["at"])
        for event in client.get(f"{path}/events")
        if event["event"] == "drain"
    )
    spans = [span for load in loads if isinstance(load, StreamLoad) for span in load.spans]
    assert any(began < drained_at < ended for began, ended in spans), (drained_at, spans)

    (replica,) = client.get(path)["revisions"][0]["backends"][0]["replicas"]
    engines = processes(product, f"replica-{replica['uid']}", "ninefold_runtime")
    assert engines
    killed_at = time.time()
    for engine in engines:
        engine.kill()
    crashed = _until(client, path, lambda one: _replica(one)["state"] == "backoff")
    assert _replica(crashed)["crashes"] == 1
    assert "restart in 10 s" in _replica(crashed)["message"]["message"]
    back = _until(client, path, lambda one: _replica(one)["state"] == "ready")
    assert _replica(back)["generation"] == 2
    assert time.time() - killed_at >= 10
    with talking_client(product.gateway, key=key, model=name) as api:
        assert api.completions.create(model=name, prompt="西宁", max_tokens=1).choices
        # The last replica drains: a stream that is open on it is complete.
        with streamed_events(api, model=name) as events:
            first = next(events)
            client.post(f"{path}/stop")
            assert not incomplete((first, *events))
    _until(client, path, lambda one: one["state"] == "stopped")


def _live_revisions(deployment: Any) -> set[int]:
    return {
        revision["number"]
        for revision in deployment["revisions"]
        for backend in revision["backends"]
        if backend["replicas"]
    }


def _replica(deployment: Any) -> Any:
    (replica,) = deployment["revisions"][0]["backends"][0]["replicas"]
    return replica


def _until(client: RestClient, path: str, condition: Any) -> Any:
    return wait_until(lambda: client.get(path), condition, within=WITHIN, what=path)
