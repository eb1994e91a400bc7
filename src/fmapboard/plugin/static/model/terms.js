// @ts-check
/** The terms of the tab in plain words: for tooltips, screen readers and the help. */

import { inWordsOf } from "./words.js";

/** What the terms mean. @type {Readonly<Record<string, string>>} */
export const GLOSSARY = Object.freeze({
  maps: "The layer's output (feature maps), one picture per channel.",
  inputs: "The input of the layer itself, one picture per channel.",
  gradients: "The gradient of the loss with respect to the layer's output.",
  kernels: "The layer's convolution weights.",
  attribution:
    "Where, in the input image, the layer's activation raises the score, or lowers the loss, " +
    "that the heading names.",
  patches:
    "The parts of images that excite the channel most: receptive fields of its largest values.",
  sample: "The image whose maps are drawn: its number in the batch, or among the fixed images.",
  eval_mode:
    "A pass of its own without Dropout, in which BatchNorm uses its running averages: " +
    "early in training, maps may differ much from those of the batch.",
  stretched:
    "How the images were normalized is not known: the least value is black, the largest " +
    "white.",
  scale: "Which values get the first and the last colour: those of each channel, or of the layer.",
  locked: "One scale for all steps: a colour is the same value at every step.",
  colours: "The palette of the maps. Signed is centred on 0: blue below it, red above.",
  sort: "The order of the channels, which stays while the step changes.",
  tile: "The width of a channel's picture in CSS pixels. Auto fits the window.",
  compare: "Another step, run, sample or kind of maps beside the first, or the difference.",
  strength: "The root mean square of a channel's values over the whole batch.",
  similarity: "Similar maps stand next to each other, beginning at the strongest one.",
  change: "How much the maps, or else the weights, differ from the logged step before.",
  unchanged: "The optimizer has taken a step, and the weights are the same.",
  fault: "Something is certainly wrong, such as a NaN.",
  suspicion: "Something is unusual: a number that healthy runs seldom have.",
  does_not_learn: "Nothing was found in the run, but its loss has not fallen.",
  not_known: "Nothing was found in the run, and it is not known whether it learns.",
  no_training: "The run is of images, not of a training; nothing was found.",
  learns: "Nothing was found in the run, and its loss has fallen.",
  difference_run: "One of the two models that diff compared, or their difference.",
  unreadable: "The findings of the run cannot be read.",
  flagged:
    "Layers with non-finite or large values, at least 10 % dead or constant channels, or weights " +
    "that do not change.",
  nonfinite: "NaN, +Inf or −Inf: not a number, or too large for the number format.",
  large: "A value of magnitude 10,000 or more.",
  dead:
    "The activation is 0 for the whole batch, so that no gradient reaches the channel's " +
    "weights.",
  constant: "The channel has the same value at every position of its map.",
  range: "The smallest and the largest value.",
  std: "The standard deviation of the channel's values over the whole batch.",
  norm: "The 2-norm of the gradient of the loss with respect to a parameter of the layer.",
  ratio:
    "How much one optimizer step changed a parameter: the 2-norm of the change over that " +
    "of the parameter. ≈: estimated from a sample.",
  histogram: "How often values occur at each step: what stands out, more often.",
  batch: "Over all images of the batch and all positions.",
  block: "The positions that one stored pixel is the mean of, as the map was too large to store.",
  kept: "TensorBoard keeps some of the logged steps: the first, the last, others at random.",
  live: "Asks for new steps every few seconds, while the run is being written.",
});

/**
 * Names of the terms, where they are other words than their keys.
 * @type {Readonly<Record<string, string>>}
 */
const NAMES = Object.freeze({
  stretched: "stretched colours",
  no_training: "of images",
  difference_run: "compared by diff",
  unchanged: "no change",
  nonfinite: "non-finite",
  norm: "gradient norm",
  ratio: "update ratio",
  batch: "whole batch",
});

/** @param {string} term */
export const termName = (term) => NAMES[term] ?? term.replaceAll("_", " ");

/** Id of the element of the help that explains a term. @param {string} term */
export const termId = (term) => `term-${term}`;

/**
 * A tooltip of terms, several with their names, and the same as description for screen readers:
 * attributes.
 * @param {string} terms names, separated by spaces
 * @param {string} more what else the tooltip says first
 */
export function explanation(terms, more = "") {
  const names = terms.split(" ");
  const texts = names.map((term) => {
    const found = GLOSSARY[term];
    if (!found) throw new Error(`no term ${term}; there are ${Object.keys(GLOSSARY).join(", ")}`);
    return inWordsOf(names.length > 1 ? `${termName(term)}: ${found}` : found);
  });
  const title = [more, ...texts].filter(Boolean).join("\n");
  return { title, "aria-describedby": names.map(termId).join(" ") };
}
