/** Types of the modules in `chart`. */

/** Coordinates of a chart, CSS px. */
export type Frame = ReturnType<typeof import("./plot.js").frame>;

export type Curve = { steps: number[]; values: ArrayLike<number> };

/** `density` [steps, rows] is at most 1 per step, NaN for an empty one. */
export type Heat = NonNullable<ReturnType<typeof import("./plot.js").heat>>;
