"""Import and export of the queue tree as YAML.

Uploaded files are untrusted: the loader creates plain values only, limits size and depth, and rejects anchors.
"""

from __future__ import annotations

from typing import Any

import yaml

from apps.quotas.models import Queue
from apps.quotas.selectors.queue_trees import queue_tree_documents
from controlplane.domain.common.reasons import Parameter
from controlplane.domain.common.spec_fields import field_finding
from controlplane.domain.quotas.queue_documents import TreeAction, TreeEdit, queue_tree_fingerprint
from controlplane.domain.quotas.queue_files import (
    InvalidQueueFile,
    dump_queue_file,
    parse_queue_file,
    with_pruned_queues,
)

#: Maximum size in bytes; a tree of two thousand queues takes about half.
MAX_FILE_BYTES = 512 * 1024
#: Maximum nesting; each level of the tree takes two.
_MAX_DEPTH = 40


def queue_tree_export(*, of: Queue | None = None) -> str:
    """The tree as YAML, or one queue and those below it."""
    return dump_yaml(dump_queue_file(queue_tree_documents(), of=of.uid if of else ""))


def dump_yaml(file: dict[str, Any]) -> str:
    """Plain values of a tree as YAML, with the quota of each chip on one line."""
    for queue in file["queues"].values():
        _flow_amounts(queue)
    return yaml.dump(
        file, Dumper=_QueueTreeYamlDumper, sort_keys=False, allow_unicode=True, width=100
    )


def tree_edit_from_yaml(text: str, *, prune: bool = False, note: str = "") -> TreeEdit:
    """The edit that makes the tree what the YAML says.

    :raises InvalidQueueFile: with every error and its position.
    """
    return tree_edit_from_content(load_yaml(text), prune=prune, note=note)


def tree_edit_from_content(
    content: Any, *, prune: bool = False, note: str = "", seen: str = ""
) -> TreeEdit:
    """The edit that makes the tree what plain values say; see ``controlplane.domain.quotas.queue_files``.

    :param prune: retire queues that are missing in it, in the part of the tree that it describes.
    :param seen: fingerprint of the tree that the user saw; empty for the current tree.
    :raises InvalidQueueFile: with every error and its position.
    """
    documents = queue_tree_documents()
    file = parse_queue_file(content, documents)
    queues = with_pruned_queues(file) if prune else file.queues
    return TreeEdit(
        queues=dict(queues),
        action=TreeAction.IMPORT,
        note=note,
        seen=seen or queue_tree_fingerprint(documents),
    )


class _FlowStyleMapping(dict[str, int]):
    """A mapping in flow style, on one line."""


class _QueueTreeYamlDumper(yaml.SafeDumper):
    """Dumps ``_Flow`` in flow style."""


_QueueTreeYamlDumper.add_representer(
    _FlowStyleMapping,
    lambda dumper, amounts: dumper.represent_mapping(
        "tag:yaml.org,2002:map", amounts, flow_style=True
    ),
)


def _flow_amounts(queue: dict[str, Any]) -> None:
    for chip, amounts in queue.get("cards", {}).items():
        queue["cards"][chip] = _FlowStyleMapping(amounts)
    for below in queue.get("below", {}).values():
        _flow_amounts(below)


def load_yaml(text: str) -> Any:
    """Parse YAML to plain values.

    :raises InvalidQueueFile: if it is not YAML, too large, too deep, or has anchors.
    """
    size = len(text.encode("utf-8", errors="replace"))
    if size > MAX_FILE_BYTES:
        raise _invalid_queue_file_error(
            "queue.file.too_large",
            "the file has {size} bytes; the limit is {limit} bytes",
            size=size,
            limit=MAX_FILE_BYTES,
        )
    try:
        _check_events(text)
        loader = yaml.CSafeLoader(text)
        node = loader.get_single_node()
        _check_keys(node)
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = _line_number(error.problem_mark or error.context_mark)
        raise _invalid_queue_file_error(
            "queue.file.invalid_yaml_line",
            "line {line} is not valid YAML: {error}",
            line=line,
            error=error.problem or error.context,
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidQueueFile):
            raise
        raise _invalid_queue_file_error(
            "queue.file.invalid_yaml", "the file is not valid YAML: {error}", error=str(error)
        ) from error


def _check_events(text: str) -> None:
    """Check depth and anchors without building values.

    :raises InvalidQueueFile: at the first anchor, or where it is too deep.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            line = _line_number(event.start_mark)
            raise _invalid_queue_file_error(
                "queue.file.yaml_anchor",
                "line {line} has a YAML anchor or alias; write the value out instead",
                line=line,
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            line = _line_number(event.start_mark)
            raise _invalid_queue_file_error(
                "queue.file.nested_too_deeply",
                "line {line} is nested more than {limit} levels deep; use at most {limit} levels",
                line=line,
                limit=_MAX_DEPTH,
            )


def _check_keys(node: yaml.Node | None) -> None:
    """:raises InvalidQueueFile: if a mapping has a key twice, of which only the last would count."""
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _check_keys(each)
    if not isinstance(node, yaml.MappingNode):
        return
    seen = set()
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else id(key)
        if name in seen:
            line = _line_number(key.start_mark)
            raise _invalid_queue_file_error(
                "queue.file.duplicate_key",
                "line {line}: duplicate key {key}; write it once",
                line=line,
                key=key.value,
            )
        seen.add(name)
        _check_keys(value)


def _line_number(mark: Any) -> int:
    """Line number from 1; 1 if the parser does not report it."""
    return mark.line + 1 if mark else 1


def _invalid_queue_file_error(code: str, template: str, /, **params: Parameter) -> InvalidQueueFile:
    return InvalidQueueFile(field_finding("", code, template, **params))
