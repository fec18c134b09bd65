"""Copy artifacts between the folder and S3."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.models.selectors.storage import artifact_store_of_kind
from apps.models.services.storage_migration import (
    MigrationBusy,
    MigrationResult,
    artifacts_migrate,
)
from controlplane.domain.common.resources import format_bytes
from controlplane.ports.artifacts import ArtifactError

_KINDS = ("filesystem", "s3")
#: Seconds between two lines of progress.
_REPORT_EVERY = 10.0


class Command(BaseCommand):
    help = (
        "Copy all artifacts into the other store: those that are there already are skipped, so an interrupted "
        "run is repeated. Nothing is deleted from the source."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", choices=_KINDS, required=True, help="the target")
        parser.add_argument("--dry-run", action="store_true", help="report without copying")
        parser.add_argument(
            "--verify",
            action="store_true",
            help="read what is in the target already, and copy damaged files again",
        )
        parser.add_argument("--workers", type=int, default=4, help="files copied at the same time")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.NINEFOLD_S3:
            raise CommandError("NINEFOLD_S3_BUCKET is empty; set it to the name of the bucket")
        target = options["to"]
        (source,) = (kind for kind in _KINDS if kind != target)
        self._reported_at = time.monotonic()
        try:
            result = artifacts_migrate(
                source=artifact_store_of_kind(source),
                target=artifact_store_of_kind(target),
                dry_run=options["dry_run"],
                verify=options["verify"],
                workers=max(1, options["workers"]),
                report=self._report,
            )
        except (ArtifactError, MigrationBusy, OSError) as error:
            raise CommandError(f"{error}; what was copied stays, repeat the command") from error
        verb = "would be" if options["dry_run"] else "were"
        self.stdout.write(
            f"{result.copied} files ({format_bytes(result.copied_bytes)}) {verb} copied from {source} to "
            f"{target}; {result.present} were there already"
        )
        for digest in result.missing:
            self.stderr.write(f"{digest} is referenced, and neither store has it")
        if result.missing:
            raise CommandError(f"{len(result.missing)} referenced files are missing")

    def _report(self, result: MigrationResult) -> None:
        if time.monotonic() - self._reported_at > _REPORT_EVERY:
            self._reported_at = time.monotonic()
            self.stdout.write(
                f"{result.copied} files ({format_bytes(result.copied_bytes)}) copied so far"
            )
