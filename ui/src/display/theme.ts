// Dark or light. public/theme.js does the same before the first paint.

import { keep } from "./kept";

export type Theme = "dark" | "light";

export const currentTheme = (): Theme => (document.documentElement.classList.contains("dark") ? "dark" : "light");

export function applyTheme(theme: Theme): void {
  document.documentElement.classList.toggle("dark", theme === "dark");
  keep("theme", theme);
}
