"""The serving process: load the model by its kind, listen, drain."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import uvicorn

from ninefold_runtime import model_loading
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving.app import EngineApp
from ninefold_runtime.serving.metrics import EngineMetrics
from ninefold_runtime.serving.model_kinds import ServedKind, model_kind
from ninefold_runtime.serving.operations import OperationContext, ServedModel
from ninefold_runtime.serving.work_queue import WorkQueue
from ninefold_runtime.specs import ServeSpec
from ninefold_runtime.task_folders import TaskFolders

#: Of a server that was not started by the control plane.
_DRAIN_SECONDS = 115


def serve_model(*, spec: ServeSpec, folders: TaskFolders, host: str, port: int) -> None:
    """Serve until SIGTERM, then let the requests in progress end within ``NINEFOLD_DRAIN_SECONDS``.

    A stream that takes longer ends with an error as its last event.

    :raises InvalidTaskInput: if there is no key, or the model cannot be loaded, is of a kind that is not
        served, or does not answer the warm-up request.
    """
    key = os.environ.pop("NINEFOLD_ENGINE_KEY", "")
    if not key:
        raise InvalidTaskInput(
            "the variable NINEFOLD_ENGINE_KEY is not set; nothing is served without a key"
        )
    folder = folders.input_folder("model")
    kind = model_kind(folder)
    print(f"loading {spec.model_name}, kind: {kind.value}", flush=True)
    if spec.adapters and kind is not ServedKind.TEXT:
        raise InvalidTaskInput(
            f"LoRA adapters are served beside models of the kind text, and this one is {kind.value}"
        )
    context = OperationContext(
        model_name=spec.model_name,
        queue=WorkQueue(size=spec.queue_size),
        metrics=EngineMetrics(),
        adapter_names=tuple(spec.adapters),
    )
    adapters = {name: folders.input_folder(source) for name, source in spec.adapters.items()}
    model = load_model(kind, folder, precision=spec.precision, context=context, adapters=adapters)
    app = EngineApp(model=model, context=context, key=key)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=int(os.environ.get("NINEFOLD_DRAIN_SECONDS") or _DRAIN_SECONDS),
    )
    print(
        f"{model.description} on {model_loading.current_device()}, listening on {host}:{port}",
        flush=True,
    )
    # uvicorn raises the signal again once it has drained; the process then ends by itself.
    signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.Server(config).run()
    if app.warm_up_error:
        raise InvalidTaskInput(app.warm_up_error)
    print("drained", flush=True)


def load_model(
    kind: ServedKind,
    folder: Path,
    *,
    precision: str,
    context: OperationContext,
    adapters: Mapping[str, Path],
) -> ServedModel:
    """The model with its operations. Only the libraries of its kind are imported.

    :param adapters: folders of LoRA adapters by name; for text models only.
    :raises InvalidTaskInput: if it cannot be loaded.
    """
    if kind is ServedKind.TEXT:
        from ninefold_runtime.serving.transformers_generator import load_text_generation

        return load_text_generation(folder, precision=precision, context=context, adapters=adapters)
    if kind is ServedKind.EMBEDDING:
        from ninefold_runtime.serving.embeddings import load_embedding

        return load_embedding(folder, precision=precision, context=context)
    if kind is ServedKind.RERANKER:
        from ninefold_runtime.serving.reranking import load_reranking

        return load_reranking(folder, precision=precision, context=context)
    if kind is ServedKind.TRANSCRIPTION:
        from ninefold_runtime.serving.transcriptions import load_transcription

        return load_transcription(folder, precision=precision, context=context)
    from ninefold_runtime.serving.images import load_image_generation

    return load_image_generation(folder, precision=precision, context=context)
