"""``manage.py restore``: restore a backup; see ``docs/operations.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.jobs.services.job_storage import orphaned_launch_folders
from apps.models.selectors import artifact_store
from controlplane.persistence.backups import BackupRefused, restore_backup


class Command(BaseCommand):
    help = "Restore a backup into an empty database and this home's artifact store."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="source", type=Path, required=True, help="the backup")
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--into-empty",
            action="store_true",
            help="refuse an artifact store that holds anything too, not only such a database",
        )
        where.add_argument(
            "--overwrite", action="store_true", help="all that the database holds goes"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        source: Path = options["source"].absolute()
        try:
            restored = restore_backup(
                source,
                store=artifact_store(),
                overwrite=options["overwrite"],
                into_empty=options["into_empty"],
            )
        except BackupRefused as refusal:
            raise CommandError(str(refusal)) from refusal
        # Creates permissions and content types that are new since the backup.
        call_command("migrate", verbosity=0)
        self.stdout.write(
            f"{restored.rows} rows and {restored.blobs} artifact files of {restored.manifest.created_at}"
        )
        for digest in restored.manifest.blobs_missing:
            self.stderr.write(f"{digest}, which a row names, was lost before the backup was made")
        if restored.keys_missing:
            self.stderr.write(
                "none of the encryption keys of the backup is here; put its NINEFOLD_ENCRYPTION_KEY, "
                "or its folder `secrets`, into place"
            )
        for sealed in restored.undecryptable:
            self.stderr.write(f"{sealed.column}: {sealed.lost} of {sealed.of} cannot be decrypted")
        for cluster, name in orphaned_launch_folders():
            self.stderr.write(
                f"cluster {cluster.name} has {name}, of a run that the backup does not know: stop what "
                "runs there and delete it by hand"
            )
        self.stdout.write(
            "Jobs that ran when the backup was made will be found lost, and can be tried again."
        )
