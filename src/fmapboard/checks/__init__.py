"""Say in words what is wrong in a logged run: one small object per check, without torch.

A check is called with the record of a run and returns what it found::

    for found in NonfiniteCheck()(record):
        print(found.text)
"""
