"""Engine-neutral specs: the fields of each task, equal for every engine and chip.

::

    training    fine-tunes: objective × method, hyperparameters, parallel plan
    evaluation  metrics of a model on a dataset; quantization: scheme, calibration, tolerance;
                a script: a command
    serving     precision, context, memory, parallel plan
    sizing      inputs of the sizing calculator
"""
