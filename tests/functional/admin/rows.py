"""A row of any table, for pages that only render it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import (
    AutoField,
    BinaryField,
    BooleanField,
    DateField,
    DateTimeField,
    DecimalField,
    Field,
    FloatField,
    IntegerField,
    JSONField,
    Model,
)
from django.utils import timezone

from apps.quotas.models import Claim, UsageRecord


def _usage_record() -> Model:
    """The database takes only one that adds up."""
    claim = some_row(Claim)
    assert isinstance(claim, Claim)
    since = datetime(2026, 5, 6, 12, tzinfo=UTC)
    return UsageRecord.objects.create(
        claim=claim,
        queue=claim.queue,
        team=claim.team,
        chip="cpu",
        cards=1,
        since=since,
        until=since + timedelta(seconds=1),
        card_microseconds=1_000_000,
    )


#: Tables whose columns depend on each other.
_FACTORIES: Mapping[type[Model], Callable[[], Model]] = {UsageRecord: _usage_record}
_LEAST: Mapping[type[Field[Any, Any]], Callable[[], Any]] = {
    BinaryField: lambda: b"x",
    BooleanField: lambda: False,
    DateTimeField: timezone.now,
    DateField: date.today,
    DecimalField: lambda: Decimal(1),
    FloatField: lambda: 1.0,
    IntegerField: lambda: 1,
    JSONField: dict,
}


def some_row(model: type[Model]) -> Model:
    """The newest; made from the least that its fields want where there is none."""
    newest = model._default_manager.order_by("-pk").first()
    if newest is not None:
        return newest
    if model in _FACTORIES:
        return _FACTORIES[model]()
    wanted = [field for field in model._meta.concrete_fields if _is_needed(field)]
    return model._default_manager.create(**{field.name: _least(field) for field in wanted})


def _is_needed(field: Field[Any, Any]) -> bool:
    fills_itself = (
        field.has_default() or field.has_db_default() or getattr(field, "auto_now_add", False)
    )
    return not (field.null or isinstance(field, AutoField) or fills_itself)


def _least(field: Field[Any, Any]) -> Any:
    if field.is_relation:
        assert isinstance(field.related_model, type)
        return some_row(field.related_model)
    if field.choices:
        return next(iter(field.flatchoices))[0]
    return next((make() for kind, make in _LEAST.items() if isinstance(field, kind)), "x")
