/** Pages without pictures: only the theme. */
import { bindThemeButton } from "../core/theme.js";
import { byId } from "../core/dom.js";

bindThemeButton(byId("theme", HTMLButtonElement));
