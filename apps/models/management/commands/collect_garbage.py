"""Run garbage collection manually; it also runs every hour."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.models.services.storage_cleanup import GARBAGE_BATCH, GARBAGE_GRACE, garbage_collect
from controlplane.domain.common.resources import format_bytes


class Command(BaseCommand):
    help = "Set aside the files of the artifact store that nothing names, discard those set aside before."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what it would do")
        parser.add_argument("--limit", type=int, default=GARBAGE_BATCH, help="files to look at")
        parser.add_argument(
            "--grace-hours",
            type=float,
            default=GARBAGE_GRACE.total_seconds() / 3600,
            help="how long a file must have been needless, before each of the two steps",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run = garbage_collect(
            at=timezone.now(),
            dry_run=options["dry_run"],
            grace=timedelta(hours=options["grace_hours"]),
            limit=options["limit"],
        )
        if run is None:
            raise CommandError(
                "another round, or a backup, is under way; try again when it is over"
            )
        verb = "would be" if run.dry_run else "were"
        self.stdout.write(
            f"{run.examined} files looked at; {run.set_aside} {verb} set aside; "
            f"{run.removed} ({format_bytes(run.removed_bytes)}) {verb} discarded"
        )
