"""Settings of the test run: those of the product, with test secrets and a temporary home.

``tests/postgres_plugin.py`` starts a temporary PostgreSQL and sets its URL and a temporary home in the
environment before this module is imported; checks that use neither get paths that do not exist.
"""

from __future__ import annotations

import os

os.environ.setdefault("NINEFOLD_DATABASE_URL", "postgresql:///ninefold?host=/nonexistent")
os.environ.setdefault("NINEFOLD_SECRET_KEY", "only-for-the-tests")
os.environ.setdefault("NINEFOLD_ENCRYPTION_KEY", "b25seS1mb3ItdGVzdHMtMzItYnl0ZXMtbG9uZy0hISE=")
os.environ.setdefault("NINEFOLD_GATEWAY_TOKEN", "only-for-the-tests")
os.environ.setdefault("NINEFOLD_HOME", "/nonexistent/ninefold")

from config.settings.base import *  # noqa: F403 - as Django's settings build on each other
from config.settings.base import DATABASES, NINEFOLD_HUBS, STORAGES
from config.settings.outbound import HubAccess

if migrated := os.environ.get("NINEFOLD_TEST_DATABASE_TEMPLATE"):
    # Each worker's database is a copy of it, and needs no migration.
    DATABASES["default"]["TEST"] = {"TEMPLATE": migrated, "MIGRATE": False}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    **STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# No test calls a hub of the world outside; one that needs a hub brings its own.
NINEFOLD_HUBS = {name: HubAccess(address="http://127.0.0.1:9") for name in NINEFOLD_HUBS}

# Tests relay by themselves, and have no broker.
NINEFOLD_WAKE_RELAY = False
