"""Validation of a Launch before anything is created, and substitution of its placeholders.

Every cluster adapter calls ``check_launch`` first, so that the same mistake is refused with the same message on
the local machine, in a simulation and on a real cluster. ``fill_placeholders`` replaces ``{work}``,
``{inputs}``, ``{python}``, ``{port:NAME}``, ``{index}`` and ``{leader}`` in a Launch's texts and touches no
other brace.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from controlplane.domain.common.reasons import Reason
from controlplane.ports.clusters import LaunchRefused, ObservedNode
from controlplane.ports.launches import InputArtifact, Launch, LaunchRole

NAME_PATTERN = re.compile(r"[a-z0-9-]{1,63}")
DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")
ENGINE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
PORT_PLACEHOLDER = re.compile(r"\{port:([a-z0-9-]{1,63})\}")


def check_launch_identifier(name: str, *, what: str = "a launch name") -> None:
    """:raises LaunchRefused: if the name could not be a folder or a label."""
    if not NAME_PATTERN.fullmatch(name):
        raise LaunchRefused(
            "launch.name.invalid",
            "{field} must be 1 to 63 of a-z, 0-9 and '-', got {name}",
            field=what,
            name=repr(name),
        )


def check_relative_path(path: str, *, what: str) -> None:
    """:raises LaunchRefused: if the path is not a plain path below its folder."""
    pure = PurePosixPath(path)
    if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts or str(pure) != path:
        raise LaunchRefused(
            "launch.path.not_relative",
            "{field} must be a relative path below its folder, got {path}",
            field=what,
            path=repr(path),
        )


def check_launch(launch: Launch, *, nodes: Iterable[ObservedNode]) -> None:
    """Pass over the whole Launch once.

    :raises LaunchRefused: if it can never run; the message names the value and what would be right.
    """
    check_launch_identifier(launch.name)
    if launch.continues is not None:
        check_launch_identifier(launch.continues, what="the name of the launch to continue")
    if launch.engine is not None and not ENGINE_NAME_PATTERN.fullmatch(launch.engine.name):
        raise LaunchRefused(
            "launch.environment.invalid_name",
            "the name of an engine environment must be letters, digits, '.', '_' and "
            "'-', got {name}",
            name=repr(launch.engine.name),
        )
    names = [role.name for role in launch.roles]
    if not names or len(names) != len(set(names)):
        raise LaunchRefused(
            "launch.roles.invalid",
            "a launch must have roles with distinct names, got {names}",
            names=names,
        )
    for path in launch.files:
        check_relative_path(path, what="a file of the working folder")
    for tree in launch.inputs:
        _check_input_tree(tree)
    cards = {node.name: {card.index for card in node.cards} for node in nodes}
    for role in launch.roles:
        _check_role(role, cards=cards)
    _check_ports_in_files(launch)
    for key in (*launch.secrets, *(key for role in launch.roles for key in role.environment)):
        if not key or "=" in key or "\0" in key:
            raise LaunchRefused(
                "launch.variable.invalid_name",
                "{name} is not a valid name of an environment variable",
                name=repr(key),
            )


def _check_input_tree(tree: InputArtifact) -> None:
    check_relative_path(tree.name, what="an input's name")
    for path, digest in tree.files.items():
        check_relative_path(path, what=f"a file of input {tree.name!r}")
        if not DIGEST_PATTERN.fullmatch(digest):
            raise LaunchRefused(
                "launch.input.invalid_digest",
                "input {input}: the digest of {path} must be sha256:<64 hex>, got {digest}",
                input=repr(tree.name),
                path=repr(path),
                digest=repr(digest),
            )


def _check_role(role: LaunchRole, *, cards: dict[str, set[int]]) -> None:
    check_launch_identifier(role.name, what="a role's name")
    if not role.argv or not role.argv[0]:
        raise LaunchRefused(
            "launch.role.command_missing", "role {role} has no command", role=repr(role.name)
        )
    if not role.placements:
        raise LaunchRefused(
            "launch.role.placement_missing",
            "role {role} has no placement",
            role=repr(role.name),
        )
    for port in role.ports:
        check_launch_identifier(port, what="a port's name")
    if role.probe is not None and role.probe.port not in role.ports:
        raise LaunchRefused(
            "launch.probe.port_not_declared",
            "role {role} has a probe on the port {port}, which is not declared; "
            "declared ports: {ports}",
            role=repr(role.name),
            port=repr(role.probe.port),
            ports=list(role.ports),
        )
    for text in (*role.argv, *role.environment.values()):
        if "\0" in text:
            raise LaunchRefused(
                "launch.role.nul_character",
                "role {role} has a NUL character in its command",
                role=repr(role.name),
            )
        for port in PORT_PLACEHOLDER.findall(text):
            if port not in role.ports:
                raise LaunchRefused(
                    "launch.role.port_not_declared",
                    "role {role} uses the placeholder of the port {port}, which is not "
                    "declared; declared ports: {ports}",
                    role=repr(role.name),
                    port=port,
                    ports=list(role.ports),
                )
    for placement in role.placements:
        if placement.node not in cards:
            raise LaunchRefused(
                "launch.node.not_found",
                "node {node} does not exist in this cluster; its nodes: {nodes}",
                node=repr(placement.node),
                nodes=", ".join(sorted(cards)),
            )
        absent = set(placement.cards) - cards[placement.node]
        if absent:
            raise LaunchRefused(
                "launch.node.cards_not_found",
                "node {node} has no cards {cards}",
                node=repr(placement.node),
                cards=", ".join(map(str, sorted(absent))),
            )


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
                    "launch.file.ambiguous_port",
                    "file {file} uses the placeholder of the port {port}, which must belong "
                    "to exactly one replica, but the number of its replicas is {replicas}; "
                    "pass the port in argv instead",
                    file=repr(path),
                    port=port,
                    replicas=replicas.get(port, 0),
                )


RUNTIME_PACKAGE = "ninefold_runtime"


def runtime_source() -> Path:
    """The folder of the runtime package.

    :raises FileNotFoundError: if it is not installed beside the control plane.
    """
    spec = importlib.util.find_spec(RUNTIME_PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            Reason(
                "launch.environment.package_missing",
                "the package {package} is not installed with the control plane",
                package=RUNTIME_PACKAGE,
            )
        )
    return Path(spec.origin).parent


_PLACEHOLDER = re.compile(r"\{(work|inputs|python|index|leader|port:[a-z0-9-]{1,63})\}")


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """The text with each known placeholder replaced; keys are ``work``, ``port:http`` and so on.

    One pass: what a value contains is never read as a placeholder again.
    """
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
