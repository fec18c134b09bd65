"""The command line against a live server: a small company, and a configuration file of its own."""

from __future__ import annotations

import functools
import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import typer.main
import typer.testing
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from typer.testing import CliRunner

from apps.accounts import services as accounts
from apps.accounts.models import User
from apps.fleet.models import Node
from controlplane.domain.common.permissions import Scope
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine
from controlplane.web import watch
from ninefold_client.cli.main import app
from tests.hubs import LocalHub, configured_hub
from tests.integration import company as companies
from tests.integration.company import Company


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    exit_code: int
    output: str
    errors: str


#: Runs ``ninefold`` with arguments and a text for standard input.
Ninefold = Callable[..., CommandResult]


@pytest.fixture(autouse=True, scope="session")
def commands_are_built_once() -> Iterator[None]:
    """Typer builds all of them for every run, which takes longer than most requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def company(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> Company:
    settings.NINEFOLD_HOME = tmp_path / "home"
    settings.NINEFOLD_HOME.mkdir()
    # A stream learns by the next bookmark that its client has left.
    monkeypatch.setattr(watch, "_BOOKMARK_EVERY", 0.5)
    engines: dict[str, Engine] = {companies.ENGINE: companies.PlainEngine()}
    monkeypatch.setattr(adapter_registry, "engine_by_name", engines.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: tuple(engines))
    return companies.found(node=f"fake-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def hub(company: Company, settings: Settings) -> Iterator[LocalHub]:
    """A model hub without repositories."""
    with configured_hub(settings) as found:
        yield found


@pytest.fixture
def administrator(company: Company) -> User:
    return User.objects.create(username="root", is_superuser=True, is_staff=True)


@pytest.fixture
def configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "configuration" / "config.yaml"
    for name in ("NINEFOLD_URL", "NINEFOLD_TOKEN", "NINEFOLD_CONTEXT", "NINEFOLD_GATEWAY_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NINEFOLD_CONFIG", str(path))
    return path


@pytest.fixture
def ninefold(configuration_file: Path) -> Ninefold:
    def run(*arguments: str, text: str = "") -> CommandResult:
        done = CliRunner().invoke(app, arguments, input=text, prog_name="ninefold")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return CommandResult(exit_code=done.exit_code, output=done.stdout, errors=done.stderr)

    return run


def token_of(user: User, *scopes: Scope) -> str:
    _, text = accounts.token_create(
        user=user, name=f"cli {secrets.token_hex(4)}", scopes=frozenset(scopes or {Scope.ALL})
    )
    return text


@pytest.fixture
def signed_in(ninefold: Ninefold, company: Company, live_server: LiveServer) -> Ninefold:
    """The command line of the engineer."""
    done = ninefold("login", live_server.url, "--token", "-", text=token_of(company.engineer))
    assert done.exit_code == 0, done.errors
    return ninefold


COMPANY = """
kind: Team
metadata: {name: maps}
spec:
  title: Maps
  members: [{user: mei, roles: [engineer, viewer]}, {user: otto, roles: [administrator]}]
---
kind: CompanyRoles
metadata: {name: otto}
spec: {roles: [operator]}
---
kind: PriorityClass
metadata: {name: hotfix}
spec: {value: 17, description: before others}
---
kind: MetricSource
metadata: {name: exporters}
spec:
  cluster: CLUSTER
  kind: exporter
  options: {vendor: nvidia, targets: [{url: "https://1.1.1.1:9400/metrics"}]}
  every: 60
  enabled: false
  token: {from_env: SCRAPE}
