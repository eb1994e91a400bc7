"""Transposed convolutions that draw checkerboards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class UnevenUpsamplingCheck(Rule):
    """A transposed convolution whose kernel's size is no multiple of its stride.

    Source: Odena et al., 2016, https://distill.pub/2016/deconv-checkerboard/

    Why it hurts: neighbouring outputs add up different numbers of inputs, which draws a
    checkerboard.

    Silent: if the kernel is as large as the stride, or a multiple of it.

    Example: ``nn.ConvTranspose2d(64, 32, kernel_size=3, stride=2)``.
    """

    kind: ClassVar[str] = "uneven_upsampling"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        for row in evidence.weighted_layers:
            kernel = (row.facts.kernel_shape or ())[2:]
            stride = row.facts.transposed_stride or ()
            if len(kernel) != len(stride):
                continue
            uneven = [size / step for size, step in zip(kernel, stride, strict=True) if size % step]
            if not uneven:
                continue
            sides = "×".join(map(str, kernel))
            steps = "×".join(map(str, stride))
            yield Finding(
                message=f"the kernel of `{row.facts.layer}` ({row.facts.type}), {sides}, is "
                f"no multiple of its stride, {steps}",
                layer=row.facts.layer,
                value=uneven[0],
                healthy="a multiple of the stride, such as 4 with stride 2",
                meaning="Neighbouring outputs add up different numbers of inputs: a checkerboard",
                advice="Use a kernel that is a multiple of the stride, or upsample and convolve",
                picture=evidence.record.picture(row),
            )
