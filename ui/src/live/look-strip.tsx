import { ArrowRight, Eye, Radio } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { framePicture } from "@/api/addresses";
import type { Frame } from "@/api/types";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { cn } from "@/components/ui/class-names";
import { severityOf } from "@/display/severity";
import { clockTime, hourAndMinute } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { usePhrases } from "@/hooks/use-phrases";
import { beside, nearest, SPAN_MS } from "./looks";

const MARKS = ["bg-severity-0/50", "bg-severity-1", "bg-severity-2", "bg-severity-3"] as const;
const STEP_MS = 5000;
const STEPS: Record<string, number> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  ArrowDown: -1,
  ArrowUp: 1,
  PageDown: -10,
  PageUp: 10,
};

interface Props {
  looks: readonly Frame[];
  /** Null: live. */
  chosen: Frame | null;
  onChoose: (look: Frame | null) => void;
}

/** Ten minutes of looks up to now: what belongs to an event stands out, a click shows what was recorded then. */
export function LookStrip({ looks, chosen, onChoose }: Props) {
  const { t, i18n } = useTranslation();
  const bar = useRef<HTMLDivElement>(null);
  const end = useNowBy(STEP_MS) + STEP_MS;
  const begin = end - SPAN_MS;
  const place = (at: number) => `${Math.min(100, Math.max(0, ((at - begin) / SPAN_MS) * 100))}%`;

  function click(event: MouseEvent): void {
    const box = bar.current?.getBoundingClientRect();
    if (!box?.width) return;
    const at = begin + ((event.clientX - box.left) / box.width) * SPAN_MS;
    // Beyond the newest look is now.
    const newest = looks.at(-1)?.captured_at ?? 0;
    onChoose(at > newest + STEP_MS ? null : (nearest(looks, at) ?? null));
  }

  function press(event: KeyboardEvent): void {
    const by = STEPS[event.key];
    if (by === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    if (event.key === "End") onChoose(null);
    else if (event.key === "Home") onChoose(looks[0] ?? null);
    else onChoose(beside(looks, chosen, by ?? 0));
  }

  const shown = chosen ? clockTime(chosen.captured_at, i18n.language) : t("live.looks.now");
  return (
    <div className="px-4 pt-3">
      <div
        ref={bar}
        role="slider"
        tabIndex={0}
        aria-label={t("live.looks.title")}
        aria-valuemin={Math.round(begin / 1000)}
        aria-valuemax={Math.round(end / 1000)}
        aria-valuenow={Math.round(Math.min(end, Math.max(begin, chosen?.captured_at ?? end)) / 1000)}
        aria-valuetext={shown}
        onClick={click}
        onKeyDown={press}
        className="relative h-8 cursor-pointer overflow-hidden rounded-md border bg-raised"
      >
        {looks.map((look) => (
          <span
            key={look.frame_uuid}
            aria-hidden="true"
            className={cn(
              "absolute bottom-0 w-0.5",
              look.event_uuid ? `h-full w-1 ${MARKS[severityOf(look.severity)]}` : "h-2 bg-quiet/50",
            )}
            style={{ left: place(look.captured_at) }}
          />
        ))}
        <span
          aria-hidden="true"
          className="-translate-x-1/2 absolute inset-y-0 w-1 rounded bg-accent"
          style={{ left: chosen ? place(chosen.captured_at) : "calc(100% - 2px)" }}
        />
      </div>
      <div aria-hidden="true" className="flex justify-between pt-1 text-quiet text-xs tabular-nums">
        <span>{hourAndMinute(begin, i18n.language)}</span>
        <span className="font-medium text-text">{chosen && shown}</span>
        <span>{t("live.looks.now")}</span>
      </div>
    </div>
  );
}

/** What was recorded, over the live picture. */
export function RecordedLook({ look, name, onBack }: { look: Frame; name: string; onBack: () => void }) {
  const { t, i18n } = useTranslation();
  const { eventPhrase } = usePhrases();
  const time = clockTime(look.captured_at, i18n.language);
  const kind = look.pictures.includes("full") ? "full" : "infer";
  return (
    <section aria-label={t("live.looks.recorded", { time })} className="absolute inset-0 bg-black text-white">
      <img
        src={framePicture(look.frame_uuid, kind)}
        alt={t("live.looks.picture", { name, time })}
        className="size-full object-contain"
      />
      <div className="absolute inset-x-0 top-0 flex flex-wrap items-center gap-2 bg-black/70 px-3 py-2">
        <Badge className="border-white/50 tabular-nums">{t("live.looks.recorded", { time })}</Badge>
        {look.event_uuid && (
          <Link
            to={`/events/${look.event_uuid}`}
            className="inline-flex items-center gap-1 rounded text-sm underline underline-offset-4"
          >
            <Eye aria-hidden="true" className="size-4" />
            {eventPhrase(look.primary_event)}
            <ArrowRight aria-hidden="true" className="size-4" />
          </Link>
        )}
        <Button variant="outline" size="small" className="ml-auto" onClick={onBack}>
          <Radio aria-hidden="true" />
          {t("live.looks.back")}
        </Button>
      </div>
    </section>
  );
}
