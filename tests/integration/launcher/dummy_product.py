"""A product with the real servers, database and broker, but next to nothing in its applications.

It stands in for the real one where the launcher is tested: it starts in seconds and can be told to
fail. ``manage.py`` notes what it was asked to do in ``calls``.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

_FILES = {
    "requirements.lock": "",
    "manage.py": """
        import os, pathlib, sys
        import psycopg
        psycopg.connect(os.environ["NINEFOLD_DATABASE_URL"]).close()
        with pathlib.Path("calls").open("a") as calls:
            calls.write(" ".join(sys.argv[1:]) + "\\n")
        if pathlib.Path("broken").exists():
            sys.exit("relation is missing")
        """,
    "config/__init__.py": "",
    "config/web_server.py": """
        import os
        from wsgiref.simple_server import make_server
        def application(environ, start_response):
            found = environ["PATH_INFO"] == "/readyz"
            start_response("200 OK" if found else "404 Not Found", [])
            return [b""]
        host, port = os.environ["NINEFOLD_BIND"], int(os.environ["NINEFOLD_WEB_PORT"])
        make_server(host, port, application).serve_forever()
        """,
    "config/celery.py": """
        import os
        from celery import Celery
        folder = os.environ["NINEFOLD_HOME"] + "/broker"
        app = Celery("config.celery", broker="filesystem://")
        app.conf.broker_transport_options = {
            "data_folder_in": folder, "data_folder_out": folder, "control_folder": folder + "/control"
        }
        app.conf.beat_schedule = {
            "tick": {"task": "config.celery.tick", "schedule": 0.5, "options": {"queue": "beat"}}
        }
        app.conf.broker_connection_retry_on_startup = True
        @app.task(ignore_result=True)
        def tick():
            pass
        """,
    "gateway/__init__.py": "",
    "gateway/__main__.py": """
        import os
        import signal
        import sys
        import uvicorn
        async def app(scope, receive, send):
            if scope["type"] == "lifespan":
                await receive()
                await send({"type": "lifespan.startup.complete"})
                await receive()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        host, port = os.environ["NINEFOLD_BIND"], int(os.environ["NINEFOLD_GATEWAY_PORT"])
        uvicorn.run(app, host=host, port=port, access_log=False)
        """,
}


def lay_out(folder: Path) -> Path:
    """Write the dummy below ``folder``; its root."""
    root = folder / "project"
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip())
    return root
