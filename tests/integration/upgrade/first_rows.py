"""A row in every table of the first landed migrations, built from what those migrations say.

Values follow from each column's kind; where the product reads more into a column, ``MEANT`` says what it
holds. Nothing here knows the models of today: the states of the migrations alone do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import StateApps

#: Apps of the product, each of which began with one migration of this name.
APPS = (
    "accounts",
    "fleet",
    "jobs",
    "outbox",
    "persistence",
    "quotas",
    "registry",
    "serving",
)
FIRST = "0001_initial"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FILES = [{"path": "config.json", "digest": f"sha256:{'ab' * 32}", "size": 7}]
STATISTICS = {
    "format": "jsonl",
    "schema": "instruction",
    "rows_by_split": {"train": 3, "validation": 1},
    "duplicates": 0,
    "ignored_columns": [],
    "roles": {"user": 4},
    "prompt_characters": {"p50": 1, "p95": 2, "most": 3},
    "answer_characters": {"p50": 1, "p95": 2, "most": 3},
    "histogram": [4],
}

#: Column → what it holds, where its kind alone does not say.
MEANT: dict[str, Any] = {
    "accounts.User.username": "ada",
    "accounts.User.is_superuser": True,
    "accounts.User.is_staff": True,
    "accounts.User.is_active": True,
    "accounts.User.password": "",
    "accounts.Membership.role": "administrator",
    "accounts.IdempotencyRecord.body": {"sealed": "gAAAA"},
    "fleet.Cluster.kind": "fake",
    "fleet.Cluster.options": {},
    "fleet.Card.state": "usable",
    "fleet.Card.chip": "cpu",
    "registry.Artifact.kind": "model",
    "registry.Artifact.files": FILES,
    "registry.DatasetVersion.statistics": STATISTICS,
    "registry.DatasetVersion.preview": [
        {"row": 1, "split": "train", "messages": [{"role": "user", "content": "where?"}]}
    ],
    "registry.ModelVersion.state": "ready",
    "registry.ModelVersion.metrics": {"loss": 0.5},
    "registry.Evaluation.metrics": {"exact_match": 0.75},
    "jobs.Job.kind": "finetune",
    "jobs.Job.state": "failed",
    "jobs.Job.engine": "transformers",
    "jobs.Job.spec": {"epochs": 1},
    "jobs.Job.chips": ["cpu"],
    "jobs.Job.ended_at": AT,
    "jobs.Attempt.state": "failed",
    "jobs.Attempt.chip": "cpu",
    "jobs.Attempt.progress": {"step": 2, "total_steps": 4, "loss": 0.5},
    "jobs.Attempt.manifest": {"files": [], "metrics": {}},
    "jobs.ProgressPoint.values": {"loss": 0.5},
    "quotas.Claim.state": "released",
    "quotas.Claim.chips": ["cpu"],
    "serving.Deployment.state": "stopped",
    "serving.Deployment.deleted_at": None,
    "serving.Revision.engine": "transformers",
    "serving.Revision.spec": {},
    "serving.Revision.chips": ["cpu"],
    "serving.Backend.chips": ["cpu"],
    "serving.Replica.state": "stopped",
    "serving.Replica.chip": "cpu",
}
SHAPE = [{"name": "trainer", "replicas": 1, "cards": 1, "cpu": 1000, "memory": 0}]
#: Columns of this name hold the shape of a gang, wherever they are.
SHAPES = ("shape",)


def migrate(targets: list[tuple[str, str]]) -> StateApps:
    """The models as they are at those migrations, to which the database has been brought."""
    executor = MigrationExecutor(connection)
    executor.migrate([*targets])
    return MigrationExecutor(connection).loader.project_state(targets).apps


def first() -> list[tuple[str, str]]:
    return [(app, FIRST) for app in APPS]


def head() -> list[tuple[str, str]]:
    return [*MigrationExecutor(connection).loader.graph.leaf_nodes()]


def product_models(state: StateApps) -> Iterator[type[models.Model]]:
    """Those of the product, tables between two of them included, each after what it refers to."""
    wanted = [
        model
        for model in state.get_models(include_auto_created=True)
        if model._meta.app_label in APPS and not _leaves_the_product(model)
    ]
    done: set[type[models.Model]] = set()
    while wanted:
        ready = [model for model in wanted if not _targets(model) & set(wanted) - {model} - done]
        assert ready, f"these refer to each other: {wanted}"
        yield from ready
        done |= set(ready)
        wanted = [model for model in wanted if model not in done]


def _leaves_the_product(model: type[models.Model]) -> bool:
    """Django's groups and permissions of single people, which the product does not use."""
    return any(
        target._meta.app_label not in APPS for target in _targets(model) if target is not model
    )


def _targets(model: type[models.Model]) -> set[type[models.Model]]:
    return {
        field.related_model
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and not field.null
    }


def fill(state: StateApps, *, rows: int = 2) -> dict[str, list[dict[str, Any]]]:
    """So many rows in every table; gives back what each column holds, by table."""
    for model in product_models(state):
        for number in range(rows):
            values = {
                field.attname: _value(field, number, state)
                for field in model._meta.concrete_fields
                if not (field.primary_key and isinstance(field, models.AutoField))
            }
            model._default_manager.bulk_create([model(**values)])
    return contents(state)


def contents(state: StateApps) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of those models."""
    return {
        model._meta.db_table: [dict(row) for row in model._default_manager.order_by("pk").values()]
        for model in product_models(state)
    }


def _value(field: models.Field[Any, Any], number: int, state: StateApps) -> Any:
    name = f"{field.model._meta.label}.{field.name}"
    if field.name in SHAPES:
        return SHAPE
    if name in MEANT:
        meant = MEANT[name]
        unique = field.unique and isinstance(meant, str)
        return f"{meant}-{number}" if unique and number else meant
    if isinstance(field, models.ForeignKey):
        return _reference(field, number)
    return _plain(field, number)


def _reference(field: models.ForeignKey[Any, Any], number: int) -> Any:
    target = field.related_model
    assert isinstance(target, type)
    if target is field.model:
        return None
    keys = list(target._default_manager.order_by("pk").values_list("pk", flat=True))
    if not keys:
        return None
    return keys[number % len(keys)]


def _plain(field: models.Field[Any, Any], number: int) -> Any:
    for kind, make in _FACTORIES.items():
        if isinstance(field, kind):
            return make(field, number)
    raise AssertionError(f"nothing says what {field.model._meta.label}.{field.name} holds")


def _text(field: models.Field[Any, Any], number: int) -> str:
    if field.choices:
        values = [value for value, _ in field.flatchoices]
        return str(values[number % len(values)])
    text = hashlib.sha256(f"{field.model._meta.label}.{field.name}.{number}".encode()).hexdigest()
    return text[: field.max_length or 24]


_FACTORIES: dict[type[models.Field[Any, Any]], Callable[[models.Field[Any, Any], int], Any]] = {
    models.BooleanField: lambda _field, number: bool(number % 2),
    models.DateTimeField: lambda _field, _number: AT,
    models.GenericIPAddressField: lambda _field, number: f"192.0.2.{number + 1}",
    models.CharField: _text,
    models.TextField: _text,
    models.JSONField: lambda _field, number: {"number": number},
    models.BinaryField: lambda _field, number: bytes([number, 255, 0, 10]),
    models.FloatField: lambda _field, number: number + 0.5,
    models.DecimalField: lambda _field, number: number + 1,
    models.IntegerField: lambda _field, number: number + 1,
}
