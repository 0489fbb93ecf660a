// Light and dark: as the system says, or as chosen.

const THEMES = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

/** The theme chosen last, here or on an earlier visit, if the browser keeps such things. */
function remembered(name) {
  try {
    if (name) localStorage.setItem("theme", name);
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

/** Apply it now and whenever it changes; a button, if there is one, goes through the choices. */
export function useTheme(button, changed) {
  let theme = THEMES.find((name) => name === remembered()) ?? "auto";
  const apply = () => {
    document.documentElement.dataset.theme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
    button.textContent = `Theme: ${theme}`;
    changed();
  };
  system.addEventListener("change", apply);
  button.onclick = () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remembered(theme);
    apply();
  };
  apply();
}
