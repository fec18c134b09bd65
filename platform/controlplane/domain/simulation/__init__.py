"""A cluster that is only thought of: which nodes it has, and what goes on in it at any instant.

::

    descriptions   a few lines of text ─▶ nodes with cards, rings, NUMA nodes and places in the network
    courses        the seed of a Launch ─▶ how long it prepares and runs, and how it ends
    paces          the seconds of work done by an instant, and the instant when so many are done
    lives          a record, what broke, and an instant ─▶ what each replica is doing then
    curves         what its processes report and print by then

Nothing here remembers anything. What is kept of a Launch is what it was asked and when; everything else follows
from that and from the instant of the question. So whoever asks, in whichever process, is told the same.
"""
