"""The health of the fleet: what is seen, what is decided, and what holds a decision back.

``signals`` are what anybody tells of; ``rules`` make more of them out of figures, ``crashes`` out of logs.
``situations`` has the words for what is known, ``decisions`` says what to do about it: ``wants`` are what faults
ask for by their ``grades``, ``silences`` and ``suspicions`` add to them, ``guards`` hold them back. ``isolations``
are the way back.
"""
