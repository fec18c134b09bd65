"""Validation of a Launch before anything is created, and substitution of its placeholders.

Every cluster adapter calls ``check_launch`` first, so that the same mistake is refused with the same message on
the local machine, in a simulation and on a real cluster. ``fill_placeholders`` replaces ``{work}``,
``{inputs}``, ``{python}``, ``{port:NAME}``, ``{index}`` and ``{leader}`` in a Launch's texts and touches no
other brace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from controlplane.ports.clusters import LaunchRefused, ObservedNode
from controlplane.ports.launches import InputTree, Launch, LaunchRole

NAME_PATTERN = re.compile(r"[a-z0-9-]{1,63}")
DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
ENGINE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
PORT_PLACEHOLDER = re.compile(r"\{port:([a-z0-9-]{1,63})\}")


def check_name(name: str, *, what: str = "a launch name") -> None:
    """:raises LaunchRefused: if the name could not be a folder or a label."""
    if not NAME_PATTERN.fullmatch(name):
        raise LaunchRefused(f"{what} is 1 to 63 of a-z, 0-9 and '-', got {name!r}")


def check_relative_path(path: str, *, what: str) -> None:
    """:raises LaunchRefused: if the path is not a plain path below its folder."""
    pure = PurePosixPath(path)
    if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts or str(pure) != path:
        raise LaunchRefused(
            f"{what} must be a relative path that stays in its folder, got {path!r}"
        )


def check_launch(launch: Launch, *, nodes: Iterable[ObservedNode]) -> None:
    """Pass over the whole Launch once.

    :raises LaunchRefused: if it can never run; the message names the value and what would be right.
    """
    check_name(launch.name)
    if launch.continues is not None:
        check_name(launch.continues, what="the name of the launch to continue")
    if launch.engine is not None and not ENGINE_NAME_PATTERN.fullmatch(launch.engine.name):
        raise LaunchRefused(
            f"an engine environment's name is letters, digits, '.', '_' and '-', "
            f"got {launch.engine.name!r}"
        )
    names = [role.name for role in launch.roles]
    if not names or len(names) != len(set(names)):
        raise LaunchRefused(f"a launch needs roles with distinct names, got {names}")
    for path in launch.files:
        check_relative_path(path, what="a file of the working folder")
    for tree in launch.inputs:
        _check_tree(tree)
    cards = {node.name: {card.index for card in node.cards} for node in nodes}
    for role in launch.roles:
        _check_role(role, cards=cards)
    _check_ports_in_files(launch)
    for key in (*launch.secrets, *(key for role in launch.roles for key in role.environment)):
        if not key or "=" in key or "\0" in key:
            raise LaunchRefused(f"{key!r} cannot be the name of an environment variable")


def _check_tree(tree: InputTree) -> None:
    check_relative_path(tree.name, what="an input's name")
    for path, digest in tree.files.items():
        check_relative_path(path, what=f"a file of input {tree.name!r}")
        if not DIGEST_PATTERN.fullmatch(digest):
            raise LaunchRefused(
                f"input {tree.name!r}: {path!r} needs a digest sha256:<64 hex>, got {digest!r}"
            )


def _check_role(role: LaunchRole, *, cards: dict[str, set[int]]) -> None:
    check_name(role.name, what="a role's name")
    if not role.argv or not role.argv[0]:
        raise LaunchRefused(f"role {role.name!r} has no command")
    if not role.placements:
        raise LaunchRefused(f"role {role.name!r} has no placement, so it would never run")
    for port in role.ports:
        check_name(port, what="a port's name")
    if role.probe is not None and role.probe.port not in role.ports:
        raise LaunchRefused(
            f"role {role.name!r} probes the port {role.probe.port!r} and declares {list(role.ports)}"
        )
    for text in (*role.argv, *role.environment.values()):
        if "\0" in text:
            raise LaunchRefused(f"role {role.name!r} has a NUL character in its command")
        for port in PORT_PLACEHOLDER.findall(text):
            if port not in role.ports:
                raise LaunchRefused(
                    f"role {role.name!r} uses {{port:{port}}} and declares {list(role.ports)}"
                )
    for placement in role.placements:
        if placement.node not in cards:
            raise LaunchRefused(
                f"there is no node {placement.node!r} here; there are: {', '.join(sorted(cards))}"
            )
        absent = set(placement.cards) - cards[placement.node]
        if absent:
            raise LaunchRefused(f"node {placement.node!r} has no cards {sorted(absent)}")


def _check_ports_in_files(launch: Launch) -> None:
    """Files belong to the whole Launch, so a port in one must belong to exactly one replica."""
    replicas = {
        port: sum(len(role.placements) for role in launch.roles if port in role.ports)
        for role in launch.roles
        for port in role.ports
    }
    for path, text in launch.files.items():
        for port in PORT_PLACEHOLDER.findall(text):
            if replicas.get(port, 0) != 1:
                raise LaunchRefused(
                    f"file {path!r} uses {{port:{port}}}, which {replicas.get(port, 0)} replicas "
                    "have; it works in a file for exactly one, so pass it by argv instead"
                )


_PLACEHOLDER = re.compile(r"\{(work|inputs|python|index|leader|port:[a-z0-9-]{1,63})\}")


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """The text with each known placeholder replaced; keys are ``work``, ``port:http`` and so on.

    One pass: what a value contains is never read as a placeholder again.
    """
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
