"""What the plug-ins of this installation render of the catalog, asked model by model.

A source that says an engine supports a model does not say that Ninefold can ask that engine for it. Here each
plug-in's own ``check`` is asked, with the facts that the catalog has of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.domain.catalog import CatalogTask, Entry, Modality
from controlplane.domain.common.accelerators import Chip
from controlplane.ports import registry
from controlplane.ports.engines import Engine, ModelFacts, Task

TASKS: Mapping[CatalogTask, Task] = {
    CatalogTask.TRAIN: Task.FINETUNE,
    CatalogTask.SERVE: Task.SERVE,
    CatalogTask.QUANTIZE: Task.QUANTIZE,
}
#: Kinds of models that engines are asked for: what writes text.
_RENDERED = frozenset({Modality.LLM, Modality.VLM})
#: The field whose every choice is tried before a task counts as refused.
_WAYS: Mapping[Task, str] = {Task.FINETUNE: "method", Task.QUANTIZE: "scheme"}
#: Fields without a default that engines ask for and that no model changes.
_GIVEN: Mapping[Task, Mapping[str, Any]] = {Task.FINETUNE: {"max_steps": 100}}
#: What every ``config.json`` of a language model holds and the catalog does not; some engines ask for it.
_NOT_IN_CATALOG: Mapping[str, Any] = {
    "vocab_size": 32_000,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
}


def installed_engines() -> frozenset[str]:
    """Names of the engines that this installation has plug-ins for."""
    return frozenset(registry.engine_names())


def renders(entry: Entry, *, task: CatalogTask, vendor: str, engine: str) -> bool:
    """Whether this installation renders the task for the model on some chip of the vendor, by that engine."""
    return not refusal(entry, task=task, vendor=vendor, engine=engine)


def refusal(entry: Entry, *, task: CatalogTask, vendor: str, engine: str) -> str:
    """Why it does not, in the words of its check on the first chip that it runs on; empty if it does."""
    if engine not in installed_engines():
        return "no plug-in for it is installed"
    if (plugin := registry.chip_plugins().get(vendor)) is None:
        return "no plug-in for these chips is installed"
    plug_in, asked = registry.engine(engine), TASKS[task]
    if asked not in plug_in.tasks:
        return f"its plug-in does not {asked}"
    if entry.modality not in _RENDERED:
        return "only models that write text are rendered"
    chips = plugin.chips()
    running = [chip for chip in chips if not plug_in.runs_on(asked, chip)]
    if not running:
        return plug_in.runs_on(asked, chips[0]) if chips else "no chip of this vendor is known"
    refused = [_refusal_on(chip, entry, task=asked, engine=plug_in) for chip in running]
    return "" if "" in refused else refused[0]


def _refusal_on(chip: Chip, entry: Entry, *, task: Task, engine: Engine) -> str:
    """The first thing wrong with the defaults; empty if some way of doing it has nothing wrong."""
    model = facts_of(entry)
    found = [engine.check(task, spec, chip=chip, model=model) for spec in _specs(engine, task)]
    return "" if () in found else found[0][0].message


def _specs(engine: Engine, task: Task) -> Iterator[dict[str, Any]]:
    """The least that can be asked: the defaults first, then each further way of doing it."""
    given = dict(_GIVEN.get(task, {}))
    yield given
    for field in engine.fields(task):
        if field.name == _WAYS.get(task):
            yield from ({**given, field.name: way} for way in field.choices)


def facts_of(entry: Entry) -> ModelFacts:
    """What an engine is told of a model that only the catalog knows."""
    config = {
        "num_hidden_layers": entry.layers,
        "hidden_size": entry.hidden,
        "intermediate_size": entry.intermediate,
        "num_attention_heads": entry.heads,
        "num_key_value_heads": entry.kv_heads,
        "head_dim": entry.head_dim,
        "max_position_embeddings": entry.context_length,
    }
    known = {name: value for name, value in config.items() if value is not None}
    return ModelFacts(
        name=entry.title,
        architecture=entry.architecture,
        context_length=entry.context_length or 0,
        parameters=entry.parameters or 0,
        config={**_NOT_IN_CATALOG, **known, "architectures": [entry.architecture]},
    )
