"""The sample company: six teams, their queues, two clusters, a model and datasets."""

from __future__ import annotations

import io
import json
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import membership_set, team_ensure, user_create
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.selectors import artifact_store
from apps.models.services import datasets, job_outputs
from apps.quotas.models import Queue
from config import simulated_clusters
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.simulation.reports import placeholder_model

#: Median hours of a training on one card.
_HOURS = 6.0
_ROWS = 400
_MODEL = "demo-7b-hollow"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitlementDescription:
    """Quota of a queue for one chip, in cards."""

    guaranteed: int = 0
    cap: int | None = None
    reserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartmentDescription:
    """A department: a queue shared by several teams."""

    name: str
    entitlements: dict[str, EntitlementDescription]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDescription:
    """A team of the sample company."""

    name: str
    department: str
    #: Of its engineer and of its administrator.
    members: tuple[str, str]
    entitlements: dict[str, EntitlementDescription]
    #: What its jobs are called.
    topics: tuple[str, ...]
    #: Relative share of all submitted jobs.
    share: int
    #: Fair-share weight against sibling teams.
    weight: float = 1.0


DEPARTMENTS = (
    DepartmentDescription(
        name="product",
        entitlements={
            "nvidia-h800": EntitlementDescription(guaranteed=384, cap=480),
            "nvidia-a800-80gb": EntitlementDescription(guaranteed=64, cap=192),
            "ascend-910b3": EntitlementDescription(guaranteed=192, cap=416),
            "ascend-910c": EntitlementDescription(guaranteed=256, cap=448),
        },
    ),
    DepartmentDescription(
        name="science",
        entitlements={
            "nvidia-h800": EntitlementDescription(guaranteed=64, cap=256),
            "nvidia-a800-80gb": EntitlementDescription(guaranteed=128, cap=256),
            "nvidia-h20": EntitlementDescription(guaranteed=192),
            "ascend-910b3": EntitlementDescription(guaranteed=192, cap=416),
            "ascend-910c": EntitlementDescription(guaranteed=192, cap=448),
        },
    ),
)

