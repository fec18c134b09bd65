"""The serving process: load, listen, drain."""

from __future__ import annotations

import os
import signal

import uvicorn

from ninefold_runtime import models
from ninefold_runtime.exits import BadInput
from ninefold_runtime.serving.app import EngineApp
from ninefold_runtime.serving.generator import TransformersGenerator
from ninefold_runtime.specs import ServeSpec
from ninefold_runtime.task_folders import TaskFolders

#: How long requests in progress may take to end after a stop request.
_DRAIN_SECONDS = 25


def serve(*, spec: ServeSpec, folders: TaskFolders, host: str, port: int) -> None:
    """Serve until SIGTERM, then let the requests in progress end.

    :raises BadInput: if there is no key, or the model cannot be loaded.
    """
    key = os.environ.pop("NINEFOLD_ENGINE_KEY", "")
    if not key:
        raise BadInput(
            "the variable NINEFOLD_ENGINE_KEY is not set; nothing is served without a key"
        )
    source = folders.model()
    print(f"loading {spec.model_name}", flush=True)
    tokenizer = models.load_tokenizer(source)
    model = models.load_model(source, precision=spec.precision).eval()
    context_length = models.context_length(source)
    generator = TransformersGenerator(
        model=model,
        tokenizer=tokenizer,
        context_length=context_length,
        queue_size=spec.queue_size,
    )
    app = EngineApp(generator=generator, model_name=spec.model_name, key=key)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    print(
        f"{model.config.architectures[0]} with {model.num_parameters():,} parameters on "
        f"{models.current_device()}, {context_length} positions, listening on {host}:{port}",
        flush=True,
    )
    # uvicorn raises the signal again once it has drained; the process then ends by itself.
    signal.signal(signal.SIGTERM, lambda *_: None)
    uvicorn.Server(config).run()
    print("drained", flush=True)
