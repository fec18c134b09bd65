"""Small queue trees, said in few words."""

from __future__ import annotations

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.quotas.tree import QueueTree, QuotaShortage

CHIP = "ascend-910b3"


OTHER = "nvidia-h800"


def queue(
    name: str,
    *,
    parent: str | None = None,
    reserved: int = 0,
    guaranteed: int = 0,
    cap: int | None = None,
    total: ChipQuota | None = None,
    used: int = 0,
    weight: float = 1.0,
    is_open: bool = True,
    borrows: bool = True,
    lends: bool = True,
) -> QueueSnapshot:
    """Figures are of one chip."""
    return QueueSnapshot(
        uid=name,
        name=name,
        parent=parent,
        entitlements={CHIP: ChipQuota(reserved=reserved, guaranteed=guaranteed, cap=cap)},
        total=total or ChipQuota(),
        weight=weight,
        used={CHIP: used} if used else {},
        open=is_open,
        borrows=borrows,
        lends=lends,
    )


def tree(*queues: QueueSnapshot, free: int = 0, others: int = 0) -> QueueTree:
    return QueueTree({view.uid: view for view in queues}, free={CHIP: free, OTHER: others})


def refusal(of: QueueTree, name: str, cards: int, chip: str = CHIP) -> QuotaShortage:
    shortage = of.check(name, chip, cards).shortage
    assert shortage is not None
    return shortage


def allows(of: QueueTree, name: str, cards: int, chip: str = CHIP) -> bool:
    return of.check(name, chip, cards).shortage is None
