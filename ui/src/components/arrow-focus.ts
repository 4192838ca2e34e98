import type { KeyboardEvent } from "react";

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

/** For a row of buttons that is one stop of the Tab key: the left and right arrows lead from one to the next. */
export function moveFocus(event: KeyboardEvent): void {
  const by = STEPS[event.key];
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>("button:enabled")];
  const next = buttons[buttons.indexOf(document.activeElement as HTMLElement) + (by ?? 0)];
  if (by === undefined || !next) return;
  event.preventDefault();
  next.focus();
}
