"""Saved filters of the job list; each belongs to one user."""

from __future__ import annotations

from django.db import transaction

from apps.accounts.models import User
from apps.jobs.models import SavedFilter
from controlplane.domain.common.name_validation import InvalidName, normalize_name
from controlplane.domain.common.reasons import ReasonedError

#: Per user.
MAX_SAVED_FILTERS = 30


class FilterRefused(ReasonedError):
    """The filter cannot be stored; the message says why."""


@transaction.atomic
def saved_filter_save(*, owner: User, name: str, query: str) -> SavedFilter:
    """Create the filter of that name, or replace its query.

    :raises FilterRefused: if the name is invalid, the query is empty or too long, or there are too many filters.
    """
    name = _validated_name(name)
    if not query:
        raise FilterRefused(
            "saved_filter.conditions.missing",
            "the list is not filtered; set a filter, then save it",
        )
    if len(query) > SavedFilter.MAX_QUERY_LENGTH:
        raise FilterRefused(
            "saved_filter.conditions.too_long",
            "the filter is too long to be saved; use fewer conditions",
        )
    known = SavedFilter.objects.filter(owner=owner)
    if known.exclude(name=name).count() >= MAX_SAVED_FILTERS:
        raise FilterRefused(
            "saved_filter.limit.reached",
            "you already have {limit} saved filters, the maximum; delete one first",
            limit=MAX_SAVED_FILTERS,
        )
    saved, _created = known.update_or_create(
        name=name, defaults={"query": query}, create_defaults={"owner": owner, "query": query}
    )
    return saved


@transaction.atomic
def saved_filter_rename(*, saved: SavedFilter, name: str) -> None:
    """:raises FilterRefused: if the name is invalid, or another filter has it."""
    name = _validated_name(name)
    others = SavedFilter.objects.filter(owner=saved.owner_id, name=name).exclude(pk=saved.pk)
    if others.exists():
        raise FilterRefused(
            "saved_filter.name.already_exists",
            "you already have a filter named {name}; choose another name",
            name=name,
        )
    SavedFilter.objects.filter(pk=saved.pk).update(name=name)


@transaction.atomic
def saved_filter_set_default(*, saved: SavedFilter, enabled: bool) -> None:
    """Make it the only default filter of the list, or remove the default."""
    SavedFilter.objects.filter(owner=saved.owner_id, is_default=True).update(is_default=False)
    if enabled:
        SavedFilter.objects.filter(pk=saved.pk).update(is_default=True)


def saved_filter_delete(*, saved: SavedFilter) -> None:
    saved.delete()


def _validated_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > SavedFilter.MAX_NAME_LENGTH:
        raise FilterRefused(
            "saved_filter.name.invalid",
            "enter a filter name of 1 to {limit} characters",
            limit=SavedFilter.MAX_NAME_LENGTH,
        )
    try:
        return normalize_name(name)
    except InvalidName as refusal:
        raise FilterRefused(str(refusal)) from None
