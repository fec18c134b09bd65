"""``manage.py backup``: write a backup to a folder; see ``docs/operations.md``."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.models.selectors import artifact_store
from apps.models.selectors.storage import digests_referenced
from controlplane.domain.common.resources import format_bytes
from controlplane.persistence.backups import BackupRefused, back_up
from controlplane.persistence.backups.writer import newest_sibling_backup


class Command(BaseCommand):
    help = "Back up the database and the artifacts, while the product runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--out", type=Path, required=True, help="a folder that is not there yet"
        )
        parser.add_argument(
            "--without-artifacts",
            action="store_true",
            help="list the artifacts only; their folder is kept safe in another way",
        )
        parser.add_argument(
            "--incremental-artifacts",
            action="store_true",
            help="link artifacts from the newest backup beside this one instead of copying them",
        )
        parser.add_argument(
            "--accept-missing",
            action="store_true",
            help="succeed even if the store has lost artifacts that rows name; they are listed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        out: Path = options["out"].absolute()
        earlier = newest_sibling_backup(out) if options["incremental_artifacts"] else None
        try:
            written = back_up(
                out,
                product=version("ninefold"),
                digests=digests_referenced,
                store=artifact_store(),
                with_artifacts=not options["without_artifacts"],
                earlier=earlier,
            )
        except BackupRefused as refusal:
            raise CommandError(str(refusal)) from refusal
        manifest = written.manifest
        rows = sum(table.rows for table in manifest.tables)
        self.stdout.write(f"{rows} rows of {len(manifest.tables)} tables")
        how = "listed" if options["without_artifacts"] else f"{written.linked} of them linked"
        self.stdout.write(
            f"{manifest.blob_count} artifact files, {format_bytes(manifest.blob_size)}, {how}"
        )
        for digest in manifest.blobs_missing:
            self.stderr.write(f"the store has lost {digest}, which a row names")
        if manifest.blobs_missing and not options["accept_missing"]:
            raise CommandError(
                f"{out} is kept and holds everything else, but {len(manifest.blobs_missing)} of the "
                "artifact files are lost. Put them back into the store from an earlier backup and make "
                "another one, or say --accept-missing"
            )
        self.stdout.write(
            f"{out} is complete. The encryption key is not in it: keep the folder `secrets` of the "
            "home, or NINEFOLD_ENCRYPTION_KEY, in another safe place"
        )
