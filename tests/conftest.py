"""What every test may rely on."""

from __future__ import annotations

import compileall
import gc
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any, cast

import pytest
from _pytest.assertion import rewrite
from django.apps import apps
from django.core.management.commands import flush
from django.db.backends.postgresql.operations import DatabaseOperations
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from apps.quotas.apps import create_default_priority_classes
from tests.kubernetes.live import live_cluster
from tests.properties import examples

__all__ = ["live_cluster"]

ROOT = Path(__file__).resolve().parents[1]
UNCHANGED_TABLES = frozenset({"django_content_type", "auth_permission"})

#: Tests that are slow and real, by the start of their path: each group needs a worker for most of the run.
GROUPS = {
    "engines": ("tests/engine/",),
    "products": (
        "tests/kubernetes/",
        "tests/contract/",
        "tests/e2e/test_browser.py",
        "tests/e2e/test_faults.py",
        "tests/e2e/test_main_",
        "tests/integration/deployment/test_containers.py",
    ),
}

#: Programs that take half a core when they are idle → the start of the paths of the tests that use them.
SHARED_PROGRAMS = {
    "crowd": ("tests/kubernetes/",),
    "live_cluster": ("tests/kubernetes/", "tests/contract/"),
    "product": ("tests/e2e/test_browser.py", "tests/e2e/test_faults.py", "tests/e2e/test_main_"),
}

#: Files of few tests that take as long as files of many: with ``--dist loadfile`` they come first, longest first,
#: because at the end one of them would keep a worker busy while the others have nothing left.
LONG_FILES = (
    "tests/integration/backups/test_backups.py",
    "tests/functional/client/test_documents.py",
    "tests/functional/client/test_command_line.py",
    "tests/unit/domain/scheduling/test_histories.py",
    "tests/functional/api/test_checkpoints.py",
    "tests/integration/workflows/test_cancellation.py",
    "tests/integration/storage/test_weight_downloads.py",
    "tests/functional/api/test_dry_run.py",
    "tests/integration/serving/test_rollouts.py",
    "tests/functional/client/test_model_imports.py",
    "tests/functional/admin/test_admin_actions.py",
    "tests/integration/workflows/test_deploy_steps.py",
    "tests/functional/api/test_index.py",
    "tests/integration/serving/test_paused_rollouts.py",
    "tests/integration/workflows/test_gates.py",
    "tests/unit/benchmarks/test_replays.py",
    "tests/integration/broker/test_filesystem_broker.py",
    "tests/integration/workflows/test_retries.py",
    "tests/integration/quotas/test_usage_ledger_invariants.py",
    "tests/unit/test_dependencies.py",
    "tests/integration/local_cluster/test_input_downloads.py",
    "tests/integration/storage/test_artifacts_on_s3.py",
)

#: Folders whose files share a fixture that takes longer than their tests: one worker runs them.
SHARING_FOLDERS = ("tests/integration/upgrade/",)

# How long an example takes says more of the machine than of the code.
settings.register_profile(
    "patient", parent=settings.default, deadline=None, max_examples=examples(100)
)
settings.load_profile("patient")

# Examples take constants from the source of our modules. Those of tests say nothing of the product.
_providers: Any = providers
_is_local_module = _providers.is_local_module_file
_providers.is_local_module_file = lambda path: (
    not str(path).startswith(f"{ROOT}/tests/") and _is_local_module(path)
)


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as cores: for a quarter of its time a worker waits, for servers and processes."""
    return (os.cpu_count() or 1) * 3 // 2


class _LongFilesFirst(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    def _assign_work_unit(self, node: Any) -> None:
        long = next((file for file in LONG_FILES if file in self.workqueue), None)
        if long is not None:
            self.workqueue.move_to_end(long, last=False)
        super()._assign_work_unit(node)


# Not by marks: xdist 3.8 writes the groups into names of tests where pytest 9.2 no longer reads them.
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadgroup`` engines run beside products and clusters, each one test after the other.

    Files and pages fill what is left of the workers. With ``--dist loadfile`` folders may be kept together too.
    """
    groups = {"loadgroup": _group, "loadfile": _folder_or_file}.get(config.getvalue("dist"))
    if groups is None:
        return None
    scheduler = (LoadScopeScheduling if groups is _group else _LongFilesFirst)(config, log)
    scheduler._split_scope = groups
    if groups is _group:
        config.option.loadscopereorder = False
    return scheduler


