// Sentences with numbers in them: what one step does to the plotted quantity.

import { show } from "./dom.js";

const SEEN = 0.005; // relative changes below this are called "next to nothing"

const percent = (x) => `${show(100 * x, 3)} %`;
const shares = ["misclassification"]; // quantities that are written in percent

/**
 * The answer to "what does one step do here?", or null where it is not known.
 *
 * after, before : what the theory says with and without the step; at : the axis' symbol and value
 * Returns {said, numbers, gain, draft}: the sentence, its numbers, 1 − after/before.
 */
export function headline({ quantity, name, after, before, at, steps = 1, activation = "", draft = false }) {
  const [end, start] = [after?.[quantity], before?.[quantity]];
  if (after?.error || before?.error || !Number.isFinite(end) || !Number.isFinite(start) || !(start > 0)) return null;
  const here = at.value === null || !at.symbol ? "Here" : `At ${at.symbol} = ${show(at.value, 3)}`;
  const what = name.replace(" (MSE)", "");
  if (after.rate === 0) {
    const numbers = `no step is made, and the ${what} is ${number(quantity, end)}.`;
    return { said: `${here} the learning rate is 0:`, numbers, gain: 0, draft };
  }
  const gain = 1 - end / start;
  const one = steps === 1;
  const who = one ? "one step" : `${steps} steps`;
  const said = gain > SEEN ? `${who} ${one ? "takes" : "take"} ${Math.round(100 * gain)} % of the ${what} away`
    : gain < -SEEN ? `${who} ${one ? "makes" : "make"} the ${what} ${Math.round(-100 * gain)} % larger`
      : `${who} ${one ? "changes" : "change"} the ${what} by less than 0.5 %`;
  const constant = { test_error: after.label_variance, relative_error: after.label_variance ? 1 : undefined }[quantity];
  const listed = [`${number(quantity, end)} with ${one ? "it" : "them"}`, `${number(quantity, start)} without`];
  if (Number.isFinite(constant)) listed.push(`${number(quantity, constant)} for the best constant`);
  const known = Math.max(after.error_estimate ?? 0, before.error_estimate ?? 0);
  const doubt = !draft && known > Math.max(0.03, Math.abs(gain)) ? ` Both are known to about ${percent(known)} only.` : "";
  return { said: `${here} ${said}:`, numbers: `${listed.join(", ")}${activation ? ` (${activation})` : ""}.${doubt}`, gain, draft };
}

const number = (quantity, x) => (shares.includes(quantity) ? percent(x) : show(x, 3));
