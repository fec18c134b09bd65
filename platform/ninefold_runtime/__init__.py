"""What runs on the cards: fine-tune, evaluate, serve, script.

``python -m ninefold_runtime TASK --spec FILE`` reads one spec, does the task and ends with one of the
exit codes of ``exits``. It imports neither the control plane nor a web framework of it: it knows the
world by these variables and folders alone.

====================================== ==================================================================
``NINEFOLD_WORK``                      the working folder: ``spec.json``, ``checkpoints/``, ``outputs/``
``NINEFOLD_INPUTS``                    read-only trees by name: ``model/``, ``dataset/``, ``code/``
``NINEFOLD_DEVICE``                    the kind of device that was given, as torch names it; absent: any
``NINEFOLD_REPORT_URL``                where progress, files and the manifest go; absent: to nowhere
``NINEFOLD_CHECKPOINT_UPLOAD_SECONDS`` the least time from one upload of a checkpoint to the next; absent: none
``NINEFOLD_ATTEMPT_TOKEN``             the bearer token for that address
``NINEFOLD_ENGINE_KEY``                the bearer token that ``serve`` demands of its callers
``NINEFOLD_DRAIN_SECONDS``             how long open requests of ``serve`` may take to end after SIGTERM
``NINEFOLD_LISTEN``                    the address on which ``serve`` answers; absent: loopback
====================================== ==================================================================
"""
