"""What every test of a page or of the API begins with, whatever came before it in the same process."""

from __future__ import annotations

import math

import pytest

from apps.monitoring.web.status import late_loops


@pytest.fixture(autouse=True)
def the_warning_of_late_loops_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page shows it to whoever administers, and a process asks for it once in some seconds.

    Which page does so, and so costs a query more, is a matter of time: without this, of which tests ran before and
    of how busy the machine is. Whoever tests the warning itself forgets it first.
    """
    monkeypatch.setattr(late_loops, "_kept", (math.inf, 0))
