// Draws the formulas of a page, which stand in it as LaTeX.
addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".tex")) {
    const source = place.textContent;
    const displayMode = place.classList.contains("display");
    katex.render(source, place, { displayMode, throwOnError: false, strict: "ignore" });
  }
});
