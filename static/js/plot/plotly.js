/**
 * Brings Plotly, once, when the first plot is drawn; the page is usable before it has arrived.
 * @typedef {import("./library.js").PlotlyLibrary} PlotlyLibrary
 */
import { Failure } from "../api/errors.js";

/** @type {Promise<PlotlyLibrary> | null} */
let library = null;

/**
 * The library; its address is in the page's head.
 * @returns {Promise<PlotlyLibrary>}
 */
export function loadPlotly() {
  library ??= new Promise((resolve, reject) => {
    const address = document.querySelector('meta[name="plotly-url"]')?.getAttribute("content");
    const script = document.createElement("script");
    script.src = address ?? "";
    script.addEventListener("load", () => {
      if (window.Plotly) resolve(window.Plotly);
      else reject(new Failure("page", "The plots cannot be drawn", "The plotting library did not start."));
    });
    script.addEventListener("error", () => {
      library = null;
      script.remove();
      reject(new Failure("network", "The plots cannot be drawn", "The plotting library did not arrive."));
    });
    document.head.append(script);
  });
  return library;
}
