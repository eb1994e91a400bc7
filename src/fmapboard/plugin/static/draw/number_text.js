// @ts-check
/** Formats numbers, and finds ticks for an axis. */

const MINUS = "−";

/** A number in few characters. @param {number} value @param {number} digits significant digits */
export function short(value, digits = 3) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : `${MINUS}Inf`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e5 || size < 1e-3
      ? size
          .toExponential(digits - 1)
          .replace(/\.?0+e/, "e")
          .replace("e+", "e")
          .replace("-", MINUS)
      : String(Number(size.toPrecision(digits)));
  return (value < 0 ? MINUS : "") + text;
}

/** An integer with thin spaces between groups of three digits. @param {number} value */
export function whole(value) {
  return String(value)
    .replace("-", MINUS)
    .replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

/** A number of things: "1 step", "2 steps". @param {number} n @param {string} word singular */
export function counted(n, word) {
  return `${stepText(n)} ${word}${n === 1 ? "" : "s"}`;
}

/** A step; digits are grouped from 10 000 on. @param {number} value */
export function stepText(value) {
  return Math.abs(value) < 10000 ? String(value).replace("-", MINUS) : whole(value);
}

/** @param {number} fraction 0…1 */
export function percent(fraction) {
  const value = fraction * 100;
  return value > 0 && value < 1 ? "<1 %" : `${Math.round(value)} %`;
}

/**
 * Round values on an axis, at most `most` + 1.
 * @param {number} lo @param {number} hi @param {number} most @returns {number[]}
 */
export function ticks(lo, hi, most = 5) {
  if (!(hi > lo) || !Number.isFinite(hi - lo)) return Number.isFinite(lo) ? [lo] : [];
  const raw = (hi - lo) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const unit = [1, 2, 2.5, 5, 10].find((n) => n * power >= raw * (1 - 1e-9)) ?? 10;
  const step = unit * power;
  const found = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i += 1) {
    found.push(i === 0 ? 0 : Number((i * step).toPrecision(12)));
  }
  return found;
}

/** Compares names in natural order: conv2 before conv10. @param {string} a @param {string} b */
export function natural(a, b) {
  return a.localeCompare(b, "en", { numeric: true }) || (a < b ? -1 : a > b ? 1 : 0);
}

/** @param {number} seconds since 1970 */
export function clock(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const date = new Date(seconds * 1000);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return (
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  );
}
