from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.serving.lifecycle import MAX_BACKOFF, restart_backoff


def test_the_delay_doubles_from_ten_seconds_up_to_five_minutes() -> None:
    seconds = [restart_backoff(crashes=crashes).total_seconds() for crashes in range(1, 12)]

    assert seconds == [10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300]


@given(st.integers(min_value=1, max_value=10**9))
def test_no_number_of_crashes_overflows_or_shortens_the_delay(crashes: int) -> None:
    assert timedelta() < restart_backoff(crashes=crashes) <= restart_backoff(crashes=crashes + 1)
    assert restart_backoff(crashes=crashes) <= MAX_BACKOFF


@pytest.mark.parametrize("crashes", [0, -1])
def test_backoff_without_crash_is_an_error(crashes: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, got {crashes}"):
        restart_backoff(crashes=crashes)
