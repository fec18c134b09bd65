"""Serving one model behind OpenAI's interface: a small ASGI application over transformers' ``generate``.

::

    server           loads the model, generates in one thread, drains on SIGTERM    torch
    app              routes, key, streams, disconnects, metrics                     asyncio
    requests         parsing of requests, errors that name the field                pure
    text_generation  interface between app and generator; tokens to text            pure

One request runs at a time: on one card a second one would only make the first slower, and what is
fair between them is the queue's order.
"""
