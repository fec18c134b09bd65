"""What was used in the last weeks, and what an hour of a card costs."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from random import Random

from apps.quotas.models import CardRate
from apps.quotas.services.usage_ledger import usage_roll_up
from tests.e2e.demo.clock import NOW
from tests.e2e.demo.fleet import GPU, NPU, Fleet
from tests.e2e.demo.users import Users
from tests.factories import usage

DAYS = 40
#: The chip of the machine itself has no rate.
RATES = {GPU: Decimal("26.5"), NPU: Decimal("13.8")}


def used(who: Users, where: Fleet) -> None:
    """A few claims a day, more on working days, each ended."""
    chance = Random(9)
    asking = ((where.maps, who.maps, who.ada), (where.search, who.search, None))
    for days in range(DAYS, 0, -1):
        day = NOW - timedelta(days=days)
        for _ in range(chance.randint(2, 4) if day.weekday() < 5 else 1):
            queue, team, user = chance.choice(asking)
            chip = chance.choice((GPU, GPU, NPU, "cpu"))
            claim = usage.waiting(
                queue=queue,
                team=team,
                user=user,
                cards=chance.choice((1, 2, 4, 4)),
                name="nightly fine-tune",
                chip=chip,
            )
            usage.admit(claim, at=day)
            usage.release(claim, at=day + timedelta(minutes=chance.randint(30, 1400)))
    for chip, per_hour in RATES.items():
        CardRate.objects.create(chip=chip, per_hour=per_hour)
    usage_roll_up()
