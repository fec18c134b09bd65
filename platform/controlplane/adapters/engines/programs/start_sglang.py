"""Starts SGLang's server with the key that callers must bear.

SGLang takes the key as an argument only, where every process of the node would see it, and prints its arguments.
Here the key comes by the environment and is added inside of the process; its text is kept out of the log.
"""

import logging
import os
import runpy
import sys

KEY = "NINEFOLD_ENGINE_KEY"


def hide_from_logs(secret: str) -> None:
    """Keep the text out of everything that is logged from now on."""
    create_record = logging.getLogRecordFactory()

    def masked(*args: object, **kwargs: object) -> logging.LogRecord:
        record = create_record(*args, **kwargs)
        text = record.getMessage()
        if secret in text:
            record.msg, record.args = text.replace(secret, "[key]"), ()
        return record

    logging.setLogRecordFactory(masked)


def main() -> None:
    key = os.environ.pop(KEY, "")
    if not key:
        sys.exit(f"the variable {KEY} is not set; nothing is served without a key")
    hide_from_logs(key)
    sys.argv = ["sglang.launch_server", *sys.argv[1:], "--api-key", key]
    runpy.run_module("sglang.launch_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
