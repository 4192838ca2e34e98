import { ZoomIn, ZoomOut } from "lucide-react";
import { type KeyboardEvent, useMemo, useRef } from "react";
import { useTimeline } from "@/api/search";
import { severityOf } from "@/display/severity";
import { bucketMs, spanOf, stepsOf, type TimeStep, ZOOMS, type Zoom } from "@/display/timeline";
import { dayOf, hourAndMinute, startOfDay, startOfNextDay } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/timeline";
import { DayChoice } from "./day-choice";
import { Loaded } from "./loaded";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";
import { Skeleton } from "./ui/skeleton";

const useWords = addWords("timeline", words);

const BARS = ["bg-severity-0/60", "bg-severity-1", "bg-severity-2", "bg-severity-3"] as const;
/** So many events fill the bar. */
const FULL_BAR: Record<Zoom, number> = { "1h": 12, "15m": 6, "5m": 3 };

interface Props {
  day: string;
  onDay: (day: string) => void;
  zoom: Zoom;
  onZoom: (zoom: Zoom) => void;
  /** The chosen moment: the end of a step. */
  at: number | null;
  onAt: (at: number) => void;
  cameraIds?: readonly string[];
  sites?: readonly string[];
}

/** A day from its end to its beginning. A click on a step goes to that time: the day and the step are two clicks. */
export function DayTimeline({ day, onDay, zoom, onZoom, at, onAt, cameraIds = [], sites = [] }: Props) {
  const { t, i18n } = useWords();
  const now = useNowBy(60_000);
  const today = dayOf(now);
  const place = ZOOMS.indexOf(zoom);
  const asked = useMemo(() => {
    const whole = { from: startOfDay(day) ?? 0, to: startOfNextDay(day) ?? 0 };
    const span = spanOf(whole, zoom, at ?? Math.min(now, whole.to));
    return {
      ...span,
      bucket: zoom,
      ...(cameraIds.length > 0 ? { camera_id: [...cameraIds] } : {}),
      ...(sites.length > 0 ? { site: [...sites] } : {}),
    };
  }, [day, zoom, at, now, cameraIds, sites]);
  const query = useTimeline(asked);
  return (
    <section aria-label={t("title")} className="grid content-start gap-2">
      <DayChoice day={day} today={today} onDay={onDay} />
      <div className="flex items-center justify-between gap-2 text-quiet text-xs">
        <span>{t(`step.${zoom}`)}</span>
        <div className="flex gap-1">
          <ZoomButton label={t("zoomOut")} Icon={ZoomOut} to={ZOOMS[place - 1]} onZoom={onZoom} />
          <ZoomButton label={t("zoomIn")} Icon={ZoomIn} to={ZOOMS[place + 1]} onZoom={onZoom} />
        </div>
      </div>
      <Loaded query={query} waiting={<Skeleton className="h-[36rem] w-full" />}>
        {(timeline) => (
          <Steps steps={stepsOf(timeline, now)} zoom={zoom} at={at} onAt={onAt} language={i18n.language} />
        )}
      </Loaded>
    </section>
  );
}

interface ZoomButtonProps {
  label: string;
  Icon: typeof ZoomIn;
  to: Zoom | undefined;
  onZoom: (zoom: Zoom) => void;
}

function ZoomButton({ label, Icon, to, onZoom }: ZoomButtonProps) {
  return (
    <Button
      variant="ghost"
      size="icon"
      className="size-8"
      aria-label={label}
      disabled={!to}
      onClick={() => to && onZoom(to)}
    >
      <Icon aria-hidden="true" />
    </Button>
  );
}

interface StepsProps {
  steps: readonly TimeStep[];
  zoom: Zoom;
  at: number | null;
  onAt: (at: number) => void;
  language: string;
}

const KEYS: Record<string, number> = { ArrowUp: -1, ArrowDown: 1, PageUp: -12, PageDown: 12 };

function Steps({ steps, zoom, at, onAt, language }: StepsProps) {
  const { t } = useWords();
  const ref = useRef<HTMLOListElement>(null);
  const chosen = steps.findIndex((step) => step.end === at);

  function move(event: KeyboardEvent): void {
    const by = KEYS[event.key];
    const buttons = [...(ref.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const here = buttons.indexOf(document.activeElement as HTMLElement);
    if (by === undefined || here < 0) return;
    event.preventDefault();
    buttons[Math.min(buttons.length - 1, Math.max(0, here + by))]?.focus();
  }

  if (steps.length === 0) return <p className="py-8 text-center text-quiet text-sm">{t("future")}</p>;
  return (
    <ol
      ref={ref}
      aria-label={t("steps")}
      onKeyDown={move}
      className="max-h-[calc(100dvh-14rem)] overflow-y-auto rounded-lg border bg-surface py-1 max-lg:max-h-80"
    >
      {steps.map((step, place) => (
        <li key={step.at}>
          <button
            type="button"
            // One stop for the whole column; arrows go on from there.
            tabIndex={place === Math.max(0, chosen) ? 0 : -1}
            aria-current={step.end === at ? "time" : undefined}
            aria-label={label(step)}
            title={label(step)}
            onClick={() => onAt(step.end)}
            className={cn(
              "flex w-full items-center gap-2 px-2 hover:bg-raised focus-visible:-outline-offset-2",
              zoom === "1h" ? "h-6" : "h-4",
              step.end === at && "bg-accent-soft",
            )}
          >
            <span aria-hidden="true" className="w-10 shrink-0 text-left text-quiet text-xs tabular-nums leading-none">
              {isMarked(step, zoom) ? hourAndMinute(step.at, language) : ""}
            </span>
            <Bar step={step} zoom={zoom} />
          </button>
        </li>
      ))}
    </ol>
  );

  function label(step: TimeStep): string {
    const time = `${hourAndMinute(step.at, language)}–${hourAndMinute(step.end, language)}`;
    if (step.events > 0) return t("events", { time, count: step.events });
    return t(`looked.${step.looked}`, { time });
  }
}

/** Every hour has its number, with small steps every quarter. */
function isMarked(step: TimeStep, zoom: Zoom): boolean {
  const every = zoom === "5m" ? bucketMs("15m") : bucketMs("1h");
  return new Date(step.at).getTime() % every === 0;
}

function Bar({ step, zoom }: { step: TimeStep; zoom: Zoom }) {
  const share = Math.min(1, step.events / FULL_BAR[zoom]);
  return (
    <span aria-hidden="true" className="flex h-2.5 flex-1 items-center">
      {step.events > 0 ? (
        <span
          className={cn("h-full min-w-2 rounded-sm", BARS[severityOf(step.severity)])}
          style={{ width: `${share * 100}%` }}
        />
      ) : (
        <span
          className={cn(
            "w-full border-t",
            step.looked === "failed" && "border-severity-2 border-dashed",
            (step.looked === "none" || step.looked === "watched") && "border-quiet border-dotted",
            step.looked === "unknown" && "border-transparent",
          )}
        />
      )}
    </span>
  );
}
