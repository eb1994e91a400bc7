"""What is stored in a run, shared by the code that writes it and the code that reads it.

``tags`` names the series, ``tab_records`` packs a JSON header and arrays into blobs, ``overview``
has the numbers of all layers per logged step, ``training_facts`` what only the training process
knows, ``checks`` what the checks found, and ``framing`` how event files are framed. All records
have the version `tab_records.FORMAT`, and a reader refuses a higher one::

    blobs = pack({"step": 3}, {"values": array})
    header, arrays = unpack(blobs)
"""
