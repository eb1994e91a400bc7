/** Types of what `preact_htm.js` exports, as far as the views use it. */

export interface VNode {
  type: unknown;
  props: object;
  key: unknown;
}

/** What an element may contain. */
export type Child = VNode | string | number | boolean | null | undefined | readonly Child[];

/** A component without state of its own is a pure function; hooks give others a state. */
export type Component<P> = (props: P) => Child;

export function h<P extends object>(type: Component<P>, props: P, ...children: Child[]): VNode;
export function render(child: Child, parent: Element): void;
/** Elements as a template: `<p class=${name}>${text}</p>`, `<${Component} ...${props} />`. */
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export const Fragment: Component<{ children?: Child }>;

export function useState<T>(first: T | (() => T)): [T, (next: T | ((now: T) => T)) => void];
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
/** Runs after the page has been drawn, if an input has changed; what it returns undoes it. */
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
/** As `useEffect`, before the page is drawn. */
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
