// Small helpers to build elements and show numbers.

/** el("p", {class: "a", onclick: f}, "text", child, …) */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && key !== "list" && key !== "form") node[key] = value;
    else node.setAttribute(key === "class" ? "class" : key, value === true ? "" : value);
    if (key === "class") node.className = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const $ = (id) => document.getElementById(id);

/** A number as people write it: 0.0123, 1.5, 2e-6. */
export function show(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e5)
    return x
      .toExponential(Math.max(0, digits - 2))
      .replace(/\.?0+e/, "e")
      .replace("e+", "e");
  return String(Number(x.toPrecision(digits)));
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/** Colour i of the palette; on a dark page a little lighter, and its black is white there. */
export function colour(about, i) {
  const chosen = about.colours[i % about.colours.length];
  if (chosen === "#000000") return css("--ink");
  if (document.documentElement.dataset.theme !== "dark") return chosen;
  const lighter = [1, 3, 5].map((k) => Math.round(0.72 * parseInt(chosen.slice(k, k + 2), 16) + 0.28 * 255));
  return `rgb(${lighter.join(" ")})`;
}
