"""One spec for every chip: the fields of each task, engine-neutral.

::

    training    fine-tunes: objective × method, hyper-parameters, parallel plan
    evaluating  measuring a model on a dataset
    quantizing  scheme, calibration, tolerance
    serving     precision, context, memory, parallel plan
    scripts     a command
"""
