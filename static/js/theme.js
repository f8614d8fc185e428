// Runs before the first paint, so that the page does not flash in the other theme.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("headwater.theme");
  } catch {
    // Storage is closed: the system's preference holds.
  }
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = chosen === "light" || chosen === "dark" ? chosen : system;
})();
