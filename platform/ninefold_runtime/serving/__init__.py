"""Serving one model behind OpenAI's interface: a small ASGI application over transformers' ``generate``.

::

    server      loads the model, runs uvicorn, drains on SIGTERM
    app         routes, key, streams, clients that leave              asyncio
    requests    what a request asks for, or which field is wrong      pure
    generator   one thread that generates, one bounded queue          torch
    texts       tokens to text, stop strings, at any boundary         pure
    metrics     counters in Prometheus' text form                     pure

One request runs at a time: on one card a second one would only make the first slower, and what is
fair between them is the queue's order.
"""
