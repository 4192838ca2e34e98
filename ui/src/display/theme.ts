// Dark or light. public/theme.js does the same before the first paint.

import { keep } from "./kept";

export type Theme = "dark" | "light";

export const currentTheme = (): Theme => (document.documentElement.classList.contains("dark") ? "dark" : "light");

const listeners = new Set<() => void>();

export function applyTheme(theme: Theme): void {
  document.documentElement.classList.toggle("dark", theme === "dark");
  keep("theme", theme);
  for (const listener of listeners) listener();
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