TEAMS = (
    TeamDescription(
        name="Maps",
        department="product",
        members=("ada", "wei"),
        entitlements={
            "nvidia-h800": EntitlementDescription(guaranteed=64, cap=192),
            "ascend-910b3": EntitlementDescription(guaranteed=96, cap=192),
        },
        topics=("address parser", "geocoder", "street names", "route notes"),
        share=4,
    ),
    TeamDescription(
        name="Search",
        department="product",
        members=("noor", "quinn"),
        entitlements={
            "nvidia-h800": EntitlementDescription(guaranteed=128, cap=256, reserved=16),
            "nvidia-a800-80gb": EntitlementDescription(guaranteed=64, cap=128),
            "ascend-910b3": EntitlementDescription(guaranteed=96, cap=256),
        },
        topics=("query rewriter", "ranker", "snippets", "freshness"),
        share=5,
    ),
    TeamDescription(
        name="Speech",
        department="science",
        members=("lin", "vera"),
        entitlements={
            "nvidia-a800-80gb": EntitlementDescription(guaranteed=96, cap=192),
            "ascend-910b3": EntitlementDescription(guaranteed=160, cap=320),
        },
        topics=("dialects", "punctuation", "speaker labels", "noise at 0 dB"),
        share=3,
    ),
    TeamDescription(
        name="Vision",
        department="science",
        members=("mei", "otto"),
        entitlements={
            "nvidia-h20": EntitlementDescription(guaranteed=160),
            "ascend-910c": EntitlementDescription(guaranteed=128, cap=320),
        },
        topics=("captions", "receipts", "scene text", "defects"),
        share=4,
    ),
    TeamDescription(
        name="Research",
        department="science",
        members=("nova", "sasha"),
        entitlements={},
        topics=("long context", "distil to half the size", "new objective", "scaling sweep"),
        share=6,
        weight=2.0,
    ),
    TeamDescription(
        name="Assistant",
        department="product",
        members=("kofi", "hana"),
        entitlements={
            "nvidia-h800": EntitlementDescription(guaranteed=192, cap=384, reserved=32),
            "ascend-910c": EntitlementDescription(guaranteed=256, cap=448),
        },
        topics=("tool calls", "refusals", "house style", "support chats"),
        share=5,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTeam:
    """A created team with its users, queue and dataset."""

    description: TeamDescription
    team: Team
    engineer: User
    queue: Queue
    dataset: DatasetVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCompany:
    teams: tuple[DemoTeam, ...]
    model: ModelVersion
    clusters: tuple[SimulatedCluster, ...]


def create_demo_company(*, admin: User) -> DemoCompany:
    """All of it; what is there is left alone."""
    for department in DEPARTMENTS:
        _create_queue(department.name, entitlements=department.entitlements)
    teams = tuple(_create_demo_team(description, admin=admin) for description in TEAMS)
    return DemoCompany(teams=teams, model=_register_model(teams[0]), clusters=_create_clusters())


def _create_clusters() -> tuple[SimulatedCluster, ...]:
    described = files("config.demo").joinpath("fleets.toml").read_text(encoding="utf-8")
    for name, fleet in tomllib.loads(described).items():
        simulated_clusters.ensure_simulated_cluster(name, fleet=fleet, hours=_HOURS)
    return tuple(adapter for _, adapter in simulated_clusters.all_clusters())


def _create_demo_team(description: TeamDescription, *, admin: User) -> DemoTeam:
    slug = description.name.lower()
    engineer, head = (_demo_user(name, admin=admin) for name in description.members)
    team = team_ensure(name=description.name, slug=slug, administrator=head)
    membership_set(team=team, user=engineer, roles=frozenset({TeamRole.ENGINEER}), actor=None)
    queue = _create_queue(
        f"{slug}-training",
        entitlements=description.entitlements,
        parent=Queue.objects.get(name=description.department),
        team=team,
        weight=description.weight,
    )
    return DemoTeam(
        description=description,
        team=team,
        engineer=engineer,
        queue=queue,
        dataset=_create_dataset(description, team=team, actor=engineer),
    )


def _create_queue(
    name: str, *, entitlements: dict[str, EntitlementDescription], **defaults: Any
) -> Queue:
    queue, _ = Queue.objects.get_or_create(name=name, defaults=defaults)
    for chip, entitlement in entitlements.items():
        queue.entitlements.get_or_create(chip=chip, defaults=asdict(entitlement))
    return queue


def _demo_user(name: str, *, admin: User) -> User:
    """Return a user without a password: visitors of the demo sign in as the administrator."""
    found = User.objects.filter(username=name).first()
    return found or user_create(username=name, email=f"{name}@example.com", actor=admin)


def _create_dataset(description: TeamDescription, *, team: Team, actor: User) -> DatasetVersion:
    name = description.topics[0].replace(" ", "-")
    found = DatasetVersion.objects.filter(dataset__team=team, dataset__name=name).first()
    if found is not None:
        return found
    rows = (
        {"instruction": f"{description.topics[0]}, example {number}", "output": f"answer {number}"}
        for number in range(_ROWS)
    )
    body = "\n".join(json.dumps(row) for row in rows).encode()
    return datasets.dataset_upload(
        actor=actor,
        team=team,
        name=name,
        stream=io.BytesIO(body),
        filename=f"{name}.jsonl",
        description="Sample rows of the demo",
    )


@transaction.atomic
def _register_model(demo_team: DemoTeam) -> ModelVersion:
    """Register a shared model with valid files and no weights."""
    store = artifact_store()
    blobs = {path: store.put([content]) for path, content in placeholder_model().items()}
    return job_outputs.model_version_register(
        origin=job_outputs.OutputOrigin(
            team=demo_team.team,
            actor=demo_team.engineer,
            job_uid="",
            attempt_uid="demo-of-the-hollow-model",
            shared=True,
        ),
        name=_MODEL,
        files=[(path, blob.digest, blob.size) for path, blob in blobs.items()],
        base=None,
        dataset_version=None,
        metrics={},
    )
