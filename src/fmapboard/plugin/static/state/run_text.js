// @ts-check
/** What a run is called: TensorBoard names that of the log directory itself ".". */

const ROOT = ".";
let directory = ROOT;

/** Sets what is shown for the log directory. @param {string|undefined} name "" if it is not known */
export function callRoot(name) {
  directory = name || ROOT;
}

/** Name of a run, or of the log directory if the run is in it. @param {string} run */
export function runText(run) {
  return run === "" || run === ROOT ? directory : run;
}
