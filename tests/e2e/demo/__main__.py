"""``python -m tests.e2e.demo FILE``: fill an empty, migrated database and write down what is in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import django

django.setup()

from tests.e2e.demo.company import company  # noqa: E402 - needs Django's apps

Path(sys.argv[1]).write_text(json.dumps(company()))