---
kind: Queue
metadata: {name: vision, team: addresses}
spec: {weight: 2, entitlements: [{chip: cpu, guaranteed: 1}]}
---
kind: AlertReceiver
metadata: {name: on-call}
spec: {kind: webhook, url: {from_env: HOOK}, active: false}
---
kind: AlertRoute
metadata: {name: critical}
spec: {severity: critical, matchers: [severity=critical], receivers: [on-call]}
---
kind: AlertRule
metadata: {name: hot-cards}
spec: {title: Hot cards, measure: cards.temperature, op: ">", threshold: 90, severity: warning}
---
kind: Silence
metadata: {name: move of rack 7}
spec: {matchers: [cluster=west, "node=rack-7-*"], ends_at: TOMORROW, reason: racks move}
---
kind: HealthPolicy
metadata: {name: default}
spec: {automatic: false, settings: {settle: 300}}
---
kind: HealthRule
metadata: {name: hot}
spec:
  {title: Hot, condition: {metric: temperature, op: ">", value: 90}, level: 1, enabled: true}
---
kind: Webhook
metadata: {name: build, team: addresses}
spec: {url: "https://1.1.1.1/hook", kinds: [job.succeeded, job.failed], active: false}
---
kind: StorageQuota
metadata: {name: addresses}
spec: {limit: 1000000000}
---
kind: RetentionRules
metadata: {name: addresses}
spec: {enabled: true, keep_versions: 5, log_days: 30}
---
kind: CardRate
metadata: {name: nvidia-h800}
spec: {per_hour: 26.5}
---
kind: MaintenanceRollout
metadata: {name: driver 580}
spec:
  {cluster: CLUSTER, labels: {name: NODE}, argv: [/usr/bin/update, --to, "580"], run_within: 900, burn_in: false}
---
kind: Dataset
metadata: {name: streets, team: addresses}
spec: {description: from the map, file: streets.jsonl}
---
kind: Job
metadata: {name: tune the parser, team: addresses}
spec: {kind: finetune, model_version: tiny, dataset_version: streets, output_name: parser, queue: default}
---
kind: Pipeline
metadata: {name: whole way, team: addresses}
spec:
  model_version: tiny@1
  steps:
  - {kind: finetune, dataset_version: streets@1, output_name: parser}
  - {kind: evaluate, dataset_version: streets, spec: {metrics: [exact_match]},
     gate: {metric: exact_match, threshold: 0.8}}
---
kind: Deployment
metadata: {name: parcels, team: addresses}
spec: {model_version: tiny, replicas: 1, queue: default}
---
kind: Deployment
metadata: {name: parcels-next, team: addresses}
spec: {model_version: tiny, replicas: 1, queue: default}
---
kind: Route
metadata: {name: parcels}
spec: {backends: [{deployment: parcels-next, weight: 1}, {deployment: parcels, weight: 9}]}
"""


def with_versions(documents: str) -> str:
    return "---".join(f"\napiVersion: ninefold/v1{one}" for one in documents.split("---"))


@pytest.fixture
def administered(ninefold: Ninefold, administrator: User, live_server: LiveServer) -> Ninefold:
    """The command line of an administrator of the company."""
    done = ninefold("login", live_server.url, "--token", "-", text=token_of(administrator))
    assert done.exit_code == 0, done.errors
    return ninefold


@pytest.fixture
def folder(tmp_path: Path, company: Company, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents of the company and a dataset."""
    monkeypatch.setenv("SCRAPE", "scrape-secret")
    monkeypatch.setenv("HOOK", "https://1.1.1.1/hook-secret")
    folder = tmp_path / "company"
    folder.mkdir()
    documents = COMPANY.replace("CLUSTER", company.cluster_row.name)
    documents = documents.replace("NODE", Node.objects.get().name)
    # Without quotes: YAML reads a time.
    tomorrow = timezone.now().replace(microsecond=0) + timedelta(days=1)
    documents = documents.replace("TOMORROW", tomorrow.isoformat())
    (folder / "company.yaml").write_text(with_versions(documents))
    (folder / "streets.jsonl").write_text(
        "".join(f'{{"prompt": "{n}?", "response": "{n}"}}\n' for n in range(20))
    )
    return folder
