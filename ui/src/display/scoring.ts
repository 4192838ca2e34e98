// Scoring as people read it: money, categories as they write them, how far a run is.

import type { ScoringEventsAsked, ScoringRun } from "@/api/types";

export const moneyText = (dollars: number | null, language: string) =>
  dollars === null
    ? null
    : new Intl.NumberFormat(language, { style: "currency", currency: "USD", maximumFractionDigits: 4 }).format(
        dollars,
      );

/** What is wrong with a sheet, by the names that have words of their own. */
const PROBLEMS = [
  "no_categories",
  "name_missing",
  "name_twice",
  "too_long",
  "too_many",
  "no_texts",
  "text_missing",
  "same_text",
  "already_filled",
  "protected",
  "merged",
  "locked",
  "formula",
  "read_only",
] as const;
const REASONS = ["asked", "quota", "budget", "bad_key", "bad_request", "sheet"] as const;

export const knownProblem = (name: string) => PROBLEMS.find((one) => one === name);
export const knownReason = (name: string | null) => REASONS.find((one) => one === name);

/** One a line: a name, and behind a colon what it means. */
export function readCategories(text: string): ScoringEventsAsked["categories"] {
  return text
    .split("\n")
    .map((line) => line.split(/[:：]/))
    .map(([name = "", ...rest]) => ({ name: name.trim(), definition: rest.join(":").trim() }))
    .filter((one) => one.name !== "");
}

/** A budget in dollars as it is written; null: none, undefined: it is no amount. */
export function readBudget(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const dollars = Number(text);
  return Number.isFinite(dollars) && dollars > 0 ? Math.round(dollars * 1_000_000) : undefined;
}

/** Rows that were gone through, of those there are. */
export function rowsDone(run: ScoringRun): { done: number; all: number } {
  const { totals } = run;
  if (totals.chunks === 0) return { done: 0, all: 0 };
  return { done: totals.chunks_over, all: totals.chunks };
}
