from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.gateway.control_planes import FakeControl, key_of, route_of
from tests.integration.gateway.engines import MODEL, FakeEngine
from tests.integration.gateway.processes import GatewayProcess, PreloadedGatewayProcess

SECRET = "sk-team-a"
CREDENTIAL = "the-engine's-own"


def backend_of(
    *urls: str, uid: str = "backend-1", weight: int = 100, model: str = MODEL
) -> dict[str, Any]:
    return {
        "uid": uid,
        "weight": weight,
        "model": model,
        "endpoints": [
            {"uid": f"{uid}-{index}", "url": url, "credential": CREDENTIAL}
            for index, url in enumerate(urls)
        ],
    }


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    server = FakeEngine(credential=CREDENTIAL).start()
    yield server
    server.stop()


@pytest.fixture
def control(engine: FakeEngine) -> Iterator[FakeControl]:
    """Publishes one route ``parser`` of team A, served by ``engine``, and one of team B."""
    server = FakeControl().start()
    server.publish(
        routes=[
            route_of("parser", backend_of(engine.url)),
            route_of("secret", backend_of(engine.url), team="team-b"),
        ],
        keys=[key_of(SECRET)],
    )
    yield server
    server.stop()


@pytest.fixture
def stopped_gateway(control: FakeControl, tmp_path: Path) -> Iterator[GatewayProcess]:
    process = PreloadedGatewayProcess(home=tmp_path, control_url=control.url)
    yield process
    process.stop()


@pytest.fixture
def gateway(stopped_gateway: GatewayProcess) -> GatewayProcess:
    stopped_gateway.start()
    return stopped_gateway
