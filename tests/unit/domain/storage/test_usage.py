"""When a team's storage is nearly full, full, and what a refusal says."""

from __future__ import annotations

import pytest

from controlplane.domain.storage.team_storage import (
    StorageKind,
    StorageQuotaExceeded,
    StorageQuotaLevel,
    StorageUse,
)

GIB = 1 << 30


def use(used: int, limit: int | None) -> StorageUse:
    return StorageUse(by_kind={StorageKind.DATASETS: used}, limit=limit)


@pytest.mark.parametrize(
    ("used", "limit", "level"),
    [
        (10**15, None, StorageQuotaLevel.UNLIMITED),
        (0, 100, StorageQuotaLevel.ROOMY),
        (79, 100, StorageQuotaLevel.ROOMY),
        (80, 100, StorageQuotaLevel.NEAR),
        (99, 100, StorageQuotaLevel.NEAR),
        (100, 100, StorageQuotaLevel.FULL),
        (0, 0, StorageQuotaLevel.FULL),
    ],
)
def test_users_are_warned_from_80_percent(
    used: int, limit: int | None, level: StorageQuotaLevel
) -> None:
    assert use(used, limit).level is level


def test_the_last_byte_fits_and_the_next_does_not() -> None:
    assert use(99, 100).fits(1)
    assert not use(99, 100).fits(2)
    assert use(10**15, None).fits(10**15)


def test_a_refusal_says_how_much_is_used_by_what_and_what_to_do() -> None:
    full = StorageUse(
        by_kind={StorageKind.DATASETS: GIB, StorageKind.VERSIONS: 3 * GIB}, limit=4 * GIB
    )
    text = str(StorageQuotaExceeded(team="maps", use=full, requested=GIB // 2))
    assert text.startswith(
        "512 MiB more storage is required; team maps uses 4.0 GiB of its quota of 4.0 GiB"
    )
    assert "(model versions 3.0 GiB, datasets 1.0 GiB)" in text
    assert "storage page" in text
