"""Figures that nodes send by themselves, and the sources that are read.

What an agent sends, ``POST /api/v1/telemetry/push``::

    Authorization: Bearer nft-…            the node's token; it speaks for that node and for no other
    Content-Type: text/plain               Prometheus' text format 0.0.4, UTF-8
    Content-Encoding: gzip                 optional; what it unpacks to is bounded too
    X-Ninefold-Sequence: 1764000000000     grows with each batch of a node; 1 to 2^63 - 1
    X-Ninefold-At: 2026-03-01T12:00:00Z    when it was measured, RFC 3339 with its zone
    X-Ninefold-Vendor: nvidia              the chip plug-in whose exporter's names the text uses
    X-Ninefold-Agent: ninefold-agent/1.0   optional: what sends, at most 200 characters

    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-…",Hostname="node-1"} 93
    …

The text has the names and labels of the vendor's usual exporter, as ``[exporter]`` of the chip's profile lists
them; other series are passed over. A card is known by ``index_label`` (its place in the node, as the cluster
counts it) or, without one, by its serial number. A ``node_label`` may be left out; where it is there, it must be
the token's node, or that card is refused. The processor's names are ``ninefold_cpu_utilization_percent``,
``ninefold_cpu_memory_used_bytes``, ``ninefold_cpu_memory_total_bytes``, ``ninefold_cpu_temperature_celsius`` and
``ninefold_cpu_clock_hertz``, each with the labels ``card`` and, at will, ``node``. ``ninefold_agent_reader_ok``,
without labels, is 0 where the tool that reads the cards does not answer: a fault of the node.

Timestamps behind samples are passed over: ``X-Ninefold-At`` holds for all. One that is more than a minute ahead
is refused (400); one that is older than the newest figures goes to the history only; one older than a day is
refused (400).

Answers, JSON::

    200 {"sequence": 1764000000000, "taken": true, "readings": 8, "refused": 0, "refusals": []}

``sequence`` is the newest that was taken of this token, and ``taken`` whether that was this batch: a batch that
comes again, or after a newer one, changes nothing and is answered 200 with ``taken`` false. Send what was
buffered oldest first; a sender that has forgotten its last number begins at the time in milliseconds. ``refused``
counts cards and values that were not kept, and ``refusals`` says why, at most 20 of them.

=====  ==================================================================================================
 400   a header is missing or wrong, or the text is not in that format: sending it again changes nothing
 401   no such token, or it was revoked: stop, and ask for another
 403   every card of the batch belongs to another node
 413   more than 4 MiB, or more than 16 MiB unpacked
 415   another Content-Type or Content-Encoding
 429   more than 120 batches a minute; ``Retry-After`` says how long to wait
 5xx   keep the batch and send it later
=====  ==================================================================================================
"""
