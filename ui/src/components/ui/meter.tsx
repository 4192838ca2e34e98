import { cn } from "./class-names";

interface Props {
  label: string;
  /** The label is read but not shown: what is around it says it. */
  bare?: boolean;
  value: number;
  /** Null: there is no limit, and so nothing to draw. */
  max: number | null;
  text: string;
  warnAt?: number; // share of max
}

/** How much of something there is, as a bar with its words. */
export function Meter({ label, bare = false, value, max, text, warnAt = 0.9 }: Props) {
  const share = max ? Math.min(1, value / max) : 0;
  return (
    <div className="grid gap-1">
      <div className="flex justify-between gap-2 text-sm">
        <span className={bare ? "sr-only" : "text-quiet"}>{label}</span>
        <span className="tabular-nums">{text}</span>
      </div>
      {max !== null && (
        // biome-ignore lint/a11y/useSemanticElements: browsers draw their own meter in their own colours
        <div
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={max}
          aria-valuenow={Math.min(value, max)}
          aria-valuetext={text}
          className="h-1.5 overflow-hidden rounded-full bg-raised"
        >
          <div
            className={cn("h-full rounded-full", share >= warnAt ? "bg-severity-2" : "bg-accent")}
            style={{ width: `${share * 100}%` }}
          />
        </div>
      )}
    </div>
  );
}
