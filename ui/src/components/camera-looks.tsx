import { History } from "lucide-react";
import { useState } from "react";
import { useCameraLooks } from "@/api/camera";
import type { Camera, CameraLooks as Looks } from "@/api/types";
import { chosenHour, looksDay, quietOf, spanParts, totalOf } from "@/display/looks-day";
import { numberText } from "@/display/sizes";
import { pausedTime } from "@/display/timeline";
import { dateText, dayOf, durationText, hourAndMinute, spanText, startOfDay } from "@/display/times";
import { useAddress } from "@/hooks/use-address";
import { useNowBy } from "@/hooks/use-now";
import { usePhrases } from "@/hooks/use-phrases";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/looks";
import { DayChoice } from "./day-choice";
import { HourBars } from "./hour-bars";
import { Loaded } from "./loaded";
import { QuietHour } from "./quiet-hour";
import { Button } from "./ui/button";
import { Card } from "./ui/card";
import { cn } from "./ui/class-names";
import { Skeleton } from "./ui/skeleton";
import { Cell, Row, Table } from "./ui/table";

const useWords = addWords("looks", words);

const GAPS_SHOWN = 5;

/** Whether a camera was looked at, and what it looked like while nothing happened: a day, its gaps, an hour's pictures. */
export function CameraLooks({ camera }: { camera: Camera }) {
  const { t, i18n } = useWords();
  const { address, patch } = useAddress();
  const now = useNowBy(60_000);
  const day = looksDay(address, now);
  const shown = day ?? dayOf(now);
  const hour = chosenHour(address);
  const query = useCameraLooks(camera.camera_id, day);
  const title = day === null ? t("last") : dateText(startOfDay(day) ?? now, i18n.language);
  return (
    <Card className="grid gap-3 p-4">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="mr-auto font-semibold text-sm">{title}</h2>
        {day !== null && (
          <Button variant="ghost" size="small" onClick={() => patch({ day: null, hour: null })}>
            <History aria-hidden="true" />
            {t("last")}
          </Button>
        )}
        <div className="max-sm:w-full">
          <DayChoice day={day} today={dayOf(now)} onDay={(chosen) => patch({ day: chosen, hour: null })} />
        </div>
      </div>
      <Loaded query={query} waiting={<Skeleton className="h-44 w-full" />}>
        {(looks) => (
          <div
            aria-busy={query.isPlaceholderData}
            className={cn("grid gap-3", query.isPlaceholderData && "opacity-60")}
          >
            <Hours
              looks={looks}
              hour={hour}
              now={now}
              onHour={(at) => patch({ hour: at === hour ? null : String(at) })}
            />
            <Gaps key={day} looks={looks} day={shown} />
            {hour !== null && (
              <QuietHour
                camera={camera}
                hour={hour}
                day={shown}
                looks={looks}
                onHour={(at) => patch({ hour: at === null ? null : String(at) })}
              />
            )}
          </div>
        )}
      </Loaded>
    </Card>
  );
}

interface HoursProps {
  looks: Looks;
  hour: number | null;
  now: number;
  onHour: (at: number) => void;
}

function Hours({ looks, hour, now, onHour }: HoursProps) {
  const { t, i18n } = useWords();
  const { tagLabel } = usePhrases();
  if (totalOf(looks, "looks") === 0) return <p className="text-quiet text-sm">{t("noFigures")}</p>;
  const quiet = quietOf(looks, now);
  const lost = totalOf(looks, "lost");
  const middle = looks.hours[Math.floor(looks.hours.length / 2)];
  const bars = looks.hours.map((one) => ({
    at: one.hour_at,
    looks: one.looks,
    failed: one.looks_failed,
    events: one.events,
    label: t("bar", {
      time: hourAndMinute(one.hour_at, i18n.language),
      looks: numberText(one.looks, i18n.language),
      failed: numberText(one.looks_failed, i18n.language),
      events: numberText(one.events, i18n.language),
    }),
  }));
  return (
    <div className="grid gap-2">
      <p className="text-quiet text-sm tabular-nums">
        {[
          t("looksTotal", { count: totalOf(looks, "looks") }),
          t("failedTotal", { count: totalOf(looks, "looks_failed") }),
          ...(lost > 0 ? [t("lostTotal", { count: lost })] : []),
          t("eventsTotal", { count: totalOf(looks, "events") }),
        ].join(" · ")}
      </p>
      {quiet && <p className="text-sm">{t(`quiet.${quiet}`)}</p>}
      {pausedTime(looks.pauses).map(({ cause, ms }) => (
        <p key={cause.id} className="text-quiet text-sm tabular-nums">
          {t("paused", { cause: tagLabel(cause), time: durationText(ms) })}
        </p>
      ))}
      <div>
        <HourBars hours={bars} label={t("chart")} choice={{ chosen: hour, until: now, onChoose: onHour }} />
        <div aria-hidden="true" className="mt-1 flex justify-between text-quiet text-xs tabular-nums">
          <span>{hourAndMinute(looks.from_at, i18n.language)}</span>
          {middle && <span>{hourAndMinute(middle.hour_at, i18n.language)}</span>}
          <span>{hourAndMinute(looks.to_at, i18n.language)}</span>
        </div>
      </div>
      {hour === null && <p className="text-quiet text-xs">{t("choose")}</p>}
    </div>
  );
}

/** When nobody looked, and why. */
function Gaps({ looks, day }: { looks: Looks; day: string }) {
  const { t, i18n } = useWords();
  const { tagLabel } = usePhrases();
  const [all, setAll] = useState(false);
  const { gaps } = looks;
  const length = (ms: number) => {
    const { hours, minutes } = spanParts(ms);
    const parts = [
      ...(hours > 0 ? [t("hours", { count: hours })] : []),
      ...(minutes > 0 ? [t("minutes", { count: minutes })] : []),
    ];
    return parts.join(" ");
  };
  if (gaps.length === 0 && totalOf(looks, "looks") === 0) return null;
  return (
    <section aria-labelledby="gaps-title" className="grid gap-2">
      <h3 id="gaps-title" className="font-semibold text-sm">
        {t("gaps")}
      </h3>
      {gaps.length === 0 ? (
        <p className="text-quiet text-sm">{t("noGaps")}</p>
      ) : (
        <Table label={t("gaps")} headings={[t("time"), t("length"), t("why")]} narrow>
          {(all ? gaps : gaps.slice(0, GAPS_SHOWN)).map((gap) => (
            <Row key={gap.start_at}>
              <Cell column={0} className="tabular-nums">
                {spanText(gap.start_at, gap.end_at, day, i18n.language)}
              </Cell>
              <Cell column={1} className="whitespace-nowrap tabular-nums">
                {length(gap.end_at - gap.start_at)}
              </Cell>
              <Cell column={2} className={cn(!gap.cause && "text-quiet")}>
                {gap.cause ? tagLabel(gap.cause) : t("noCause")}
              </Cell>
            </Row>
          ))}
        </Table>
      )}
      {gaps.length > GAPS_SHOWN && !all && (
        <Button variant="ghost" size="small" className="justify-self-start" onClick={() => setAll(true)}>
          {t("allGaps", { count: gaps.length })}
        </Button>
      )}
    </section>
  );
}
