import { type MouseEvent, memo, useMemo } from "react";
import { Link, useNavigate } from "react-router";
import { useDayStrips } from "@/api/search";
import {
  barShare,
  bucketsOf,
  type DayStrips,
  momentAt,
  only,
  type StripHour,
  type StripRow,
  stripHours,
  stripRows,
} from "@/display/day-strip";
import { severityOf } from "@/display/severity";
import { hourAndMinute } from "@/display/times";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/wall";
import { cn } from "./ui/class-names";
import { Skeleton } from "./ui/skeleton";

const useWords = addWords("wall", words);

const BARS = ["bg-severity-0/60", "bg-severity-1", "bg-severity-2", "bg-severity-3"] as const;
const MARKS = ["fill-severity-0/60", "fill-severity-1", "fill-severity-2", "fill-severity-3"] as const;

/** What happened in the last 24 hours at the cameras that are shown; a click leads to that time. */
export const DayStrip = memo(function DayStrip({ cameraIds }: { cameraIds: ReadonlySet<string> }) {
  const { t } = useWords();
  const { data, error } = useDayStrips();
  const strips = useMemo(() => (data ? only(data, cameraIds) : null), [data, cameraIds]);
  return (
    <section aria-labelledby="day-title">
      <h2 id="day-title" className="mb-2 font-semibold">
        {t("day")}
      </h2>
      <div className="h-56 rounded-xl border bg-surface p-3">
        {strips ? (
          <Strips strips={strips} />
        ) : error ? (
          <p className="py-10 text-center text-quiet text-sm">{t("dayFailed")}</p>
        ) : (
          <Skeleton className="size-full" />
        )}
      </div>
    </section>
  );
});

function Strips({ strips }: { strips: DayStrips }) {
  const { t, i18n } = useWords();
  const hours = useMemo(() => stripHours(strips), [strips]);
  const rows = useMemo(() => stripRows(strips), [strips]);
  return (
    <div className="flex h-full flex-col">
      <Hours hours={hours} />
      <div aria-hidden="true" className="mt-1 flex justify-between text-quiet text-xs tabular-nums">
        {[strips.from_at, hours[Math.floor(hours.length / 2)]?.at ?? 0, strips.to_at].map((at) => (
          <span key={at}>{hourAndMinute(at, i18n.language)}</span>
        ))}
      </div>
      {rows.length === 0 ? (
        <p className="m-auto text-center text-quiet text-sm">
          {strips.counted_until > strips.from_at
            ? t("dayQuiet", { time: hourAndMinute(strips.counted_until, i18n.language) })
            : t("dayUncounted")}
        </p>
      ) : (
        <ul aria-label={t("dayCameras")} className="mt-2 min-h-0 flex-1 overflow-y-auto border-t pt-1">
          {rows.map((row) => (
            <CameraRow key={row.cameraId} row={row} strips={strips} />
          ))}
        </ul>
      )}
    </div>
  );
}

function Hours({ hours }: { hours: readonly StripHour[] }) {
  const { t, i18n } = useWords();
  const most = Math.max(1, ...hours.map((hour) => hour.events));
  const label = ({ at, end, events }: StripHour) =>
    t("hour", {
      time: `${hourAndMinute(at, i18n.language)}–${hourAndMinute(end, i18n.language)}`,
      count: events,
    });
  return (
    <ul aria-label={t("dayHours")} className="flex h-14 shrink-0 gap-px">
      {hours.map((hour) => (
        <li key={hour.at} className="min-w-0 flex-1">
          <Link
            to={`/events?at=${hour.end}`}
            aria-label={label(hour)}
            title={label(hour)}
            className="flex h-full flex-col justify-end rounded-sm hover:bg-raised focus-visible:-outline-offset-2"
          >
            <span
              aria-hidden="true"
              className={cn(
                "block min-h-px rounded-t-sm",
                hour.events > 0 ? BARS[severityOf(hour.severity)] : "bg-line",
              )}
              style={{ height: hour.events > 0 ? `${barShare(hour.events, most) * 100}%` : "1px" }}
            />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function CameraRow({ row, strips }: { row: StripRow; strips: DayStrips }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const events = `/events?camera=${encodeURIComponent(row.cameraId)}`;
  const buckets = bucketsOf(strips);

  /** A click on the strip means its time; with the keyboard there is none. */
  function jump(event: MouseEvent<HTMLAnchorElement>): void {
    const strip = event.currentTarget.querySelector("svg")?.getBoundingClientRect();
    if (!strip || event.detail === 0 || event.clientX < strip.left || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    void navigate(`${events}&at=${momentAt(strips, (event.clientX - strip.left) / strip.width)}`);
  }

  return (
    <li>
      <Link
        to={events}
        onClick={jump}
        aria-label={t("row", { name: row.name, count: row.events })}
        title={t("row", { name: row.name, count: row.events })}
        className="flex h-6 items-center gap-2 rounded-sm px-1 hover:bg-raised focus-visible:-outline-offset-2"
      >
        <span className="w-24 shrink-0 truncate text-xs sm:max-xl:w-48">{row.name}</span>
        <svg
          aria-hidden="true"
          viewBox={`0 0 ${buckets} 10`}
          preserveAspectRatio="none"
          className="h-3 min-w-0 flex-1 rounded-sm bg-raised"
        >
          {row.marks.map(({ place, severity }) => (
            <rect key={place} x={place} y={0} width={1} height={10} className={MARKS[severityOf(severity)]} />
          ))}
        </svg>
        <span className="w-7 shrink-0 text-right text-quiet text-xs tabular-nums">{row.events}</span>
      </Link>
    </li>
  );
}
