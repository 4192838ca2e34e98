import { moveFocus } from "./arrow-focus";
import { cn } from "./ui/class-names";

interface Hour {
  at: number;
  looks: number;
  failed: number;
  events: number;
  label: string;
}

interface Props {
  hours: readonly Hour[];
  label: string;
  /** Hours can be chosen: which one is, up to when there are any, and what happens then. */
  choice?: { chosen: number | null; until: number; onChoose: (at: number) => void };
}

/** Looks by the hour: a bar for each, what failed on top in red, a dot where something happened. */
export function HourBars({ hours, label, choice }: Props) {
  const most = Math.max(1, ...hours.map((hour) => hour.looks));
  const within = hours.filter((hour) => choice && hour.at <= choice.until);
  const stop = within.find((hour) => hour.at === choice?.chosen) ?? within.at(-1);
  return (
    <ul aria-label={label} onKeyDown={choice && moveFocus} className="flex h-28 items-end gap-px">
      {hours.map((hour) => (
        <li key={hour.at} title={hour.label} className="relative flex h-full max-w-12 flex-1 flex-col justify-end">
          {choice ? (
            <button
              type="button"
              aria-pressed={hour.at === choice.chosen}
              aria-label={hour.label}
              disabled={hour.at > choice.until}
              tabIndex={hour === stop ? 0 : -1}
              onClick={() => choice.onChoose(hour.at)}
              className={cn(
                "flex h-full flex-col justify-end rounded-sm focus-visible:-outline-offset-2 enabled:hover:bg-raised",
                hour.at === choice.chosen &&
                  "bg-accent-soft ring-2 ring-accent ring-inset enabled:hover:bg-accent-soft",
              )}
            >
              {hour.looks === 0 && hour.at <= choice.until && (
                <span aria-hidden="true" className="border-quiet border-t border-dotted" />
              )}
              <Bar hour={hour} most={most} />
            </button>
          ) : (
            <>
              <span className="sr-only">{hour.label}</span>
              <Bar hour={hour} most={most} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function Bar({ hour, most }: { hour: Hour; most: number }) {
  return (
    <>
      {hour.events > 0 && <span aria-hidden="true" className="mx-auto mb-0.5 size-1.5 rounded-full bg-severity-2" />}
      <span
        aria-hidden="true"
        className="block rounded-t-sm bg-accent/70"
        style={{ height: `${(hour.looks / most) * 80}%` }}
      >
        <span
          className="block rounded-t-sm bg-severity-3"
          style={{ height: hour.looks ? `${(hour.failed / hour.looks) * 100}%` : 0 }}
        />
      </span>
    </>
  );
}
