// Severity as people see it: a colour, an icon and a word, never a colour alone.

export const SEVERITIES = [0, 1, 2, 3] as const;
export type Severity = (typeof SEVERITIES)[number];

export function severityOf(value: number): Severity {
  if (value >= 3) return 3;
  if (value >= 2) return 2;
  return value >= 1 ? 1 : 0;
}
