"""Reports on the fleet: cards that are allocated but idle, and the concentration on vendors.

*Idle allocation*: the workloads of idle cards, since when, and the cost in card-hours. A card is idle once it has
been allocated and measured below ``IDLE`` percent for ``IDLE_FOR``. Its last activity is looked up where that is
cheap: in the last hours of the history, and further back in hourly aggregates.

*Vendor concentration*: usage by vendor of accelerators, what serves now, and what could move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import OuterRef, Subquery

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.selectors.catalog import catalog_entry, compatibility_matrix
from apps.quotas.models import Allocation, Queue
from apps.quotas.selectors.queues import queue_visibility_of
from apps.quotas.selectors.topology import allocated_claims
from apps.quotas.selectors.usage import UsageReportGrouping, UsageReportInterval, usage_report
from apps.serving.models import Deployment, Revision
from apps.serving.selectors import deployments_visible
from apps.telemetry.selectors import FRESH, IDLE
from controlplane.domain.catalog import CatalogTask, SupportLevel
from controlplane.domain.common.accelerators import ChipKind
from controlplane.domain.quotas.card_hours import HOUR_MICROSECONDS, DayRange
from controlplane.persistence.transactions import fetch_rows
from controlplane.ports import adapter_registry

IDLE_FOR = timedelta(minutes=30)
#: Maximum time range of idle allocation, and the days that use of vendors is counted over.
LOOKBACK = timedelta(days=30)

_IDLE = """
    SELECT quiet.claim_id, quiet.cluster, quiet.node, quiet.index, quiet.card, quiet.chip,
           greatest(quiet.allocated_at, known.first,
                    coalesce(lately.at, within.at, sums.hour + interval '1 hour')) AS since
      FROM (SELECT held.claim_id, held.allocated_at, cluster.name AS cluster, node.name AS node,
                   card.index, card.uid AS card, card.chip, card.id AS card_id
              FROM quotas_allocation AS held
              JOIN telemetry_cardfigures AS figures ON figures.card_id = held.card_id
              JOIN fleet_card AS card ON card.id = held.card_id
              JOIN fleet_node AS node ON node.id = card.node_id
              JOIN fleet_cluster AS cluster ON cluster.id = node.cluster_id
             WHERE held.released_at IS NULL AND held.allocated_at <= %(long_ago)s
               AND figures.at >= %(fresh)s AND figures.utilization < %(idle)s) AS quiet
      LEFT JOIN LATERAL (
           SELECT at FROM telemetry_history
            WHERE card_id = quiet.card_id AND at >= %(lately)s AND at <= %(at)s
              AND utilization >= %(idle)s
            ORDER BY at DESC LIMIT 1) AS lately ON true
      LEFT JOIN LATERAL (
           SELECT max(hour) AS hour FROM telemetry_cardhour
            WHERE card_id = quiet.card_id AND hour >= %(look_back)s AND hour < %(lately)s
              AND utilization_max >= %(idle)s) AS sums ON lately.at IS NULL
      LEFT JOIN LATERAL (
           SELECT max(at) AS at FROM telemetry_history
            WHERE card_id = quiet.card_id AND at >= sums.hour AND at < sums.hour + interval '1 hour'
              AND utilization >= %(idle)s) AS within ON lately.at IS NULL
      LEFT JOIN LATERAL (
           SELECT least((SELECT min(at) FROM telemetry_history WHERE card_id = quiet.card_id),
                        (SELECT min(hour) FROM telemetry_cardhour WHERE card_id = quiet.card_id
                                                                     AND hour >= %(look_back)s)
                       ) AS first) AS known ON true
     WHERE known.first IS NOT NULL
     ORDER BY quiet.cluster, quiet.node, quiet.index
"""


class IdleCard(NamedTuple):
    """A card that is held and has not worked since."""

    claim: int
    cluster: str
    node: str
    #: Its place in the node.
    number: int
    #: Its uid.
    card: str
    chip: str
    since: datetime


def idle_cards(*, at: datetime) -> Sequence[IdleCard]:
    """Every card that is wasted, by cluster, node and index."""
    hour = at.replace(minute=0, second=0, microsecond=0)
    asked: dict[str, datetime | float] = {
        "at": at,
        "fresh": at - FRESH,
        "long_ago": at - IDLE_FOR,
        # The hour before may not be summed up yet.
        "lately": hour - timedelta(hours=1),
        "look_back": hour - LOOKBACK,
        "idle": IDLE,
    }
    found = [IdleCard(*row) for row in fetch_rows(_IDLE, asked)]
    return [card for card in found if card.since <= at - IDLE_FOR]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleAllocationTotals:
    """Of the whole fleet."""

    #: Wasted cards by cluster and chip.
    cards: Mapping[tuple[str, str], int]
    #: Total idle hours.
    card_hours: float

    @property
    def total(self) -> int:
        return sum(self.cards.values())


def idle_allocation_totals(*, at: datetime) -> IdleAllocationTotals:
    """How much is wasted where."""
    found = idle_cards(at=at)
    return IdleAllocationTotals(
        cards=Counter((card.cluster, card.chip) for card in found),
        card_hours=sum((at - card.since).total_seconds() for card in found) / 3600,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleAllocationRow:
    """A claim that wastes some of its cards."""

    #: ``job`` or ``deployment``; uid and name are empty if they are not visible to the reader.
    kind: str
    uid: str
    name: str
    team: str
    queue: str
    chips: tuple[str, ...]
    clusters: tuple[str, ...]
    #: Its cards that are idle, and all that it holds.
    idle: Sequence[IdleCard]
    held: int
    #: Since when the first of them has been idle.
    since: datetime
    card_hours: float


def idle_allocation_rows(
    user: accounts.RequestUser, *, at: datetime
) -> Sequence[IdleAllocationRow]:
    """All claims with idle cards by idle card-hours, as far as they are visible to the user."""
    by_claim: dict[int, list[IdleCard]] = {}
    for card in idle_cards(at=at):
        by_claim.setdefault(card.claim, []).append(card)
    if not by_claim:
        return []
    queues = {queue.pk: queue for queue in Queue.objects.order_by("name")}
    visibility = queue_visibility_of(user, queues.values())
    teams = dict(Team.objects.values_list("pk", "name"))
    rows = []
    for key, claim in allocated_claims(by_claim).items():
        cards = by_claim[key]
        named = (
            visibility.everything
            or claim.team in visibility.teams
            or claim.queue in visibility.managed
        )
        rows.append(
            IdleAllocationRow(
                team=teams[claim.team],
                queue=queues[claim.queue].name,
                kind=claim.work_kind,
                uid=claim.work_uid if named else "",
                name=claim.work_name if named else "",
                chips=tuple(sorted({card.chip for card in cards})),
                clusters=tuple(sorted({card.cluster for card in cards})),
                idle=cards,
                held=claim.cards,
                since=min(card.since for card in cards),
                card_hours=sum((at - card.since).total_seconds() for card in cards) / 3600,
            )
        )
    return sorted(rows, key=lambda row: (-row.card_hours, row.since))


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
