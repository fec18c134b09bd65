"""A lively company on simulated clusters, for ``make demo``.

What is made up is what people would do: who works there, what they ask for and when. All that follows from
it is the product's own doing: services take the jobs, the scheduling cycle gives out cards, loops launch and
observe, and the simulated clusters run.
"""
