// The rules of telling as they are shown, ordered and sent.

import type { NotifyRule, NotifyRuleAsked, NotifyRuleChange } from "@/api/types";

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

/** What of a rule is to be another. What it names that is gone is not shown, so what is as shown is not sent back. */
export function differing(rule: NotifyRule, wanted: NotifyRuleAsked): NotifyRuleChange {
  const shown: NotifyRuleAsked = asked(rule);
  const names = Object.keys(wanted) as (keyof NotifyRuleAsked)[];
  const changed = names.filter((name) => JSON.stringify(wanted[name]) !== JSON.stringify(shown[name]));
  return Object.fromEntries(changed.map((name) => [name, wanted[name]]));
}

/** The order with one rule moved. */
export function moved(uuids: readonly string[], place: number, by: number): string[] {
  const next = [...uuids];
  const [one] = next.splice(place, 1);
  if (one !== undefined) next.splice(place + by, 0, one);
  return next;
}
