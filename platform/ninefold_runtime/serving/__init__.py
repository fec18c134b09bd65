"""Serving one model behind OpenAI's interface: a small ASGI application over transformers' ``generate``.

::

    server       loads the model, runs uvicorn, drains on SIGTERM
    app          routes, key, streams, disconnects, metrics            asyncio
    requests     parsing of requests, errors that name the field       pure
    generation   interface between app and generator                   pure
    generator    one thread that generates, one bounded queue          torch
    detokenizer  tokens to text, stop strings, at any boundary         pure
    asgi         bodies, responses, client disconnects                 asyncio

One request runs at a time: on one card a second one would only make the first slower, and what is
fair between them is the queue's order.
"""
