"""The tab's data routes: one function each, from a validated query to an answer.

Each is called with a `data_source.Reader` and an `http.Query`::

    maps(reader, query)        # answers data/maps?run=…&key=…&step=…
"""
