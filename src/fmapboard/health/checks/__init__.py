"""The built-in checks, a file per subject.

Each is called with the record of one model::

    DeadCheck(share=0.8)(record)  # -> its findings
"""
