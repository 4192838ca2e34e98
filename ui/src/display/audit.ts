// Where the things are that the audit log speaks of, and how it tells what became of them.
import { dateAndTime } from "./times";

const PAGES: Readonly<Record<string, string>> = {
  camera: "/cameras",
  event: "/events",
  case: "/cases",
  scoring_sheet: "/scoring/sheets",
  scoring_run: "/scoring/runs",
};

/** The page of what an entry is about; null: it has none. What was removed since says so there. */
export function objectPage(kind: string, id: string): string | null {
  const place = PAGES[kind];
  return place && id ? `${place}/${encodeURIComponent(id)}` : null;
}

const FLAGS: ReadonlySet<string> = new Set(["all_sites", "disabled", "do_not_process", "enabled"]);
const TIMES: ReadonlySet<string> = new Set(["expires_at", "until"]);

/** Whether a detail is so, where it is one that is or is not; null: it is another. */
export function flagOf(name: string, value: unknown): boolean | null {
  return FLAGS.has(name) && (value === 0 || value === 1) ? value === 1 : null;
}

export function detailText(name: string, value: unknown, language: string): string {
  if (TIMES.has(name) && typeof value === "number") return dateAndTime(value, language);
  return typeof value === "string" ? value : JSON.stringify(value);
}
