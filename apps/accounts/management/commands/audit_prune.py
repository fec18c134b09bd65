"""``manage.py audit_prune``: delete audit entries older than the retention period."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps.accounts.services import audit_prune


class Command(BaseCommand):
    help = "Delete audit entries that are older than so many days."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, required=True, help="how long they are kept")

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        """:raises CommandError: if that would leave less than a month."""
        if days < 30:
            raise CommandError(f"keep entries for 30 days or more, got {days}")
        count = audit_prune(before=timezone.now() - timedelta(days=days))
        self.stdout.write(f"deleted {count} audit entries that were older than {days} days")
