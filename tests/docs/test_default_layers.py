"""The page on transformers lists what is watched by default of networks of libraries."""

import default_layers


def test_the_page_lists_the_layers_that_are_watched_by_default():
    assert default_layers.written() == default_layers.table()
