// Runs before the first paint, so that a dark page never flashes white.
(() => {
  const order = ["system", "light", "dark"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    const value = localStorage.getItem("theme");
    return order.includes(value) ? value : "system";
  };
  const apply = () => {
    const theme = chosen();
    const shown = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
    document.documentElement.dataset.bsTheme = shown;
    for (const name of document.querySelectorAll("[data-theme-name]")) {
      name.textContent = name.dataset[theme];
    }
    document.dispatchEvent(new CustomEvent("themechange"));
  };
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    localStorage.setItem("theme", order[(order.indexOf(chosen()) + 1) % order.length]);
    apply();
  });
  apply();
})();
