// Keys that do something on a page. Every page says which ones; the help shows those that work now.

import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  /** As `KeyboardEvent.key` says it. */
  key: string;
  /** What it does, in the reader's language. */
  name: string;
  run: () => void;
  /** Whether it does anything at this moment; where it does not, the key stays the browser's. */
  when?: () => boolean;
  /** It works on every page; the help says those of the page first. */
  everywhere?: boolean;
  /** How the help shows the key where one line stands for several; empty: the line of another one does. */
  shown?: string;
}

const active = new Set<{ current: readonly Shortcut[] }>();
const listeners = new Set<() => void>();
let shown: readonly Shortcut[] = [];

function changed(): void {
  shown = [...active].flatMap((one) => one.current);
  for (const listener of listeners) listener();
}

const WRITING = "input, textarea, select, [contenteditable]";

/** Whether a key goes to a program that turns keys into Japanese; older browsers say only the key code 229. */
export const isComposing = (event: KeyboardEvent) => event.isComposing || event.keyCode === 229;

/** Whether a key belongs to what somebody writes, or to a program that turns keys into Japanese. */
export function isWriting(event: KeyboardEvent): boolean {
  if (isComposing(event)) return true;
  const target = event.target instanceof Element ? event.target : null;
  return target?.closest(WRITING) != null;
}

/** A key pressed with nothing else: those with Ctrl, Alt or ⌘ are the browser's. */
function isPlain(event: KeyboardEvent): boolean {
  return !event.ctrlKey && !event.altKey && !event.metaKey && !event.repeat;
}

export function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || isWriting(event) || !isPlain(event) || document.querySelector("dialog[open]")) return;
  // What was added last is in front.
  const found = [...active]
    .reverse()
    .flatMap((one) => one.current)
    .find((one) => (one.key === event.key || one.key === event.key.toLowerCase()) && (one.when?.() ?? true));
  if (!found) return;
  event.preventDefault();
  found.run();
}

/** Makes keys work while the component is there. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const ref = useRef(shortcuts);
  const names = shortcuts.map(({ key, name }) => `${key} ${name}`).join("\n");
  useEffect(() => {
    ref.current = shortcuts;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is anew at every drawing, its names are not
  useEffect(() => {
    active.add(ref);
    changed();
    return () => {
      active.delete(ref);
      changed();
    };
  }, [names]);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The keys that do something now. */
export const useActiveShortcuts = () => useSyncExternalStore(subscribe, () => shown);

export function useKeyboard(): void {
  useEffect(() => {
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
