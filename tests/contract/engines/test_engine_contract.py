"""What every engine must keep, whatever it runs: one suite over all that are installed, on every chip."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from packaging.specifiers import SpecifierSet

from controlplane.domain.common.spec_fields import FieldKind, FieldLimit, SpecField, default_at_path
from controlplane.ports.adapter_registry import (
    all_chips,
    chip_plugins,
    engine_by_name,
    plugin_of_chip,
)
from controlplane.ports.engines import (
    ROLES,
    ArgumentVerification,
    Engine,
    EngineTask,
    RenderRequest,
)
from controlplane.ports.launches import Launch
from tests.cases import for_each_case
from tests.contract.engines.cases import (
    SPECS,
    TABLES,
    TOKEN,
    checked,
    doings,
    engines,
    everywhere,
    request_of,
    where_it_runs,
)

FIVE_NAMES = frozenset({"NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT"})
_PLACEHOLDER = re.compile(r"\{(work|inputs|python|index|leader|port:[a-z0-9-]{1,63})\}")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "/bin/sh", "/bin/bash"})


def texts(launch: Launch) -> Iterator[str]:
    """Every text of the Launch that is shown, logged or written."""
    for role in launch.roles:
        yield from role.argv
        yield from role.environment.values()
    yield from launch.files.values()
    yield launch.image
    yield from launch.labels.values()


@for_each_case("name", engines())
def test_it_keeps_the_port_and_its_name(name: str) -> None:
    found: Engine = engine_by_name(name)
    assert isinstance(found, Engine)
    assert found.name == name
    assert found.tasks


@for_each_case("name", engines())
def test_its_profile_says_what_is_true(name: str) -> None:
    profile = engine_by_name(name).profile()
    assert profile.title
    if profile.versions:
        assert profile.default_version in SpecifierSet(profile.versions)
    for key, image in profile.images.items():
        assert key in all_chips() or key in chip_plugins(), f"{key} is no chip and no vendor"
        assert ":" in image.rsplit("/", 1)[-1], f"{image} names no tag"
    if profile.images:
        assert profile.sources, "where its images and arguments were read"
    if profile.progress:
        assert not PurePosixPath(profile.progress.path).is_absolute()
        assert {"step", "loss"} <= set(profile.progress.keys)


@for_each_case("name", engines())
def test_what_comes_as_an_image_has_a_range_of_versions(name: str) -> None:
    """An engine of this product brings its environment instead."""
    found = engine_by_name(name)
    if found.profile().flags is ArgumentVerification.RUN:
        assert found.environment() is not None
    assert bool(found.profile().images) <= bool(found.profile().versions)


@for_each_case(("name", "task"), doings())
def test_its_fields_are_those_of_the_product(name: str, task: EngineTask) -> None:
    fields = engine_by_name(name).fields(task)
    assert fields
    assert [field for field in fields if field not in TABLES[task]] == []


@for_each_case(("name", "task"), doings())
def test_a_complete_spec_stays_as_it_is(name: str, task: EngineTask) -> None:
    once = engine_by_name(name).normalise(task, SPECS[task])
    assert engine_by_name(name).normalise(task, once) == once
    assert json.loads(json.dumps(once)) == once


@for_each_case(("name", "task"), doings())
def test_an_unknown_field_is_refused_by_its_name(name: str, task: EngineTask) -> None:
    wrong = checked(engine_by_name(name), task, {**SPECS[task], "no_such_field": 1}, chip=None)
    assert "no_such_field" in wrong["no_such_field"]


@for_each_case(("name", "task"), doings())
@for_each_case("asked", ["99.0", "latest", "0.1; rm -rf /", ""])
def test_a_version_that_it_does_not_know_is_refused_with_what_would_be_right(
    name: str, task: EngineTask, asked: str
) -> None:
    found = engine_by_name(name)
    if not any(field.name == "engine_version" for field in found.fields(task)):
        wrong = checked(found, task, {**SPECS[task], "engine_version": asked}, chip=None)
        assert "unknown field" in wrong["engine_version"]
        return
    wrong = checked(found, task, {**SPECS[task], "engine_version": asked}, chip=None)
    assert repr(asked) in wrong["engine_version"]
    assert asked == "" or found.profile().versions in wrong["engine_version"]


@for_each_case(("name", "task", "chip"), everywhere())
def test_where_it_does_not_run_it_says_why(name: str, task: EngineTask, chip: str) -> None:
    reason = engine_by_name(name).unsupported_reason(task, all_chips()[chip])
    assert not reason or (" " in reason and not reason.endswith("."))


@for_each_case(("name", "task", "chip"), everywhere())
def test_every_limit_names_a_choice_that_exists_and_is_kept(
    name: str, task: EngineTask, chip: str
) -> None:
    found = engine_by_name(name)
    if found.unsupported_reason(task, all_chips()[chip]):
        return
    for limit in found.limits(task, chip=all_chips()[chip], model=None):
        field = field_at(found.fields(task), limit.field)
        assert limit.reason
        assert not limit.reason.endswith(".")
        for value in limit.values or (
            another(field, default_at_path(found.fields(task), limit.field)),
        ):
            if field.choices:
                assert value in field.choices, f"{limit.field} has no choice {value!r}"
            spec = asking(
                limit, value=[value] if field.kind is FieldKind.CHOICES else value, task=task
            )
            wrong = checked(found, task, spec, chip=all_chips()[chip])
            assert repr(value) in wrong[limit.field]


@for_each_case(("name", "task", "chip"), where_it_runs())
def test_what_it_renders_can_be_run_by_any_cluster(name: str, task: EngineTask, chip: str) -> None:
    found, request = engine_by_name(name), request_of(task, chip)
    launch = found.render(request)
    assert launch == found.render(request), "the same request gives the same Launch"
    assert (launch.name, launch.labels) == ("attempt-1", {"team": "vision"})
    assert [role.name for role in launch.roles] == [ROLES[task]]
    assert launch.inputs == request.inputs
    assert launch.engine is not None or launch.image
    for path in launch.files:
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in PurePosixPath(path).parts
    [role] = launch.roles
    assert role.argv
    assert role.argv[0] not in _SHELLS
    assert all(isinstance(value, str) for value in (*role.argv, *role.environment.values()))
    assert (role.probe is not None) == (task is EngineTask.SERVE)
    named = {match[1] for text in texts(launch) for match in _PLACEHOLDER.finditer(text)}
    ports = {f"port:{port}" for port in role.ports}
    assert {each for each in named if each.startswith("port:")} <= ports
    assert "{version}" not in launch.image


@for_each_case(("name", "task", "chip"), where_it_runs())
def test_the_secret_is_given_apart(name: str, task: EngineTask, chip: str) -> None:
    launch = engine_by_name(name).render(request_of(task, chip))
    assert TOKEN in launch.secrets.values()
    assert [text for text in texts(launch) if TOKEN in text] == []


@for_each_case(("name", "task", "chip"), where_it_runs())
def test_the_process_is_kept_to_its_cards(name: str, task: EngineTask, chip: str) -> None:
    launch = engine_by_name(name).render(request_of(task, chip))
    asked = plugin_of_chip(all_chips()[chip]).environment(all_chips()[chip], cards=(0,))
    assert dict(launch.roles[0].environment).items() >= dict(asked).items()


@for_each_case(("name", "task", "chip"), where_it_runs())
def test_processes_that_span_nodes_know_of_each_other(
    name: str, task: EngineTask, chip: str
) -> None:
    """An engine that stays on one node says so instead."""
    launch, refusal = outcome(name, request_of(task, chip, nodes=2))
    if launch is None:
        assert "one" in refusal or "2" in refusal
    else:
        written = "\n".join(texts(launch))
        assert set(launch.roles[0].environment) >= FIVE_NAMES or "{leader}" in written


def outcome(name: str, request: RenderRequest) -> tuple[Launch | None, str]:
    """The Launch, or the words of the refusal."""
    try:
        return engine_by_name(name).render(request), ""
    except ValueError as refusal:
        return None, str(refusal)


def field_at(fields: tuple[SpecField, ...], path: str) -> SpecField:
    """The field that a limit is about.

    :raises StopIteration: if there is none.
    """
    first, _, rest = path.partition(".")
    field = next(each for each in fields if each.name == first)
    return field_at(field.fields, rest) if rest else field


def another(field: SpecField, default: Any) -> Any:
    """A value of the field that asks for something: neither its default nor the least."""
    if field.choices:
        return next(choice for choice in field.choices if choice != default)
    if field.kind is FieldKind.TEXT:
        return "1.2.3"
    least = field.least or 0
    step = 0.25 if field.kind is FieldKind.NUMBER else 1
    value = least + step if least + step != default else least + 2 * step
    return value if field.kind is FieldKind.NUMBER else int(value)


def asking(limit: FieldLimit, *, value: Any, task: EngineTask) -> dict[str, Any]:
    """The least spec, and the value that is out of reach."""
    first, _, rest = limit.field.partition(".")
    return {**SPECS[task], first: {rest: value} if rest else value}
