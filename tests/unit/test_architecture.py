"""What import-linter cannot see: string keys, names of tasks and topics, files that must not exist."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from celery import current_app
from django.apps import apps as installed
from django.conf import settings
from django.db.models import Field, Model

from config.celery import app as celery_app
from config.tasks import TOPICS
from tests.cases import for_each_case

ROOT = Path(__file__).resolve().parents[2]

#: Bottom to top; those on one line know nothing of each other.
LAYERS = (
    {"accounts"},
    {"notifications"},
    {"fleet"},
    {"telemetry"},
    {"registry", "quotas"},
    {"jobs"},
    {"serving"},
    {"monitoring"},
    {"workflows"},
)
LEVEL = {label: level for level, labels in enumerate(LAYERS) for label in labels}
#: Django's own tables lie below everything of ours.
FOUNDATION = {"auth", "contenttypes", "sessions", "admin"}
IN_AN_APP = {
    "admin",
    "api",
    "management",
    "tasks",
    "web",
    "reconcilers",
    "services",
    "selectors",
    "models",
    "apps",
    "migrations",
    "__init__",
    "__pycache__",
}


def own_models() -> list[type[Model]]:
    return [
        model
        for model in installed.get_models(include_auto_created=True)
        if model._meta.app_config.name.startswith("apps.")
    ]


def foreign_keys() -> Iterator[tuple[type[Model], Field[object, object], type[Model]]]:
    for model in own_models():
        for field in model._meta.get_fields():
            target = field.related_model
            if isinstance(field, Field) and isinstance(target, type):
                yield model, field, target


def sources(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        if "migrations" not in path.parts:
            yield path, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def calls_of(name: str) -> Sequence[tuple[Path, ast.Call]]:
    """Every call of a function of that bare name."""
    return calls_by_name()[name]


@cache
def calls_by_name() -> Mapping[str, list[tuple[Path, ast.Call]]]:
    found: defaultdict[str, list[tuple[Path, ast.Call]]] = defaultdict(list)
    for folder in (ROOT / "apps", ROOT / "platform"):
        for path, tree in sources(folder):
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    found[node.func.id].append((path, node))
    return found


def test_there_are_foreign_keys_to_judge() -> None:
    assert len(list(foreign_keys())) > 40


@for_each_case(
    ("model", "field", "target"),
    [
        pytest.param(model, field, target, id=f"{model.__name__}.{field.name}")
        for model, field, target in foreign_keys()
    ],
)
def test_a_foreign_key_points_down_the_layers(
    model: type[Model], field: Field[object, object], target: type[Model]
) -> None:
    source_label, target_label = model._meta.app_label, target._meta.app_label
    if source_label == target_label or target_label in FOUNDATION:
        return
    assert LEVEL[target_label] < LEVEL[source_label], (
        f"{model.__name__}.{field.name} points from {source_label} up or across to {target_label}"
    )


def test_every_app_of_ours_has_its_layer() -> None:
    labels = {model._meta.app_label for model in own_models()}
    assert labels <= set(LEVEL)


def test_the_source_folder_is_no_package() -> None:
    """It would shadow the standard library's ``platform``."""
    assert not (ROOT / "platform" / "__init__.py").exists()
    module = importlib.import_module("platform")
    assert module.python_version()


def test_the_folder_of_apps_is_not_itself_installed() -> None:
    assert "apps" not in settings.INSTALLED_APPS
    assert "apps.models" in settings.INSTALLED_APPS
    assert installed.get_app_config("registry").name == "apps.models"


def test_no_class_is_called_model() -> None:
    assert "Model" not in {model.__name__ for model in own_models()}


@pytest.mark.parametrize(
    "app", sorted(path.name for path in (ROOT / "apps").iterdir() if path.is_dir())
)
def test_an_app_has_no_modules_but_those_of_the_layers(app: str) -> None:
    if app == "__pycache__":
        return
    found = {path.stem for path in (ROOT / "apps" / app).iterdir() if path.suffix in ("", ".py")}
    assert found <= IN_AN_APP


def published() -> Iterator[tuple[Path, str, set[str]]]:
    """Each place that publishes: the topic, and what it carries."""
    for function in ("publish_message", "publish_once"):
        for path, call in calls_of(function):
            yield path, topic_of(path, call), {str(keyword.arg) for keyword in call.keywords}
    for path, call in calls_of("publish_messages"):
        payloads = call.args[1]
        assert isinstance(payloads, ast.GeneratorExp), f"{path}: write the payload out"
        assert isinstance(payloads.elt, ast.Dict), f"{path}: write the payload out"
        keys = (key.value for key in payloads.elt.keys if isinstance(key, ast.Constant))
        yield path, topic_of(path, call), {str(key) for key in keys}


def topic_of(path: Path, call: ast.Call) -> str:
    topic = call.args[0]
    assert isinstance(topic, ast.Constant), f"{path}: name the topic, so that it can be found"
    return str(topic.value)


def test_every_topic_that_is_published_is_heard_and_none_is_heard_in_vain() -> None:
    assert {topic for _, topic, _ in published()} == set(TOPICS)


def test_a_listener_takes_what_the_topic_carries() -> None:
    for path, topic, sent in published():
        for task in TOPICS[topic]:
            code = task.run.__code__
            taken = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
            assert taken == sent, f"{task.name} hears {topic!r} from {path}"


def test_every_beat_entry_names_a_registered_task_without_arguments() -> None:
    celery_app.loader.import_default_modules()
    schedule = celery_app.conf.beat_schedule
    assert len(schedule) >= 8
    for name, entry in schedule.items():
        task = current_app.tasks.get(entry["task"])
        assert task is not None, f"{name}: no task is called {entry['task']}"
        assert task.run.__code__.co_argcount == 0
        assert task.run.__code__.co_kwonlyargcount == 0


def test_every_task_acknowledges_late_and_survives_the_loss_of_its_worker() -> None:
    assert celery_app.conf.task_acks_late is True
    assert celery_app.conf.task_reject_on_worker_lost is True
    assert celery_app.conf.task_ignore_result is True


def test_only_the_service_of_an_entity_writes_its_state() -> None:
    """A state that is written past ``state_transitions.apply_transition`` has no row in the history."""
    for folder in ("jobs", "quotas", "serving"):
        for path, tree in sources(ROOT / "apps" / folder):
            for node in ast.walk(tree):
                assigned = node.targets if isinstance(node, ast.Assign) else []
                names = {target.attr for target in assigned if isinstance(target, ast.Attribute)}
                assert "state" not in names, f"{path}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "update":
                    keywords = {keyword.arg for keyword in node.keywords}
                    assert "state" not in keywords, f"{path}:{node.lineno}"


def test_the_domain_reads_no_clock() -> None:
    for path, tree in sources(ROOT / "platform" / "controlplane" / "domain"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"now", "utcnow", "today", "monotonic"}, (
                    f"{path}:{node.lineno} reads a clock; take the time as an argument"
                )
