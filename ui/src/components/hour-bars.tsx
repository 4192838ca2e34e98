interface Hour {
  at: number;
  looks: number;
  failed: number;
  events: number;
  label: string;
}

/** Looks by the hour: a bar for each, what failed on top in red, a dot where something happened. */
export function HourBars({ hours, label }: { hours: readonly Hour[]; label: string }) {
  const most = Math.max(1, ...hours.map((hour) => hour.looks));
  return (
    <ul aria-label={label} className="flex h-28 items-end gap-px">
      {hours.map((hour) => (
        <li key={hour.at} title={hour.label} className="relative flex h-full max-w-12 flex-1 flex-col justify-end">
          <span className="sr-only">{hour.label}</span>
          {hour.events > 0 && (
            <span aria-hidden="true" className="mx-auto mb-0.5 size-1.5 rounded-full bg-severity-2" />
          )}
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
        </li>
      ))}
    </ul>
  );
}
