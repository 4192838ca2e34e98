// What people say of a camera to the analyzer, and the names in it that nothing is called by.

import type { Camera } from "@/api/types";

export type Hints = NonNullable<NonNullable<Camera["own"]>["hints"]>;

/** The same without those names; lists that become empty are said no more. */
export function withoutNames(hints: Hints, names: readonly string[]): Hints {
  const isLeft = (name: string) => !names.includes(name);
  const list = (given: Hints["expected_objects"]) => orNull(given?.filter(isLeft) ?? []);
  const thresholds = Object.entries(hints.thresholds ?? {}).filter(([name]) => isLeft(name));
  return {
    ...hints,
    expected_objects: list(hints.expected_objects),
    excluded_objects: list(hints.excluded_objects),
    thresholds: thresholds.length > 0 ? Object.fromEntries(thresholds) : null,
  };
}

const orNull = (names: string[]) => (names.length > 0 ? names : null);
