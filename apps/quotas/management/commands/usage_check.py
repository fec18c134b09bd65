"""Compare the whole ledger with the allocations; the hourly task compares only the last days."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.quotas.selectors.usage import usage_discrepancies


class Command(BaseCommand):
    help = "Say whether the ledger agrees with the allocations of every claim, to the microsecond."

    def handle(self, *args: Any, **options: Any) -> None:
        found = usage_discrepancies()
        for one in found:
            self.stdout.write(str(one))
        if found:
            raise CommandError(f"the ledger differs from the allocations of {len(found)} claims")
        self.stdout.write("the ledger agrees with the allocations")
