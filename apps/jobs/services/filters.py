"""Saved filters: everybody's own."""

from __future__ import annotations

from django.db import transaction

from apps.accounts.models import User
from apps.jobs.models import SavedFilter
from controlplane.domain.names import NameRefused, normalize_name

#: Of one person; a list of more is no help.
MOST_FILTERS = 30


class FilterRefused(Exception):
    """It cannot be kept like this; the message says why."""


@transaction.atomic
def filter_save(*, owner: User, name: str, query: str) -> SavedFilter:
    """Keep the question under that name; one that has the name already asks the new question from now on.

    :raises FilterRefused: if it has no usable name, asks nothing, or there are too many.
    """
    name = _usable(name)
    if not query:
        raise FilterRefused("nothing is filtered; choose what the list shows, then save it")
    if len(query) > SavedFilter.LONGEST_QUERY:
        raise FilterRefused("the filter is too long to be kept; use fewer conditions")
    known = SavedFilter.objects.filter(owner=owner)
    if known.exclude(name=name).count() >= MOST_FILTERS:
        raise FilterRefused(f"you have {MOST_FILTERS} saved filters already; delete one first")
    saved, _created = known.update_or_create(
        name=name, defaults={"query": query}, create_defaults={"owner": owner, "query": query}
    )
    return saved


@transaction.atomic
def filter_rename(*, saved: SavedFilter, name: str) -> None:
    """:raises FilterRefused: if the name is not usable, or another filter has it."""
    name = _usable(name)
    others = SavedFilter.objects.filter(owner=saved.owner_id, name=name).exclude(pk=saved.pk)
    if others.exists():
        raise FilterRefused(f"another filter of yours is called {name}")
    SavedFilter.objects.filter(pk=saved.pk).update(name=name)


@transaction.atomic
def filter_default(*, saved: SavedFilter, wanted: bool) -> None:
    """Let the list open with it, and with no other; or with none."""
    SavedFilter.objects.filter(owner=saved.owner_id, is_default=True).update(is_default=False)
    if wanted:
        SavedFilter.objects.filter(pk=saved.pk).update(is_default=True)


def filter_delete(*, saved: SavedFilter) -> None:
    saved.delete()


def _usable(name: str) -> str:
    name = name.strip()
    if not name or len(name) > SavedFilter.LONGEST_NAME:
        raise FilterRefused(f"give the filter a name of 1 to {SavedFilter.LONGEST_NAME} characters")
    try:
        return normalize_name(name)
    except NameRefused as refusal:
        raise FilterRefused(str(refusal)) from None
