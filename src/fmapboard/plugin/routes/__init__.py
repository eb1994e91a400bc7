"""What the tab asks for: one function per question, from a checked query to an answer.

Each is called with a `data_source.Reader` and a `http.Query`::

    maps(reader, query)        # answers data/maps?run=…&key=…&step=…
"""
