"""Convert a logged step to TensorBoard's original Summary format, which trackers understand.

Our event files use the newer plugin format (``encoder``). Trackers that intercept summaries as they
are written ignore pictures and histograms in that format.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tensorboard.compat.proto import summary_pb2

from fmapboard.records import Histogram, LoggedStep, Picture, TaggedPictures
from fmapboard.render import png

_GREY, _RGB = 1, 3


def first_format(step: LoggedStep) -> summary_pb2.Summary:
    """Pictures, histograms and scalars; samples after the first have their index in the tag."""
    values = [value for tagged in step.pictures for value in _images(tagged)]
    values += [_histogram(histogram) for histogram in step.histograms if histogram.counts.size]
    with np.errstate(over="ignore"):  # a norm may exceed float32
        values += [
            summary_pb2.Summary.Value(tag=tag, simple_value=np.float32(number))
            for tag, number in step.scalars.items()
        ]
    return summary_pb2.Summary(value=values)


def _images(tagged: TaggedPictures) -> Iterator[summary_pb2.Summary.Value]:
    for number, picture in enumerate(map(_in_rgb, tagged.samples)):
        height, width, *channels = picture.pixels.shape
        image = summary_pb2.Summary.Image(
            height=height,
            width=width,
            colorspace=_RGB if channels else _GREY,
            encoded_image_string=png.encode(picture),
        )
        yield summary_pb2.Summary.Value(
            tag=f"{tagged.tag}/sample_{number}" if number else tagged.tag, image=image
        )


def _in_rgb(picture: Picture) -> Picture:
    """Convert a palette-indexed picture to RGB: ClearML would show the indices."""
    if picture.palette is None:
        return picture
    return Picture(picture.palette[picture.pixels], tile=picture.tile)


def _histogram(histogram: Histogram) -> summary_pb2.Summary.Value:
    """Sums are approximated from the centers of the buckets."""
    edges, counts = histogram.edges, histogram.counts
    centers = (edges[:-1] + edges[1:]) / 2
    histo = summary_pb2.HistogramProto(
        min=edges[0],
        max=edges[-1],
        num=counts.sum(),
        sum=centers @ counts,
        sum_squares=centers**2 @ counts,
        bucket_limit=edges[1:],
        bucket=counts,
    )
    return summary_pb2.Summary.Value(tag=histogram.tag, histo=histo)
