"""A sample company on simulated clusters, for ``make demo``.

Only the input of users is generated: who works there, which jobs they submit and when. Everything else is
done by the product itself: services accept the jobs, the scheduling cycle allocates cards, controllers
launch and observe, and the simulated clusters run them.
"""
