"""HTTP server parts of the web and the gateway: limits on connections, and WSGI in threads.

A client that sends or reads slowly costs one connection and never a thread: connections are watched
on the event loop (:mod:`http_server.connection_limits`), and a thread is taken only by a request whose
body has arrived (:mod:`http_server.wsgi`).
"""
