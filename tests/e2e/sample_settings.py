"""Settings of the sample company: the product's, with quick passwords and static files as they lie.

``NINEFOLD_SAMPLE_COLLECTED`` serves collected, compressed files instead, as the product does: what a
measurement of sizes needs.
"""

from __future__ import annotations

import os

from config.settings.base import *  # noqa: F403
from config.settings.base import INSTALLED_APPS, STORAGES

INSTALLED_APPS = [*INSTALLED_APPS, "tests.e2e.sample_clusters.SampleClusters"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if "NINEFOLD_SAMPLE_COLLECTED" not in os.environ:
    WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = True
    STORAGES = {
        **STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