def _folder_or_file(test: str) -> str:
    file = test.partition("::")[0]
    return next((folder for folder in SHARING_FOLDERS if file.startswith(folder)), file)


def _group(test: str) -> str:
    file = test.partition("::")[0]
    if file == "tests/e2e/test_pages.py":
        return test
    for group, files in GROUPS.items():
        if file.startswith(files):
            return group
    return _folder_or_file(test)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first; pytest-django has put them behind those that use the database."""
    items.sort(key=lambda item: _group(item.nodeid) not in GROUPS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End shared programs after the last of their tests, and not after the last test of all."""
    yield
    if nextitem is None or not isinstance(item, pytest.Function):
        return
    for name, users in SHARED_PROGRAMS.items():
        if item.nodeid.startswith(users) and not nextitem.nodeid.startswith(users):
            for fixture in item.session._fixturemanager.getfixturedefs(name, item) or ():
                fixture.finish(cast(Any, item._request))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile this worker's share of our modules: without it each compiles all of them, at the same time."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    folders = ("apps", "client/src", "platform", "tests")
    files = sorted(file for folder in folders for file in ROOT.glob(f"{folder}/**/*.py"))
    for file in files[number :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        if not file.name.startswith("test_") and file.name != "conftest.py":
            compileall.compile_file(file, quiet=2)
            continue
        # As pytest compiles it when it imports it.
        compiled = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(file, compiled) is None:
            source_hash, code = rewrite._rewrite_test(file, session.config)
            state = session.config.stash[rewrite.assertstate_key]
            compiled.parent.mkdir(exist_ok=True)
            rewrite._write_pyc(state, code, source_hash, compiled)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected and imported meanwhile stays to the end: there is next to no garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Modules and collected tests stay to the end: going through them again and again is a sixth of a run."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@pytest.fixture(autouse=True, scope="session")
def files_need_not_survive_a_power_failure() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def servers_send_answers_at_once() -> Iterator[None]:
    """Those of tests write headers and body apart, and the kernel keeps the body 40 ms for an acknowledgement."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamRequestHandler, "disable_nagle_algorithm", True)
        yield


def _create_default_rows(_verbosity: int, _interactive: bool, database: str, **_: Any) -> None:
    create_default_priority_classes(using=database)


@pytest.fixture(autouse=True, scope="session")
def tables_are_emptied_after_tests_that_commit() -> Iterator[None]:
    """Tables that Django does not manage and append-only ones too, whose triggers are off meanwhile.

    Only rows of the few tables that have any are deleted: truncating two hundred takes longer than most tests.
    Content types and permissions, which migrations create and no test changes, stay for the same reason.
    """

    def delete_rows(
        self: DatabaseOperations, _style: Any, tables: Sequence[str], **_how: Any
    ) -> list[str]:
        if not tables:
            return []
        unmanaged = [each._meta.db_table for each in apps.get_models() if not each._meta.managed]
        names = [
            self.quote_name(table)
            for table in (*tables, *unmanaged)
            if table not in UNCHANGED_TABLES
        ]
        with self.connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join(
                    f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in names
                )
            )
            filled = [name for (name,) in cursor.fetchall()]
        return [
            "SET LOCAL session_replication_role TO 'replica'",
            *(f"DELETE FROM {name}" for name in filled),
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", delete_rows)
        patch.setattr(flush, "emit_post_migrate_signal", _create_default_rows)
        yield
