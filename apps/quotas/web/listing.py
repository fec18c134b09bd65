"""Columns, filters and rows of the lists of claims."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django import forms
from django.utils.translation import gettext_lazy as lazy

from apps.quotas.models import Claim
from apps.quotas.selectors.sights import Sight
from apps.quotas.web.words import name_of, outlook_brief
from controlplane.web.sentences import said
from controlplane.web.tables import Column, FilterForm


class ClaimFilter(FilterForm):
    team = forms.CharField(label=lazy("Team"), required=False)
    chip = forms.CharField(label=lazy("Chip"), required=False)
    lookups: ClassVar = {"team": "team__name__icontains", "chip": "chips__icontains"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    claim: Claim
    #: In its queue, from 1; None if it no longer waits.
    place: int | None
    name: str
    #: Whether the reader may know more than whose it is.
    named: bool
    #: When it probably starts; empty where nobody knows.
    starts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRow:
    claim: Claim
    name: str
    named: bool
    #: Names of its nodes.
    nodes: tuple[str, ...]
    #: It holds cards beyond its queue's guarantee.
    borrowed: bool


def waiting_columns(sight: Sight, at: datetime) -> tuple[Column, ...]:
    return (
        Column(key="line", label=lazy("Place"), sort="line", csv=lambda row: row.line),
        Column(key="work", label=lazy("Work"), csv=lambda row: name_of(row, sight=sight)),
        Column(key="cards", label=lazy("Cards"), sort="card_count", numeric=True, csv=_cards),
        Column(key="chips", label=lazy("Chips"), csv=lambda row: " / ".join(row.chips)),
        Column(key="team", label=lazy("Team"), sort="team__name", csv=lambda row: row.team.name),
        Column(key="since", label=lazy("Waits since"), sort="since", csv=_since),
        Column(key="why", label=lazy("Why it waits"), csv=lambda row: said(row.explanation)),
        Column(
            key="starts", label=lazy("Starts"), csv=lambda row: outlook_brief(row, now=at) or "–"
        ),
    )


def running_columns(sight: Sight) -> tuple[Column, ...]:
    return (
        Column(key="work", label=lazy("Work"), csv=lambda row: name_of(row, sight=sight)),
        Column(key="cards", label=lazy("Cards"), sort="card_count", numeric=True, csv=_cards),
        Column(key="chip", label=lazy("Chip"), sort="chip"),
        Column(key="where", label=lazy("Where"), csv=lambda row: len(row.placement)),
        Column(key="team", label=lazy("Team"), sort="team__name", csv=lambda row: row.team.name),
        Column(key="admitted_at", label=lazy("Since"), sort="admitted_at", csv=_admitted),
        Column(key="progress", label=lazy("Progress"), sort="progress", numeric=True),
        Column(key="saved", label=lazy("Last saved"), sort="checkpointed_at", csv=_saved),
    )


def _cards(row: Claim) -> int:
    return row.card_count


def _since(row: Claim) -> str:
    return (row.in_line_since or row.created_at).isoformat()


def _admitted(row: Claim) -> str:
    return row.admitted_at.isoformat() if row.admitted_at else ""


def _saved(row: Claim) -> str:
    return row.checkpointed_at.isoformat() if row.checkpointed_at else ""
