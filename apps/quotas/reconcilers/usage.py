"""The ledger's loops: midnights are recorded, days are summed, and both are compared with the cards."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.quotas.selectors.usage import Discrepancy, usage_discrepancies
from apps.quotas.services.usage import usage_cut, usage_roll

__all__ = ["LedgerDisagrees", "usage_compare", "usage_cut", "usage_roll"]

#: Claims that ended longer ago were compared by earlier turns.
COMPARED = timedelta(days=2)
_NAMED = 3


class LedgerDisagrees(Exception):
    """Records do not add up to what claims held."""

    def __init__(self, found: list[Discrepancy]) -> None:
        named = "; ".join(map(str, found[:_NAMED]))
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        super().__init__(
            f"the ledger differs from the allocations of {len(found)} claims: {named}{more}. "
            "manage.py usage_check lists all"
        )


def usage_compare(*, at: datetime) -> None:
    """Compare the ledger with the allocations of claims that held cards lately.

    :raises LedgerDisagrees: if it differs, so that the page of the product's status says so.
    """
    if found := usage_discrepancies(since=at - COMPARED):
        raise LedgerDisagrees(found)
