// The filter of the event list. It lives in the address, so a filtered list can be kept, sent and gone back to.

import type { EventFilter } from "@/api/types";
import { startOfDay, startOfNextDay } from "./times";

/** Tags of the things that may be wrong with a camera itself. */
export const ISSUE_TAGS = ["camera.offline", "camera.unattended", "camera.occluded", "camera.moved", "camera.frozen"];
/** `at` is a moment chosen in the timeline. */
export const FILTER_NAMES = ["camera", "kind", "severity", "state", "from", "to", "at"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];
export type ChosenFilter = Partial<Record<FilterName, string>>;

export function readFilter(address: URLSearchParams): ChosenFilter {
  const chosen: ChosenFilter = {};
  for (const name of FILTER_NAMES) {
    const value = address.get(name);
    if (value) chosen[name] = value;
  }
  return chosen;
}

/** The address with one part of the filter changed; empty takes it away. */
export function writeFilter(address: URLSearchParams, name: FilterName, value: string): URLSearchParams {
  const changed = new URLSearchParams(address);
  if (value) changed.set(name, value);
  else changed.delete(name);
  return changed;
}

/** The filter as the server is asked. What makes no sense in a hand-written address is left out. */
export function askedFilter(chosen: ChosenFilter): EventFilter {
  const asked: EventFilter = {};
  if (chosen.camera) asked.camera_id = [chosen.camera];
  // A kind of camera issue is asked for by its tag.
  if (chosen.kind?.includes(".")) asked.tag = [chosen.kind];
  else if (chosen.kind) asked.primary_event = [chosen.kind];
  const severity = Number(chosen.severity);
  if ([1, 2, 3].includes(severity)) asked.severity_min = severity;
  if (chosen.state === "open" || chosen.state === "closed") asked.state = chosen.state;
  const from = chosen.from ? startOfDay(chosen.from) : undefined;
  if (from !== undefined) asked.from = from;
  // What began before the chosen moment, newest first.
  const at = Number(chosen.at);
  const to = Number.isSafeInteger(at) && at > 0 ? at : chosen.to ? startOfNextDay(chosen.to) : undefined;
  if (to !== undefined) asked.to = to;
  if (from !== undefined && to !== undefined && from >= to) delete asked.from;
  return asked;
}
