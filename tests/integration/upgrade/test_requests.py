"""Requests of runtimes, agents and gateways of the earlier version, and what gateways and agents keep on disk."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from apps.jobs.models import Attempt
from apps.serving.models import Gateway, GatewayCall, UsageBatch
from apps.serving.services import gateways
from apps.telemetry.models import CardHistory, CardMetrics, NodeToken
from gateway.snapshots import verify_and_parse_snapshot
from gateway.usage_reporting import UsageJournal
from ninefold_runtime.agent.sender import BatchSequence
from tests.integration.upgrade.old_database import Upgraded
from tests.integration.upgrade.recorded import FIXTURE, INSTALLATION, Exchange, exchanges
from tests.integration.upgrade.replaying import Clock, send

pytestmark = pytest.mark.slow

_TOKEN = INSTALLATION["secrets"]["gateway_token"]


def test_a_runtime_reports_progress_files_and_its_manifest(
    installation: Upgraded, clock: Clock
) -> None:
    _check_reports(exchanges("runtime"), attempt=INSTALLATION["running"]["attempt"], clock=clock)


def test_the_processes_of_a_simulated_cluster_report_likewise(
    installation: Upgraded, clock: Clock
) -> None:
    _check_reports(
        exchanges("simulated"), attempt=INSTALLATION["simulated"]["attempt"], clock=clock
    )


def _check_reports(recorded: list[Exchange], *, attempt: str, clock: Clock) -> None:
    """Send what the attempt sent, and look for it in its rows."""
    row = Attempt.objects.get(uid=attempt)
    before = set(row.points.values_list("step", flat=True))
    points: dict[int, dict[str, Any]] = {}
    checkpoint, files, manifest = None, {}, {}
    for exchange in recorded:
        send(exchange, clock=clock)
        if exchange.path.endswith("/progress"):
            for point in json.loads(exchange.body)["points"]:
                if "checkpoint" in point:
                    checkpoint = point.pop("checkpoint")
                    points.setdefault(checkpoint["step"], {})["checkpoint"] = checkpoint
                if point:
                    points.setdefault(point.pop("step"), {}).update(point)
        elif exchange.path.endswith("/manifest"):
            manifest = json.loads(exchange.body)
        else:
            digest = hashlib.sha256(exchange.body).hexdigest()
            files[exchange.path.partition("/files/")[2]] = (f"sha256:{digest}", len(exchange.body))
    row.refresh_from_db()
    assert points
    assert files
    after = dict(row.points.values_list("step", "values"))
    assert after.keys() == before | points.keys()
    assert {step: after[step] for step in points} == points
    assert row.progress["step"] == max(points)
    assert row.progress.get("checkpoint") == checkpoint
    assert row.reported_at is not None
    assert row.reported_at >= recorded[0].at
    stored = row.uploads.values_list("path", "digest", "size")
    assert {path: (digest, size) for path, digest, size in stored} == files
    assert row.manifest == manifest


def test_agents_push_what_they_read(installation: Upgraded, clock: Clock) -> None:
    measured = CardHistory.objects.count()
    recorded = exchanges("agent")
    vendors, nodes = set(), set()
    for exchange in recorded:
        present, earlier = send(exchange, clock=clock).json(), json.loads(exchange.response)
        assert present == earlier
        token = exchange.headers["Authorization"].removeprefix("Bearer ")
        row = NodeToken.objects.get(digest=hashlib.sha256(token.encode()).hexdigest())
        assert row.sequence == earlier["sequence"]
        assert row.used_at is not None
        assert row.used_at >= exchange.at
        assert gzip.decompress(exchange.body)
        vendors.add(exchange.headers["X-Ninefold-Vendor"])
        nodes.add(row.node_id)
    assert vendors == {"ascend", "nvidia", "cpu"}
    assert len(nodes) == 4
    fresh = CardMetrics.objects.filter(received_at__gte=recorded[0].at)
    assert set(fresh.values_list("card__node", flat=True)) == nodes
    assert CardHistory.objects.count() > measured


def test_a_gateway_polls_snapshots_and_posts_usage_that_is_counted_once(
    installation: Upgraded, clock: Clock
) -> None:
    # Issued anew, so that the gateway that waits for a version after that of the dump gets one.
    clock.at = exchanges("gateway")[0].at
    Gateway.objects.all().delete()
    for exchange in exchanges("gateway"):
        if "/usage" not in exchange.path:
            gateways.gateway_snapshot_publish(at=clock.at + 2 * gateways.REISSUE_AFTER)
            response = send(exchange, clock=clock)
            (signature,) = [response.headers[name] for name in ("X-Ninefold-Signature",)]
            present = verify_and_parse_snapshot(response.body, signature=signature, token=_TOKEN)
            names = {route.name for route in present.routes}
            assert {"adder", "adder-eight-bits"} <= names
            continue
        records = json.loads(exchange.body)["records"]
        before = GatewayCall.objects.count()
        assert send(exchange, clock=clock).json() == {"counted": True}
        assert GatewayCall.objects.count() == before + len(records)
        batch = UsageBatch.objects.latest("id")
        tokens = sum(one["prompt_tokens"] for one in records)
        counted = GatewayCall.objects.filter(batch=batch)
        assert sum(counted.values_list("prompt_tokens", flat=True)) == tokens
        assert set(counted.values_list("key__uid", flat=True)) == {one["key"] for one in records}
        assert send(exchange, clock=clock).json() == {"counted": False}
        assert GatewayCall.objects.count() == before + len(records)
    seen = Gateway.objects.get()
    assert seen.name == exchanges("gateway")[0].headers["X-Ninefold-Gateway"]
    assert seen.version == 7


def test_a_gateway_starts_from_the_snapshot_and_the_journal_on_its_disk(tmp_path: Path) -> None:
    signature, _, body = (FIXTURE / "gateway" / "snapshot").read_bytes().partition(b"\n")
    snapshot = verify_and_parse_snapshot(body, signature=signature.decode(), token=_TOKEN)
    (key,) = snapshot.keys
    assert key.digest == hashlib.sha256(INSTALLATION["api_key"].encode()).hexdigest()
    (route,) = [one for one in snapshot.routes if one.name == INSTALLATION["deployment"]["name"]]
    assert key.may_use(route)
    (endpoint,) = route.backends[0].endpoints
    assert endpoint.uid == INSTALLATION["deployment"]["replica"]
    folder = Path(shutil.copytree(FIXTURE / "gateway" / "usage", tmp_path / "usage"))
    journal = UsageJournal(folder, gateway_id="another", max_bytes=1 << 20, wall=lambda: 0.0)
    found = journal.oldest()
    assert found is not None
    (posted,) = [one for one in exchanges("gateway") if one.path.endswith("/usage")]
    assert found[1] == posted.body


def test_an_agent_goes_on_above_the_numbers_that_it_gave(tmp_path: Path) -> None:
    state = tmp_path / "agent-sequence"
    state.write_text(INSTALLATION["agent_sequence"])
    (remembered,) = map(int, re.findall(r"\d+", INSTALLATION["agent_sequence"]))
    assert BatchSequence(state, now=lambda: 0.0).next() >= remembered
