"""Vendor concentration: usage by vendor of accelerators, what serves now, and what could move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from apps.accounts import selectors as accounts
from apps.models.selectors.catalog import catalog_entry, compatibility_matrix
from apps.quotas.models import Allocation
from apps.quotas.selectors.usage import UsageReportGrouping, UsageReportInterval, usage_report
from apps.serving.models import Deployment, Revision
from apps.serving.selectors import deployments_visible
from controlplane.domain.catalog import CatalogTask, SupportLevel
from controlplane.domain.common.accelerators import ChipKind
from controlplane.domain.quotas.card_hours import HOUR_MICROSECONDS, DayRange
from controlplane.ports import adapter_registry

#: Days that use is counted over.
LOOKBACK = timedelta(days=30)
#: Claims of sources that justify trying another vendor.
_MOVABLE = frozenset({SupportLevel.SUPPORTED, SupportLevel.EXPERIMENTAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorShare:
    """The share of one vendor."""

    #: As its plug-in names it; ``title`` is for display.
    vendor: str
    title: str
    card_hours: float
    #: Of all card-hours, 0 to 1.
    share: float
    #: Cards that deployments hold now, and how many deployments these are.
    serving_cards: int
    deployments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAlternatives:
    """A deployment, and where else its model can be served according to sources."""

    deployment: Deployment
    #: Titles of the makers on whose chips it runs now.
    on: tuple[str, ...]
    cards: int
    #: Titles of alternative vendors, by support level.
    supported: tuple[str, ...] = ()
    experimental: tuple[str, ...] = ()
    #: The model is in the catalog.
    known: bool = False

    @property
    def has_no_alternative(self) -> bool:
        """The model is known, and no source documents serving it elsewhere."""
        return self.known and not (self.supported or self.experimental)


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorConcentration:
    """Vendor concentration as far as it is visible to one user."""

    period: DayRange
    #: The most used first.
    vendors: Sequence[VendorShare]
    moves: Sequence[DeploymentAlternatives]
    card_hours: float
    #: Herfindahl index of the shares: 1 is a single vendor, 1/n an even distribution over n.
    concentration: float | None


def vendor_concentration_of(user: accounts.RequestUser, *, at: datetime) -> VendorConcentration:
    """What they see of the ledger and of the deployments."""
    period = DayRange(first=(at - LOOKBACK).date(), last=at.date())
    report = usage_report(
        user, period=period, by=UsageReportGrouping.CHIP, per=UsageReportInterval.WHOLE, at=at
    )
    used: Counter[str] = Counter()
    for chip, amount in report.chips.items():
        if _is_accelerator(chip):
            used[_vendor_of(chip)] += amount
    moves, serving = _deployment_alternatives(user)
    total = used.total()
    names = sorted({*used, *serving}, key=lambda name: (-used[name], name))
    vendors = [
        VendorShare(
            vendor=name,
            title=_vendor_title(name),
            card_hours=used[name] / HOUR_MICROSECONDS,
            share=used[name] / total if total else 0.0,
            serving_cards=sum(serving[name].values()) if name in serving else 0,
            deployments=len(serving.get(name, ())),
        )
        for name in names
    ]
    return VendorConcentration(
        period=period,
        vendors=vendors,
        moves=moves,
        card_hours=total / HOUR_MICROSECONDS,
        concentration=sum(one.share**2 for one in vendors) if total else None,
    )


#: Vendor → deployment → cards that it holds of that vendor.
_Serving = Mapping[str, Counter[int]]


def _deployment_alternatives(
    user: accounts.RequestUser,
) -> tuple[Sequence[DeploymentAlternatives], _Serving]:
    newest = Revision.objects.filter(deployment=OuterRef("pk")).order_by("-number")
    key = newest.values("model_version__catalog_model__key")[:1]
    rows = list(deployments_visible(user).annotate(catalog_key=Subquery(key)).order_by("name"))
    held = _cards_in_use([row.uid for row in rows])
    serving: dict[str, Counter[int]] = {}
    moves = []
    for row in rows:
        vendors: Counter[str] = Counter()
        for chip, cards in held.get(row.uid, {}).items():
            if _is_accelerator(chip):
                vendors[_vendor_of(chip)] += cards
        if not vendors:
            continue
        for name, cards in vendors.items():
            serving.setdefault(name, Counter())[row.pk] = cards
        moves.append(_alternatives_of_deployment(row, vendors, key=row.catalog_key or ""))
    return sorted(
        moves, key=lambda one: (not one.has_no_alternative, -one.cards, one.deployment.name)
    ), serving


def _cards_in_use(uids: Sequence[str]) -> Mapping[str, Counter[str]]:
    """Cards that each of those deployments holds now, by chip."""
    rows = Allocation.objects.filter(
        released_at=None, claim__work_kind="deployment", claim__work_uid__in=uids
    ).values_list("claim__work_uid", "card__chip")
    found: dict[str, Counter[str]] = {}
    for uid, chip in rows:
        found.setdefault(uid, Counter())[chip] += 1
    return found


def _alternatives_of_deployment(
    row: Deployment, vendors: Mapping[str, int], *, key: str
) -> DeploymentAlternatives:
    """``key``: of the catalog entry of its model; empty if it is not in the catalog."""
    on = tuple(sorted(_vendor_title(name) for name in vendors))
    cards = sum(vendors.values())
    found = catalog_entry(key) if key else None
    if found is None:
        return DeploymentAlternatives(deployment=row, on=on, cards=cards)
    elsewhere: dict[SupportLevel, list[str]] = {}
    for one in compatibility_matrix(found[0]):
        status = one.status(CatalogTask.SERVE)
        if one.vendor.name not in vendors and status in _MOVABLE:
            elsewhere.setdefault(status, []).append(one.vendor.title)
    return DeploymentAlternatives(
        deployment=row,
        on=on,
        cards=cards,
        supported=tuple(elsewhere.get(SupportLevel.SUPPORTED, ())),
        experimental=tuple(elsewhere.get(SupportLevel.EXPERIMENTAL, ())),
        known=True,
    )


def _is_accelerator(chip: str) -> bool:
    """Processors do not count: there is no dependency on their vendor."""
    known = adapter_registry.all_chips().get(chip)
    return known is None or known.kind is not ChipKind.CPU


def _vendor_of(chip: str) -> str:
    """The vendor of a chip; the chip's own name if no plug-in knows it."""
    known = adapter_registry.all_chips().get(chip)
    return known.vendor if known else chip


def _vendor_title(vendor: str) -> str:
    plugin = adapter_registry.chip_plugins().get(vendor)
    return plugin.profile().title if plugin else vendor
