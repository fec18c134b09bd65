"""The WSGI application of pages and REST: about ten times cheaper per request than Django's ASGI handler."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")

application = get_wsgi_application()
