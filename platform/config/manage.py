"""``python -m config.manage``: Django's command line where there is no checkout with its ``manage.py``."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    """:raises SystemExit: if a setting is missing or invalid; its message names the variable."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        raise SystemExit(f"ninefold: {error}") from None


if __name__ == "__main__":
    main()
