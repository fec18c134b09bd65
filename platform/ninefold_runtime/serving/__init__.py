"""Serving one model behind OpenAI's interface: a small ASGI application over the libraries of its kind.

::

    server                loads the model by its kind, listens, drains on SIGTERM          torch
    model_kinds           the kind of a model by its files                                 pure
    app                   routes, key, errors, metrics                                     asyncio
    work_queue            one computing thread behind a bounded queue                      asyncio
    request_fields        parsing of fields, errors that name the field                    pure

    text_operations       chats, completions and responses, whole and streamed             asyncio
      responses           requests and answers of /v1/responses as those of chats          pure
      generation_requests, tool_calls, structured_output: parsing                          pure
      text_generation     interface to the generator; tokens to text                       pure
      transformers_generator, answer_parsing                                               torch

    embeddings, reranking, transcriptions, images                   one operation each; their libraries are
                                                                    imported when such a model is loaded

One request runs at a time: on one card a second one would only make the first slower, and what is
fair between them is the queue's order.
"""
