"""Jobs: their state machines, retry policies, and the parallel plans of their cards.

::

    lifecycle    states and events of jobs and attempts
    retries      which failures start a job again, and with which spec
    parallelism  how the cards of a workload share one model
"""
