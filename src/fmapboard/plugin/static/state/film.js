// @ts-check
/** The channels of the film strip: as typed by the user, and in the address. */

/** @typedef {import("./state.js").State} State */

/** Channels in one film strip, at most. */
export const MOST_CHANNELS = 12;

/**
 * The channels of the film strip, in the order they were chosen.
 * @param {State} state @param {number} drawn channels that have pictures
 * @returns {number[]} at least one, if any is drawn
 */
export function filmChannels(state, drawn) {
  const chosen = listed(state.channels).filter((channel) => channel < drawn);
  if (chosen.length) return chosen.slice(0, MOST_CHANNELS);
  const open = state.channel !== null && state.channel < drawn ? state.channel : 0;
  return drawn > 0 ? [open] : [];
}

/** Channels of an address, each once. @param {string} text */
export function listed(text) {
  return [...new Set(text.split(",").filter(Boolean).map(Number))];
}

/**
 * Channels as typed: numbers and ranges, separated by commas or spaces.
 * @param {string} text @param {number} drawn channels that have pictures
 * @returns {{channels: number[], refused: string[]}} `refused` says what was left out, and why
 */
export function readChannels(text, drawn) {
  /** @type {Set<number>} */
  const channels = new Set();
  const refused = [];
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const found = /^(\d{1,6})(?:[-–](\d{1,6}))?$/.exec(word);
    if (!found) {
      refused.push(`“${word}” is no channel number`);
      continue;
    }
    const from = Number(found[1]);
    const to = found[2] === undefined ? from : Number(found[2]);
    if (to < from) refused.push(`“${word}” ends before it begins`);
    for (let channel = from; channel <= Math.min(to, drawn - 1); channel += 1) {
      channels.add(channel);
    }
    if (to >= drawn) refused.push(`channel ${to}: only 0 to ${drawn - 1} are drawn`);
  }
  const kept = [...channels].slice(0, MOST_CHANNELS);
  if (channels.size > kept.length) {
    refused.push(`${channels.size} channels: the first ${MOST_CHANNELS} are shown`);
  }
  return { channels: kept, refused };
}

/**
 * The value of `channels` after a channel was added or removed.
 * @param {State} state @param {number} channel
 */
export function toggled(state, channel) {
  const before = state.channels
    ? listed(state.channels)
    : state.channel === null
      ? []
      : [state.channel];
  const after = before.includes(channel)
    ? before.filter((each) => each !== channel)
    : [...before, channel];
  return after.slice(-MOST_CHANNELS).join(",");
}

/**
 * All channels of the strip moved by the same number; unchanged if one would leave the layer.
 * @param {number[]} channels @param {number} by @param {number} drawn
 */
export function moved(channels, by, drawn) {
  const after = channels.map((channel) => channel + by);
  return after.every((channel) => channel >= 0 && channel < drawn) ? after : channels;
}
