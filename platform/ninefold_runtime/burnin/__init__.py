"""Burn-in test of cards that were isolated: it must pass before they return to service.

::

    matrix       products, timed and compared: the rate of the data sheet, the right numbers, every time
    memory       0x55…, 0xAA…, a walking one, random: a share of the memory is written in full, then read back
    collective   all-reduce over the cards of this Launch: bandwidth, and the right sums; skipped for one card

``python -m ninefold_runtime.burnin SPEC`` runs one process a card and ends with 0 only if every test passed.
What was measured goes to ``result/burnin.json`` in the working folder, into the log as one line after
``RESULT``, and to the report URL. See ``docs/agent.md``.
"""
