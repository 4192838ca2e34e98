// The search as the address says it, and as the server is asked.

import type { SearchFilter } from "@/api/search";
import type { ScoringSearch } from "@/api/types";
import { atLeast } from "./incident-filter";
import { SEVERITIES } from "./severity";
import { ZOOMS, type Zoom } from "./timeline";
import { dayOf, startOfDay, startOfNextDay } from "./times";

/** Choices of which several can be made, by their name in the address. */
export const MANY = ["site", "camera", "kind", "tag"] as const;
export type ManyName = (typeof MANY)[number];

/** So many of each the server takes at once, scores among them; a test holds these to its description. */
export const MOST: Readonly<Record<ManyName | "score", number>> = {
  site: 50,
  camera: 50,
  kind: 50,
  tag: 10,
  score: 5,
};
export const TEXT_MAX_CHARS = 100;

/** What a facet of scores stands for: events that rather fit the category. */
export const ratherFits = (category: string) => `${category}>=0.5`;

/** What is chosen of a name; what is too much in a hand-written address is left out. */
export const chosenOf = (address: URLSearchParams, name: keyof typeof MOST) =>
  address.getAll(name).slice(0, MOST[name]);

export function askedSearch(address: URLSearchParams, mayInvestigate: boolean): SearchFilter {
  const asked: SearchFilter = {};
  const many = (name: ManyName) => chosenOf(address, name);
  const [sites, cameras, kinds, tags] = [many("site"), many("camera"), many("kind"), many("tag")];
  if (sites.length > 0) asked.site = sites;
  if (cameras.length > 0) asked.camera_id = cameras;
  if (kinds.length > 0) asked.primary_event = kinds;
  if (tags.length > 0) asked.tag = tags;
  const severity = Number(address.get("severity"));
  if ([1, 2, 3].includes(severity)) asked.severity_min = severity;
  const unknown = address.get("unknown");
  if (unknown === "true" || unknown === "false") asked.unknown = unknown === "true";
  const text = address.get("text")?.trim();
  if (text && mayInvestigate) asked.text = text;
  const scores = chosenOf(address, "score");
  if (scores.length > 0 && mayInvestigate) asked.score = scores;
  return { ...asked, ...askedTimes(address) };
}

function askedTimes(address: URLSearchParams): Pick<SearchFilter, "from" | "to"> {
  const [first, last] = [address.get("from"), address.get("to")];
  const from = first ? startOfDay(first) : undefined;
  const end = last ? startOfNextDay(last) : undefined;
  // A moment chosen in the timeline: what began before it, newest first.
  const at = chosenMoment(address);
  const to = at ?? end;
  return {
    ...(from !== undefined && from < (to ?? Number.POSITIVE_INFINITY) ? { from } : {}),
    ...(to ? { to } : {}),
  };
}

export function chosenMoment(address: URLSearchParams): number | null {
  const at = Number(address.get("at"));
  return Number.isSafeInteger(at) && at > 0 ? at : null;
}

/** The day that the timeline shows. */
export function shownDay(address: URLSearchParams, nowMs: number): string {
  const day = address.get("day");
  if (day && startOfDay(day) !== undefined) return day;
  const at = chosenMoment(address);
  return dayOf(at === null ? nowMs : at - 1);
}

export function shownZoom(address: URLSearchParams): Zoom {
  return ZOOMS.find((zoom) => zoom === address.get("zoom")) ?? "1h";
}

/**
 * Severities as a choice narrows by them: each with what is above it, where the server counts each alone. Without
 * those that find nothing, but for the chosen ones.
 */
export function leastSeverities(
  counted: readonly { value: string; count: number }[],
  chosen: readonly string[],
): { value: string; count: number }[] {
  const bySeverity = SEVERITIES.map((step) => counted.find((one) => one.value === String(step))?.count ?? 0);
  return [3, 2, 1]
    .map((step) => ({ value: String(step), count: atLeast(bySeverity, step) }))
    .filter(({ value, count }) => count > 0 || chosen.includes(value));
}

/** The choices with one more, as long as there are fewer than `most`; or without it where it was made before. */
export function toggled(chosen: readonly string[], value: string, most: number): string[] {
  if (chosen.includes(value)) return chosen.filter((one) => one !== value);
  return chosen.length < most ? [...chosen, value] : [...chosen];
}

/** The search as a sheet's rows are asked for. */
export function asScoringSearch(filter: SearchFilter): ScoringSearch {
  return {
    sites: filter.site ?? [],
    camera_ids: filter.camera_id ?? [],
    primary_events: filter.primary_event ?? [],
    tags: filter.tag ?? [],
    severity_min: filter.severity_min ?? 0,
    unknown: filter.unknown ?? null,
    text: filter.text ?? null,
    from_ms: filter.from ?? null,
    to_ms: filter.to ?? null,
    scores: filter.score ?? [],
  };
}
