// Parts of the UI that are no part of the first load: each comes when it is opened, or ahead while nothing else is to
// do, so that pages open at once, and also while the server is away.

import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { startWorker } from "@/api/worker";

type Load = () => Promise<unknown>;

const parts: Load[] = [];

/** A component of its own file, by its name there. */
export function later<Module, Name extends keyof Module>(
  load: () => Promise<Module>,
  name: Name,
): LazyExoticComponent<Component<Module[Name]>> {
  parts.push(load);
  return lazy(async () => ({ default: (await load())[name] as Component<Module[Name]> }));
}

type Component<Found> = Found extends ComponentType<infer Props> ? ComponentType<Props> : never;

/** Long enough for what the first page asks for to be there. */
const AHEAD_AFTER_MS = 3000;

/** Brings what was not opened yet, one after the other; who pays for what is sent, or has no connection, is spared. */
export function fetchAhead(): () => void {
  let isOver = false;
  const isDear = (navigator as { connection?: { saveData?: boolean } }).connection?.saveData === true;
  const timer = isDear ? undefined : setTimeout(() => void fetchAll(() => isOver), AHEAD_AFTER_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

async function fetchAll(isOver: () => boolean): Promise<void> {
  // It keeps what it sees come.
  await startWorker();
  // Those that are named by a part that has just come are found too.
  for (const load of parts) {
    if (isOver()) return;
    await idle();
    try {
      await load();
    } catch {
      // Whoever opens it is told why.
      return;
    }
  }
}

const idle = () =>
  new Promise<void>((resolve) => {
    if ("requestIdleCallback" in globalThis) requestIdleCallback(() => resolve(), { timeout: 2000 });
    else setTimeout(resolve, 100);
  });

/** Whether an error says that a part's file could not be loaded, in the words of the browsers. */
export const isPartMissing = (error: Error) =>
  /dynamically imported module|importing a module script failed/i.test(error.message);
