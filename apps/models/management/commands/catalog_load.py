"""Load the catalog's data files into the database and print the changes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps.models.selectors.catalog import published_catalog
from apps.models.services.catalog import catalog_load
from controlplane.domain.catalog.parsing import CatalogRefused


class Command(BaseCommand):
    help = "Load the catalog of models from the data files; a second time nothing changes."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            catalog = published_catalog()
        except CatalogRefused as refusal:
            raise CommandError(str(refusal)) from None
        for line in catalog_load(catalog=catalog, at=timezone.now()).lines():
            self.stdout.write(line)
