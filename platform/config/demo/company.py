"""Who works there, and with what: six teams, their queues, two clusters, a model and datasets."""

from __future__ import annotations

import io
import json
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import membership_set, person_create, team_ensure
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.selectors import artifact_store
from apps.models.services import datasets, outputs
from apps.quotas.models import Queue
from config import simulations
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.permissions import Role
from controlplane.domain.simulation.reports import placeholder_model

#: Median hours of a training on one card.
_HOURS = 6.0
_ROWS = 400
_MODEL = "demo-7b-hollow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a queue states for one chip, in cards."""

    guaranteed: int = 0
    cap: int | None = None
    reserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Department:
    """Teams that share what their queue holds."""

    name: str
    holds: dict[str, Holding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Founding:
    """A team as it is described here."""

    name: str
    department: str
    #: Of its engineer and of its administrator.
    people: tuple[str, str]
    holds: dict[str, Holding]
    #: What its jobs are called.
    topics: tuple[str, ...]
    #: Of all that is asked for.
    share: int
    #: Of what is idle, against the teams beside it.
    weight: float = 1.0


DEPARTMENTS = (
    Department(
        name="product",
        holds={
            "nvidia-h800": Holding(guaranteed=384, cap=480),
            "nvidia-a800-80gb": Holding(guaranteed=64, cap=192),
            "ascend-910b3": Holding(guaranteed=192, cap=416),
            "ascend-910c": Holding(guaranteed=256, cap=448),
        },
    ),
    Department(
        name="science",
        holds={
            "nvidia-h800": Holding(guaranteed=64, cap=256),
            "nvidia-a800-80gb": Holding(guaranteed=128, cap=256),
            "nvidia-h20": Holding(guaranteed=192),
            "ascend-910b3": Holding(guaranteed=192, cap=416),
            "ascend-910c": Holding(guaranteed=192, cap=448),
        },
    ),
)

TEAMS = (
    Founding(
        name="Maps",
        department="product",
        people=("ada", "wei"),
        holds={
            "nvidia-h800": Holding(guaranteed=64, cap=192),
            "ascend-910b3": Holding(guaranteed=96, cap=192),
        },
        topics=("address parser", "geocoder", "street names", "route notes"),
        share=4,
    ),
    Founding(
        name="Search",
        department="product",
        people=("noor", "quinn"),
        holds={
            "nvidia-h800": Holding(guaranteed=128, cap=256, reserved=16),
            "nvidia-a800-80gb": Holding(guaranteed=64, cap=128),
            "ascend-910b3": Holding(guaranteed=96, cap=256),
        },
        topics=("query rewriter", "ranker", "snippets", "freshness"),
        share=5,
    ),
    Founding(
        name="Speech",
        department="science",
        people=("lin", "vera"),
        holds={
            "nvidia-a800-80gb": Holding(guaranteed=96, cap=192),
            "ascend-910b3": Holding(guaranteed=160, cap=320),
        },
        topics=("dialects", "punctuation", "speaker labels", "noise at 0 dB"),
        share=3,
    ),
    Founding(
        name="Vision",
        department="science",
        people=("mei", "otto"),
        holds={
            "nvidia-h20": Holding(guaranteed=160),
            "ascend-910c": Holding(guaranteed=128, cap=320),
        },
        topics=("captions", "receipts", "scene text", "defects"),
        share=4,
    ),
    Founding(
        name="Research",
        department="science",
        people=("nova", "sasha"),
        holds={},
        topics=("long context", "distil to half the size", "new objective", "scaling sweep"),
        share=6,
        weight=2.0,
    ),
    Founding(
        name="Assistant",
        department="product",
        people=("kofi", "hana"),
        holds={
            "nvidia-h800": Holding(guaranteed=192, cap=384, reserved=32),
            "ascend-910c": Holding(guaranteed=256, cap=448),
        },
        topics=("tool calls", "refusals", "house style", "support chats"),
        share=5,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A team at work."""

    founding: Founding
    team: Team
    engineer: User
    queue: Queue
    dataset: DatasetVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    groups: tuple[Group, ...]
    model: ModelVersion
    clusters: tuple[SimulatedCluster, ...]


def company(*, admin: User) -> Company:
    """All of it; what is there is left alone."""
    for department in DEPARTMENTS:
        _queue(department.name, holds=department.holds)
    groups = tuple(_group(founding, admin=admin) for founding in TEAMS)
    return Company(groups=groups, model=_model(groups[0]), clusters=_clusters())


def _clusters() -> tuple[SimulatedCluster, ...]:
    described = files("config.demo").joinpath("fleets.toml").read_text(encoding="utf-8")
    for name, fleet in tomllib.loads(described).items():
        simulations.ensure(name, fleet=fleet, hours=_HOURS)
    return tuple(made for _, made in simulations.every())


def _group(founding: Founding, *, admin: User) -> Group:
    slug = founding.name.lower()
    engineer, head = (_person(name, admin=admin) for name in founding.people)
    team = team_ensure(name=founding.name, slug=slug, administrator=head)
    membership_set(team=team, user=engineer, roles=frozenset({Role.ENGINEER}), actor=None)
    queue = _queue(
        f"{slug}-training",
        holds=founding.holds,
        parent=Queue.objects.get(name=founding.department),
        team=team,
        weight=founding.weight,
    )
    return Group(
        founding=founding,
        team=team,
        engineer=engineer,
        queue=queue,
        dataset=_dataset(founding, team=team, actor=engineer),
    )


def _queue(name: str, *, holds: dict[str, Holding], **told: Any) -> Queue:
    queue, _ = Queue.objects.get_or_create(name=name, defaults=told)
    for chip, holding in holds.items():
        queue.entitlements.get_or_create(chip=chip, defaults=asdict(holding))
    return queue


def _person(name: str, *, admin: User) -> User:
    """Somebody who cannot log in: whoever looks at the demonstration is the administrator."""
    found = User.objects.filter(username=name).first()
    return found or person_create(username=name, email=f"{name}@example.com", actor=admin)


def _dataset(founding: Founding, *, team: Team, actor: User) -> DatasetVersion:
    name = founding.topics[0].replace(" ", "-")
    found = DatasetVersion.objects.filter(dataset__team=team, dataset__name=name).first()
    if found is not None:
        return found
    rows = (
        {"instruction": f"{founding.topics[0]}, example {number}", "output": f"answer {number}"}
        for number in range(_ROWS)
    )
    body = "\n".join(json.dumps(row) for row in rows).encode()
    return datasets.dataset_upload(
        actor=actor,
        team=team,
        name=name,
        stream=io.BytesIO(body),
        filename=f"{name}.jsonl",
        description="Rows of the demonstration",
    )


@transaction.atomic
def _model(group: Group) -> ModelVersion:
    """Everybody's; its files have the right form, and no weights."""
    store = artifact_store()
    blobs = {path: store.put([content]) for path, content in placeholder_model().items()}
    return outputs.model_version_register(
        origin=outputs.Origin(
            team=group.team,
            actor=group.engineer,
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
