"""Images that stand twice in each batch."""

from __future__ import annotations

from dataclasses import replace

from loop_facts import LOOP, findings_at

from fmapboard.health.rules import RepeatedImagesCheck


def test_images_that_are_the_same_at_the_same_places_of_each_batch_are_a_note() -> None:
    some = replace(LOOP, identical_images=((0, 1), (2, 3)))
    (found,) = findings_at(RepeatedImagesCheck(), *[some] * 4)
    assert (found.class_, found.value, found.since_step) == ("note", 4, 0)
    assert "4 images of the batch are the same as another one, at the same places" in found.message
    other = replace(LOOP, identical_images=((1, 2),))
    assert findings_at(RepeatedImagesCheck(), *[some] * 3) == []
    assert findings_at(RepeatedImagesCheck(), *[some] * 7, other) == []


def test_a_list_of_equal_images_that_was_cut_gives_a_lower_bound_and_names_intended_pairs() -> None:
    pairs = tuple((5 * n // 4 // 5 * 5, n) for n in range(1, 65) if n % 5)
    cut = replace(LOOP, batch=400, identical_images=pairs, left_out={"identical_images": 256})
    (found,) = findings_at(RepeatedImagesCheck(), *[cut] * 4)
    places = {place for pair in pairs for place in pair}
    assert found.message.startswith(f"at least {len(places)} images of the batch are the same as")
    assert found.meaning.startswith("Intended if the loss compares or averages over copies")
    (found,) = findings_at(RepeatedImagesCheck(), *[replace(cut, left_out={})] * 4)
    assert found.message.startswith(f"{len(places)} images")
