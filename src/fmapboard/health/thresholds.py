"""Every number that a rule compares with: its value, unit, ranges, and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Threshold(Generic[Number]):
    """A number that a rule compares with.

    Attributes:
        value: the number.
        unit: what it counts or measures.
        source: the definition, statistic, paper or measurement that it comes from.
        healthy: values that healthy runs have, in words; "" if it is no limit on a measurement.
        faulty: the same of faulty ones.
    """

    value: Number
    unit: str
    source: str
    healthy: str = ""
    faulty: str = ""


LOGGED_STEPS = Threshold(
    4, "logged steps", "fewer tell no trend; also the steps at the start that are always kept"
)
LASTING = Threshold(
    2, "logged steps at the end of the run", "one may be a validation or the last batch"
)
NEWEST_STEPS = Threshold(28, "logged steps", "the newest ones are kept: a bound on the memory")
LEARNS = Threshold(
    0.8,
    "share of the first loss",
    "noise of batches is a few per cent; trainings of tests/acceptance",
    healthy="0.8 or less at the end",
    faulty="above 0.8 where nothing is learned",
)
STAYS = Threshold(
    0.95,
    "share of the first loss",
    "noise of batches is a few per cent; trainings of tests/acceptance",
    healthy="less at some step",
    faulty="never less",
)

LOSS_SCALE = Threshold(
    2**7,
    "factor of the loss",
    "larger powers of two are that of a GradScaler, which starts at 2^16",
)
SAME_FACTOR = Threshold(
    1e-3, "relative error of a factor of the loss", "rounding of a value read from a gradient"
)
SUM_OF_ROW = Threshold(
    1e-5,
    "distance of the sum of probabilities from 1",
    "rounding in float32; twice that of the output's number format, if it is more",
)
SUMMED = Threshold(
    8, "times the mean over the rows", "a loss is read from eight rows on: their sum is 8 means"
)
UNBOUNDED = Threshold(-1e3, "the loss", "a score that Adam maximized", faulty="-8e6")
OVERWRITTEN = Threshold(
    0.5,
    "change by other code over that of the optimizer's step",
    "trainings of 2026-11-29; an average copied back undoes the step but for its decay",
    healthy="0, or the loss falls",
    faulty="0.75 to 1.0 of averages copied back, weights reset and narrow clamps",
)
RATE_VANISHED = Threshold(
    1e-4,
    "share of the highest learning rate",
    "four divisions by 10, the most that step schedules of published recipes make",
    healthy="1e-4 or more until the last tenth of the run",
    faulty="0 to 1e-6 after a tenth to a half of the run",
)
RATE_VANISHED_FOR = Threshold(
    0.1, "share of the run", "cosine schedules end below 1e-4 for less than a hundredth of it"
)
RATE_ROUNDING = Threshold(0.99, "share of a bound", "four divisions by 10 end at 1e-4 but for it")
RATE_REDUCED = Threshold(
    5e-3,
    "share of the highest learning rate",
    "trainings of tests/acceptance, 2026-11-28",
    healthy="1e-2 or more for most of the run",
    faulty="5e-3 or less for most of the run",
)
RATE_REDUCED_FOR = Threshold(
    0.6, "share of the run", "step schedules of published recipes spend less at the lowest rate"
)
NEVER_CALLED_SPAN = Threshold(
    20, "training steps", "a part that runs at every tenth step, such as a regularizer, has run"
)
NEVER_CALLED_SHARE = Threshold(
    0.06,
    "share of the layers that are trained",
    "spare parts of a library's networks: up to 1 of 17 layers",
    healthy="0 to 0.059",
    faulty="0.06 or more",
)
IMAGE_MAGNITUDE = Threshold(
    30,
    "largest magnitude of the input images",
    "between normalized images and bytes",
    healthy="up to 5",
    faulty="255",
)
IMAGE_SPREAD_HIGH = Threshold(
    5.0,
    "standard deviation of the input images",
    "between normalized images and those divided by a standard deviation in bytes",
    healthy="0.2 to 1.5",
    faulty="11",
)
IMAGE_SPREAD_LOW = Threshold(
    0.03,
    "standard deviation of the input images",
    "between images of low contrast and those scaled twice",
    healthy="0.2 to 1.5",
    faulty="0.001",
)
FIRST_RESPONSE = Threshold(
    2.0,
    "standard deviation of the first layer's output",
    "initializations keep that of the input, which is about 1",
    healthy="up to 2",
    faulty="20 or more",
)
FIRST_OUTPUT = Threshold(
    20.0,
    "largest magnitude of an output of classes at the first logged step",
    "logits of usual initializations stay below 10",
)
BYTES_LOW = Threshold(100, "largest value of the images", "dark images of bytes reach it")
BYTES_HIGH = Threshold(400, "largest value of the images", "255, after a crop with ringing")
BYTES_BELOW_0 = Threshold(
    0.2, "smallest over largest value of the images", "bytes are not negative"
)
INTERLEAVED = Threshold(
    0.6,
    "least over largest of three mean differences of neighbours",
    "trainings of tests/acceptance",
    healthy="near 1",
    faulty="below 0.5",
)
INPUT_LOW = Threshold(
    0.04,
    "magnitude of the inputs, from the first layer's gradients",
    "trainings of tests/acceptance, healthy and spoilt in the scale of their inputs",
    healthy="0.1 to 100",
    faulty="0.03 or less",
)
INPUT_HIGH = Threshold(
    180.0,
    "magnitude of the inputs, from the first layer's gradients",
    "trainings of tests/acceptance, healthy and spoilt in the scale of their inputs",
    healthy="0.1 to 100",
    faulty="200 or more",
)
INPUT_NOISE = Threshold(
    1e5,
    "magnitude of the inputs, from the first layer's gradients",
    "a larger ratio is the rounding noise of a bias whose gradient cancels",
)

OUTPUT_SPREAD = Threshold(
    5e-3,
    "(standard deviation over the images) / (mean magnitude) of the output",
    "trainings of tests/acceptance",
    healthy="0.023 or more",
    faulty="up to 4e-3",
)
OUTPUT_IMAGES = Threshold(4, "images", "of fewer, no spread can be told")
CODE = Threshold(
    0.3,
    "magnitude of mean and log-variance of a code",
    "the prior is a standard normal distribution: 0 and 0",
    healthy="1 or more in some unit",
    faulty="up to 0.2",
)
AVERAGED_STEPS = Threshold(3, "logged steps", "two values may agree by chance")
SAME_TARGET = Threshold(1e-3, "share of the target", "rounding of a value read from a gradient")
SIGMOID_HIGH = Threshold(
    0.5, "largest value of an output", "a sigmoid or softmax reaches half of its range"
)
SIGMOID_LOW = Threshold(0.2, "smallest value of a single unit", "a sigmoid that has learned")
SIGMOID_NEXT_TO_0 = Threshold(
    0.01, "smallest over largest value of a single unit", "a sigmoid that is sure of one class"
)
TANH_END = Threshold(0.9, "magnitude of an output", "a tanh that has learned")
MANY_CLASSES = Threshold(6, "classes", "of fewer, logits may all be positive by chance: 1 in 2^6")
ONE_LABEL_IMAGES = Threshold(64, "labels", "a class of 90 % has 64 in a row once in 850 times")
SORTED_IMAGES = Threshold(8, "labels per batch", "fewer are often the same by chance")
SORTED_SHARE = Threshold(
    0.8,
    "share of the most frequent label in a batch",
    "batches of folders in order",
    healthy="below 0.5",
    faulty="0.9 to 1",
)
SORTED_OVERALL = Threshold(
    0.75, "share in all batches over share in one", "an imbalanced data set has the same in both"
)
MOST_FREQUENT = Threshold(
    0.7, "share of the most frequent label", "above it, to predict it alone is a fair answer"
)
UNUSED_CHANCE = Threshold(1e-3, "probability", "the usual level of a test that is made once a run")
UNUSED_FREQUENCY = Threshold(
    0.2, "share of the mean frequency of a class", "rarer classes are left out of public data sets"
)
INITIAL_LOSS = Threshold(
    2.0,
    "loss over ln(classes)",
    "initial logits with a standard deviation of 1 add about 0.5 to ln(classes)",
    healthy="1 to 1.3",
    faulty="2 or more",
)
TARGETS_AWAY = Threshold(
    20.0,
    "distance of the targets over the largest output",
    "trainings of tests/acceptance",
    healthy="up to 15",
    faulty="20 or more",
)
TARGETS_SPAN = Threshold(20, "training steps", "a network soon gets to targets like ages")

LARGE = Threshold(1e4, "magnitude of a value", "definition: from it on a layer is called large")
MINOR_SHARE = Threshold(
    0.1, "share of a layer's channels", "definition: from it on a layer is called dead or constant"
)
MAJOR_SHARE = Threshold(
    0.5, "share of a layer's channels", "definition: from it on it is mostly so"
)
SHARE_ROUNDING = Threshold(
    1e-6, "share", "rounding of a share in float32, and of the difference of two"
)
DEAD_SHARE = Threshold(
    0.72,
    "share of a layer's channels",
    "trainings of tests/acceptance",
    healthy="0 to 0.7",
    faulty="0.72 to 1",
)
DEAD_SHARE_AT_START = Threshold(
    0.9,
    "share of a layer's channels",
    "narrow layers with random weights, and networks that learn all the same",
    healthy="0 to 0.88",
    faulty="0.9 to 1",
)
DEAD_NEARLY_ALL = Threshold(
    0.9,
    "share of a layer's channels",
    "definition: from it on all values of a layer count together",
)
DEAD_VALUES = Threshold(
    500,
    "values per channel, or of a layer that is dead as a whole",
    "in small maps they come and go",
)
TOKENS_PER_EXPERT = Threshold(
    20,
    "tokens per expert",
    "by chance, an expert of eight of which two are chosen is left out by 160 tokens once in 10^20",
)
UNIFORM_HEAD = Threshold(
    1 - 1e-6, "mean entropy of rows of attention, relative to that of a uniform row", "rounding"
)
UNIFORM_ROW = Threshold(
    1e-4,
    "largest minus smallest weight of a row of attention, as a share of the largest",
    "transformers of tests/acceptance, also of random weights that are not trained",
    healthy="2.2e-3 or more, over all heads of a layer",
    faulty="0, but for rounding",
)
ONE_HOT_HEAD = Threshold(
    0.05,
    "mean entropy of rows of attention, relative to that of a uniform row",
    "transformers of tests/acceptance whose initial weights are 8 and 30 times too large",
    healthy="0.12 or more",
    faulty="0.002 to 0.03",
)
SEEN = Threshold(
    1e-6, "weight of a key", "that of a masked key is 0: exp(-1e4), or less, in float32"
)
COPIES = Threshold(
    0.99,
    "share of right answers",
    "definition: the network copies its input",
    faulty="1.00 in three networks whose labels were the tokens received",
)
SAME_OUTPUT = Threshold(
    1e-4,
    "difference of two rows of outputs, over the standard deviation of all",
    "rows of the same token without positions differ by rounding",
)
SUM_OFF_ONE = Threshold(
    0.01, "sum of a row of attention minus 1", "a softmax over the keys differs by rounding"
)
SOFTMAX_RANGE = Threshold(
    104.0,
    "logit",
    "exp(-104) is 0 in float32, in which softmax is computed of half precision too",
    healthy="up to 20",
    faulty="300 to 1,500",
)
SINGLE_TOKEN = Threshold(
    0.99, "largest weight of a row of attention", "such rows differ only in where that token is"
)
DEAD_HEADS_SPAN = Threshold(
    50,
    "training steps",
    "initial queries and keys are next to 0, and hardly learn during a warm-up",
)
LOGITS_GROWN = Threshold(
    2.0, "factor since the first logged step", "logits that were large from the start do not grow"
)
COPIED_SHARE = Threshold(
    0.25,
    "share of a layer's drawn channels",
    "trainings of tests/acceptance",
    healthy="0",
    faulty="0.5 to 1",
)
COPIED_CHANNELS = Threshold(4, "channels", "of fewer, some may agree by chance")
CONSTANT_CHANNEL = Threshold(1e-5, "share of the layer's range", "rounding in float32")
EQUAL = Threshold(1e-4, "share of the channel's range", "rounding of sums in float32 and bfloat16")
NEAREST = Threshold(
    64, "channels", "a bound on the time; copies are next to each other when sorted"
)
PIXEL_SHUFFLE = (2, 3, 4)
"""Factors of a PixelShuffle; it has the square of one as many channels as its output."""
TANH_SATURATED = Threshold(math.atanh(0.99), "input of a tanh", "its output is 0.99 there")
SIGMOID_SATURATED = Threshold(math.log(99), "input of a sigmoid", "its output is 0.99 there")
SATURATED_SHARE = Threshold(
    0.5,
    "share of an activation's outputs",
    "trainings of tests/acceptance",
    healthy="below 0.5",
    faulty="0.52 to 0.93",
)
OUTPUT_END = Threshold(0.9, "magnitude of all values of an output", "trainings of tests/acceptance")
OUTPUT_PULLED = Threshold(
    0.05,
    "share of the values of an output",
    "trainings of tests/acceptance",
    healthy="below 0.05",
    faulty="0.05 or more",
)
OUTPUT_AWAY = Threshold(
    0.5, "distance of the targets over the largest output", "rounding and noise of the targets"
)
AT_END = Threshold(0.01, "distance from 0 or ±1", "the gradient of a tanh is 2 % of its largest")
DROPOUT = Threshold(
    0.8,
    "probability",
    "published recipes use up to 0.7",
    healthy="0.1 to 0.5",
    faulty="0.95, 0.99",
)
DROPOUT_SINGLE = Threshold(
    0.9, "probability", "LSTM-FCN has one dropout of 0.8", healthy="up to 0.8", faulty="0.95, 0.99"
)
DROPOUT_USUAL = Threshold(0.1, "probability", "the least that the advice names")
GRADIENT_RATIO = Threshold(
    1e-4,
    "gradient per weight of the first layers over that of the last ones",
    "trainings of tests/acceptance",
    healthy="0.05 or more",
    faulty="1e-18 to 1e-6",
)
GRADIENT_RATIO_STEPS = Threshold(3, "logged steps", "one may be an accident")
DEEP = Threshold(4, "layers", "in fewer, nothing fades")
LAST_LAYERS = Threshold(3, "layers", "one of them may be nearly done")
FIRST_LINEAR_LAYERS = Threshold(3, "layers", "queries and keys hardly learn at first")
STRETCH = Threshold(3, "layers", "the least from which a trend can be told")
FADING = Threshold(
    1e-3,
    "share of the standard deviation that is left",
    "trainings of tests/acceptance",
    healthy="below 1,000-fold",
    faulty="1,000-fold or more",
)
ALIKE_AT_START = Threshold(
    3e-4,
    "(standard deviation over the images) / (mean magnitude) of the output",
    "trainings of tests/acceptance",
    healthy="0.03 or more",
    faulty="3e-4 or less",
)
LARGE_AT_START = Threshold(
    1e4,
    "magnitude of an activation at the first logged step",
    "trainings of tests/acceptance",
    healthy="below 50",
    faulty="1e4 or more",
)
GROWTH = Threshold(
    1000.0,
    "factor since the first logged step",
    "trainings of tests/acceptance",
    healthy="below 500",
    faulty="1,000 or more",
)
GROWN_SIZE = Threshold(
    50.0, "magnitude of an activation", "healthy activations, of layers that start near 0"
)
GROWING = Threshold(
    50.0,
    "factor from layer to layer",
    "trainings of tests/acceptance",
    healthy="up to 15",
    faulty="100 or more",
)

UNCHANGED_STEPS = Threshold(3, "logged steps", "one update in a row may be rounded away")
ZERO_RATE_STEPS = Threshold(8, "logged steps", "a warm-up from 0 has the first ones too")
IGNORED_SHARE = Threshold(
    0.25, "share of the layers with kernels", "an unused head of a library's network is less"
)
FLAT_SHARE = Threshold(
    0.5, "share of the weights", "a few weights may have a gradient of 0 by chance"
)
UPDATE_HIGH = Threshold(
    0.2,
    "|Δw| / |w| of one optimizer step, median over the weights",
    "7 of 486 healthy trainings exceeded 0.1",
    healthy="a median of 0.01 to 4 %",
    faulty="24 % or more",
)
UPDATE_HIGH_STEPS = Threshold(3, "logged steps in a row", "warm-ups have one or two")
UPDATE_USUAL = Threshold(
    0.04,
    "|Δw| / |w| of one optimizer step, median over the weights",
    "healthy trainings of tests/acceptance",
)
UPDATE_LOW = Threshold(
    1e-4,
    "|Δw| / |w| of one optimizer step",
    "trainings of tests/acceptance",
    healthy="0.01 to 4 %",
    faulty="below 1e-6",
)
UPDATE_IDLE = Threshold(
    4e-4,
    "|Δw| / |w| of one optimizer step, median",
    "rates of healthy trainings divided by 30 and 100",
    healthy="0.04 to 4 %",
    faulty="below 0.04 % where the loss stays",
)
UPDATE_SPAN = Threshold(50, "training steps", "in fewer, no loss need fall")
HARDLY_FALLS = Threshold(0.85, "share of the first loss", "half of what counts as learning")
FEW_KERNELS = Threshold(1 / 3, "share of the weights", "a transformer has one convolution")
CLIPPED = Threshold(1.01, "largest over smallest norm of all gradients", "rounding in float32")
BATCHNORM_GAP = Threshold(
    1.0,
    "|log(batch variance / running variance)|",
    "trainings of tests/acceptance",
    healthy="0.20 or less",
    faulty="1.36, 4.34",
)
BATCHNORM_DECAY = Threshold(
    0.9, "gap of the last over that of the third quarter", "a gap that shrinks by a tenth closes"
)
BATCHNORM_STEPS = Threshold(8, "logged steps", "two per quarter of the run")
BATCHNORM_SPAN = Threshold(50, "training steps", "at a momentum of 0.1, 0.9^50 = 0.005 is left")
QUARTERS = Threshold(
    4, "parts of the run", "the last quarter is compared with the one before: does it still fall?"
)
LARGEST_LOGARITHM = Threshold(
    700.0, "natural logarithm", "that of the largest factor that a float64 holds, rounded down"
)
SMALL_BATCH = Threshold(2, "images", "the variance of two images is off by a factor of 2 or more")
SMALL_BATCH_GAP = Threshold(
    0.16,
    "|log(batch variance / running variance)|",
    "trainings of tests/acceptance, healthy and spoilt by batches of two",
    healthy="below 0.16",
    faulty="0.16 or more",
)
FEW_VALUES = Threshold(2, "values per channel", "of two, only their order is left")
NEAR_GUESS = Threshold(
    0.1, "share of the loss of guessing", "noise of batches is a few per cent of it"
)
SPREAD_LOST = Threshold(
    0.03,
    "share of the spread between inputs that all layers before have",
    "14 networks of torchvision with new weights; an operation put into a network of photographs",
    healthy="0.73 or more",
    faulty="below 0.02 behind weights of almost 0, a saturated activation, a softmax over places",
)
NEAR_LN = Threshold(0.02, "nats", "labels of equal frequency, of some hundred images")
