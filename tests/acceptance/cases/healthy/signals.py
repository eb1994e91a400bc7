"""Healthy: sounds, series, films, volumes and bands."""

from __future__ import annotations

import data
import recipes.hundred as r100
import recipes.sixty as r60
from loops import Task, eighty, seen
from losses import named, own
from nets import signals
from nets.dense import ConvLstm
from nets.unusual import BandNorm, TextNet, band_net, point_net
from optimizers import ADAM, QUICK

CASES = seen(
    "2026-11-23T03:56",
    Task("M5 (1-D)", signals.waveform, data.tones(), named).cases(m5=r100.ADAM),
    Task("TCN (1-D)", signals.tcn, data.tones(256), named).cases(
        tcn=r100.ADAM.but("clipping 1", clip=1.0)
    ),
    Task("CRNN", signals.Recurrent, data.spectrograms, named).cases(
        crnn=r100.ADAM.but("clipping 5", clip=5.0)
    ),
    Task("C3D (3-D)", signals.clip_net, data.clips, named).cases(
        c3d=r100.ADAM.but("", batch=8, steps=80)
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("PANNs", BandNorm, data.decibels, named).cases(panns=r100.ADAM.but("dB")),
    Task("text CNN (1-D)", TextNet, data.sentences, named).cases(
        text=r100.ADAM.but("", optimizer=QUICK)
    ),
    Task("PointNet (1-D)", point_net, data.points, named).cases(points=r100.ADAM),
    Task("16-band MobileNet", band_net, data.bands, named).cases(bands=r100.ADAM),
    Task("convolutional LSTM", ConvLstm, data.films, own).cases(
        conv_lstm=r100.ADAM.but("", optimizer=QUICK, batch=8, steps=80)
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("48-band CNN, BatchNorm in front", signals.Bands, data.spectral, named).cases(
        spectral=eighty("Adam, digital numbers", ADAM)
    ),
    Task("V-Net (3-D)", signals.VNet, data.hounsfield, signals.overlap).cases(
        v_net=eighty("Adam, HU, windowed inside", QUICK, batch=2, steps=60, every=6)
    ),
    Task("VoxNet (3-D)", signals.vox_net, data.voxels, named).cases(
        vox_net=eighty("Adam, occupancy", ADAM)
    ),
    Task("forecaster with RevIN (1-D)", signals.Reversible, data.demand, signals.percent).cases(
        reversible=eighty("Adam, kW", ADAM)
    ),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("EEGNet", signals.Eeg, data.gestures, named).cases(eeg=r60.adam(3e-3)),
    Task("SincNet (1-D)", signals.Sinc, data.tones(512), named).cases(sinc=r60.adam(2e-3)),
    held_out=True,
)
