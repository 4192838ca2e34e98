// Where the things are that the audit log speaks of.

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
