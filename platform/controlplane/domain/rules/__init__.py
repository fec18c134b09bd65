"""What alert rules and health rules have in common: the condition, and the document that describes a rule.

A rule compares values with a threshold, for each object separately, and fires where the comparison has held for
long enough (``conditions``). It is stored as a JSON document (``documents``). ``alerts`` adds measures, matchers
and notifications, ``health`` adds metrics of cards, changes and rates, and the level of the fault.
"""
