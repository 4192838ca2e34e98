// The rules of telling as they are shown, ordered and sent.

import type { NotifyRule, NotifyRuleAsked } from "@/api/types";

/** Days as the server counts them: 0 is Monday. */
export const EVERY_DAY: readonly number[] = [0, 1, 2, 3, 4, 5, 6];

// A Monday, in UTC as it is read.
const MONDAY = Date.UTC(2024, 0, 1);

export function weekday(day: number, language: string): string {
  const format = new Intl.DateTimeFormat(language, { weekday: "short", timeZone: "UTC" });
  return format.format(MONDAY + day * 86_400_000);
}

/** A rule as it is sent, by how it is shown. */
export function asked(rule: NotifyRule): NotifyRuleAsked {
  const { rule_uuid: _, gone: __, created_at: ___, updated_at: ____, ...rest } = rule;
  return rest;
}

/** The order with one rule moved. */
export function moved(uuids: readonly string[], place: number, by: number): string[] {
  const next = [...uuids];
  const [one] = next.splice(place, 1);
  if (one !== undefined) next.splice(place + by, 0, one);
  return next;
}
