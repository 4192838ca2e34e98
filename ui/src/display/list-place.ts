// Where somebody is in a list that keys go through. A list changes while it is read, so a place is the id of what is
// there; `null` is nowhere yet.

/** The id so many further on, or the first one for whoever is nowhere; the ends hold. */
export function stepped(ids: readonly string[], at: string | null, by: number): string | null {
  const place = at === null ? -1 : ids.indexOf(at);
  if (place < 0) return ids[0] ?? null;
  return ids[Math.min(ids.length - 1, Math.max(0, place + by))] ?? null;
}

/** What is before and after one in a list; null: nothing is. */
export function besideOf(ids: readonly string[], at: string): { previous: string | null; next: string | null } {
  const place = ids.indexOf(at);
  if (place < 0) return { previous: null, next: null };
  return { previous: ids[place - 1] ?? null, next: ids[place + 1] ?? null };
}

/** Where to go on once `at` is dealt with: the next one; after the last one back, if that is about to leave the list. */
export function afterDone(ids: readonly string[], at: string, leaves: boolean): string | null {
  const next = stepped(ids, at, 1);
  if (next !== at || !leaves) return next;
  const before = stepped(ids, at, -1);
  return before === at ? null : before;
}
