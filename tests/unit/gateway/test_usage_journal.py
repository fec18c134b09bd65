from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from gateway.durable_files import FolderInUse, FolderLock, write_durably
from gateway.usage_reporting import UsageJournal, UsageJournalBatch


def journal_in(folder: Path, *, max_bytes: int = 1_000_000, now: float = 1000.0) -> UsageJournal:
    return UsageJournal(folder, gateway_id="g", max_bytes=max_bytes, wall=lambda: now)


def oldest(journal: UsageJournal) -> tuple[UsageJournalBatch, dict[str, Any]]:
    found = journal.oldest()
    assert found is not None
    return found[0], json.loads(found[1])


def test_a_batch_is_on_disk_until_it_is_acknowledged(tmp_path: Path) -> None:
    journal_in(tmp_path).append([{"n": 1}, {"n": 2}])
    restarted = journal_in(tmp_path)
    batch, content = oldest(restarted)
    assert content == {"gateway": "g", "sequence": batch.sequence, "records": [{"n": 1}, {"n": 2}]}
    assert restarted.pending_records == 2
    restarted.acknowledge(batch)
    assert restarted.oldest() is None
    assert journal_in(tmp_path).oldest() is None


def test_batches_come_oldest_first(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for number in range(12):
        journal.append([{"n": number}])
    seen = []
    while journal.oldest() is not None:
        batch, content = oldest(journal)
        seen.append(content["records"][0]["n"])
        journal.acknowledge(batch)
    assert seen == list(range(12))


def test_sequence_numbers_are_never_reused(tmp_path: Path) -> None:
    used = []
    for _ in range(5):
        journal = journal_in(tmp_path)
        journal.append([{}])
        batch, _ = oldest(journal)
        used.append(batch.sequence)
        journal.acknowledge(batch)
    assert used == sorted(set(used))
    assert len(list(tmp_path.iterdir())) == 1


def test_sequence_numbers_of_a_new_folder_are_higher_than_before(tmp_path: Path) -> None:
    first = journal_in(tmp_path / "first", now=1000.0)
    for _ in range(100):
        first.append([{}])
    second = journal_in(tmp_path / "second", now=1001.0)
    second.append([{}])
    assert oldest(second)[0].sequence > oldest(first)[0].sequence + 99


def test_a_full_journal_drops_its_oldest_and_counts_them(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, max_bytes=5000)
    for number in range(20):
        journal.append([{"n": number, "filling": "x" * 900}])
    assert journal.pending_bytes <= 5000
    assert journal.dropped_records == 20 - journal.pending_records > 0
    assert oldest(journal)[1]["records"][0]["n"] == journal.dropped_records


def test_a_batch_dropped_while_it_is_posted_may_still_be_acknowledged(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, max_bytes=1)
    journal.append([{}])
    batch, _ = oldest(journal)
    journal.append([{}])
    journal.acknowledge(batch)
    assert journal.refuse(batch) is None
    assert oldest(journal)[0].sequence == batch.sequence + 1


def test_refused_batch_is_stored_for_inspection(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append([{"n": 1}])
    stored = journal.refuse(oldest(journal)[0])
    journal.append([{"n": 2}])
    assert stored is not None
    assert json.loads(stored.read_bytes())["records"] == [{"n": 1}]
    assert oldest(journal_in(tmp_path))[1]["records"] == [{"n": 2}]


def test_partial_file_of_a_crash_is_deleted(tmp_path: Path) -> None:
    torn = tmp_path / f"{7:020d}.1.json.partial"
    torn.write_bytes(b'{"gate')
    assert journal_in(tmp_path).oldest() is None
    assert not torn.exists()


def test_deleted_batch_file_does_not_block_later_batches(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append([{"n": 1}])
    for path in tmp_path.iterdir():
        path.unlink()
    journal.append([{"n": 2}])
    assert oldest(journal)[1]["records"] == [{"n": 2}]
    assert journal.dropped_records == 1


def test_a_full_disk_leaves_the_old_file_and_no_partial_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_durably(path, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_a_folder_has_one_gateway_at_a_time(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(FolderInUse, match="NINEFOLD_GATEWAY_ID"):
        FolderLock(tmp_path)
    lock.release()
    FolderLock(tmp_path).release()
