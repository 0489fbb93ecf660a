// Draws the formulas of a page, which stand in it as LaTeX. A displayed formula that is wider than
// its place is broken between its parts: at every \qquad outside of braces and environments.
function parts(source) {
  const found = [""];
  let depth = 0;
  for (const token of source.match(/\\begin\b|\\end\b|\\qquad|\\.|[^\\]/gs) || []) {
    if (token === "{" || token === "\\begin") depth += 1;
    if (token === "}" || token === "\\end") depth -= 1;
    if (token === "\\qquad" && depth === 0) found.push("");
    else found[found.length - 1] += token;
  }
  return found.map((part) => part.trim());
}

addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".tex")) {
    const source = place.textContent;
    const displayMode = place.classList.contains("display");
    const draw = (text) =>
      katex.render(text, place, { displayMode, throwOnError: false, strict: "ignore" });
    draw(source);
    const lines = displayMode && place.scrollWidth > place.clientWidth ? parts(source) : [];
    if (lines.length > 1) draw(`\\begin{gathered}${lines.join("\\\\[0.6em]")}\\end{gathered}`);
  }
});
