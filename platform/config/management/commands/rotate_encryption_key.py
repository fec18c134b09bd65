"""``manage.py rotate_encryption_key``: re-encrypt stored secrets with the first key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.persistence.encryption import DecryptionFailed, secrets_reencrypt


class Command(BaseCommand):
    help = "Encrypt all stored secrets with the first key of NINEFOLD_ENCRYPTION_KEY."

    def handle(self, *args: Any, **options: Any) -> None:
        """:raises CommandError: if none of the keys fits one of them."""
        try:
            counts = secrets_reencrypt()
        except DecryptionFailed as error:
            raise CommandError(str(error)) from error
        for column, count in counts.items():
            self.stdout.write(f"{column}: {count} encrypted with the first key")
