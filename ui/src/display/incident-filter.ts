// Which incidents are shown, as the address says it.

import type { IncidentFilter } from "@/api/incidents";
import type { Incident } from "@/api/types";
import { startOfDay, startOfNextDay } from "./times";

export const REVIEW_VIEWS = ["open", "all", "done"] as const;

/** What is asked for; nonsense in a hand-written address is left out. */
export function askedIncidents(address: URLSearchParams): IncidentFilter {
  const asked: IncidentFilter = {};
  const severity = Number(address.get("severity"));
  if ([1, 2, 3].includes(severity)) asked.severity_min = severity;
  const camera = address.get("camera");
  if (camera) asked.camera_id = [camera];
  const view = address.get("view");
  if (view !== "all") asked.reviewed = view === "done";
  const day = address.get("day");
  const [from, to] = day ? [startOfDay(day), startOfNextDay(day)] : [];
  if (from !== undefined && to !== undefined) Object.assign(asked, { from, to });
  return asked;
}

/** Whether an incident is still in the list that was asked for, once somebody has reviewed it or taken that back. */
export function fitsReview(incident: Pick<Incident, "reviewed_at">, { reviewed }: IncidentFilter): boolean {
  return reviewed == null || reviewed === (incident.reviewed_at !== null);
}

/** How many are of a severity or more, by the counts of each. */
export function atLeast(bySeverity: readonly number[], severity: number): number {
  return bySeverity.slice(severity).reduce((sum, one) => sum + one, 0);
}
