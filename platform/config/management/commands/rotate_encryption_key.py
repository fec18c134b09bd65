"""``manage.py rotate_encryption_key``: re-encrypt stored secrets with the first key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.fleet.services.clusters import kubeconfigs_reencrypt
from apps.jobs.services.secret_variables import secret_variables_reencrypt
from apps.monitoring.services.alerts import receiver_secrets_reencrypt
from apps.notifications.services.webhooks import webhook_secrets_reencrypt
from controlplane.persistence.encryption import DecryptionFailed


class Command(BaseCommand):
    help = "Encrypt the secrets of webhooks, alert receivers, clusters and jobs by the first key."

    def handle(self, *args: Any, **options: Any) -> None:
        """:raises CommandError: if none of the keys fits one of them."""
        try:
            kubeconfigs, secrets = kubeconfigs_reencrypt(), webhook_secrets_reencrypt()
            receivers = receiver_secrets_reencrypt()
            variables = secret_variables_reencrypt()
        except DecryptionFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{kubeconfigs} kubeconfigs and {secrets} secrets of webhooks were encrypted anew, "
            f"and {receivers} receivers of alerts and {variables} secret variables of jobs"
        )
