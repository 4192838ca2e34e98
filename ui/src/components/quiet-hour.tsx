import { ChevronLeft, ChevronRight, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useQuietFrames } from "@/api/camera";
import type { Camera, CameraLooks, Frame } from "@/api/types";
import { HOUR_MS, nothingQuiet } from "@/display/looks-day";
import { clockTime, dateAndTime, spanText } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/looks";
import { moveFocus } from "./arrow-focus";
import { BoxedPicture } from "./boxed-picture";
import { FrameThumbnail } from "./frame-thumbnail";
import { Loaded } from "./loaded";
import { More } from "./more";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";
import { Dialog } from "./ui/dialog";
import { Skeleton } from "./ui/skeleton";

const useWords = addWords("looks", words);

const GRID = "grid grid-cols-[repeat(auto-fill,minmax(6.25rem,1fr))] gap-2";
const SKELETONS = ["a", "b", "c", "d", "e", "f"];

interface Props {
  camera: Camera;
  /** Its beginning. */
  hour: number;
  /** Under which it stands. */
  day: string;
  looks: CameraLooks;
  /** Another hour, or none. */
  onHour: (at: number | null) => void;
}

/** What an hour looked like while nothing happened: the pictures that were kept all the same. */
export function QuietHour({ camera, hour, day, looks, onHour }: Props) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const now = useNowBy(60_000);
  const query = useQuietFrames(camera.camera_id, hour);
  const found = query.data?.pages.flatMap((page) => page.frames);
  const figures = looks.hours.find((one) => one.hour_at === hour);
  const stepTo = (at: number) =>
    at <= now && looks.hours.some((one) => one.hour_at === at) ? () => onHour(at) : null;
  const time = spanText(hour, hour + HOUR_MS, day, i18n.language);
  const title = useRef<HTMLDivElement>(null);
  // On a telephone it is below the screen's edge.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another hour was chosen
  useEffect(() => void title.current?.scrollIntoView?.({ block: "nearest" }), [hour]);
  return (
    <section aria-labelledby="hour-title" className="grid gap-3 border-t pt-3">
      <div ref={title} className="flex scroll-mb-40 items-center gap-1">
        <h3 id="hour-title" className="min-w-0 flex-1 font-semibold text-sm tabular-nums">
          {t("hour", { time })}
        </h3>
        <Step label={t("hourBefore")} Icon={ChevronLeft} onStep={stepTo(hour - HOUR_MS)} />
        <Step label={t("hourAfter")} Icon={ChevronRight} onStep={stepTo(hour + HOUR_MS)} />
        <Button
          variant="ghost"
          size="icon"
          className="size-9"
          aria-label={shared("action.close")}
          onClick={() => onHour(null)}
        >
          <X aria-hidden="true" />
        </Button>
      </div>
      {figures && figures.events > 0 && (
        <Link
          to={`/events?camera=${encodeURIComponent(camera.camera_id)}&at=${hour + HOUR_MS}`}
          className="justify-self-start text-accent text-sm underline-offset-4 hover:underline"
        >
          {t("events")} ({figures.events})
        </Link>
      )}
      <Loaded query={{ ...query, data: found }} waiting={<Waiting />}>
        {(frames) =>
          frames.length === 0 && !query.hasNextPage ? (
            <p className="rounded-lg border border-dashed px-4 py-6 text-center text-quiet text-sm">
              {t(`none.${nothingQuiet(figures, looks.counted_until)}`)}
            </p>
          ) : (
            <Pictures key={hour} frames={frames} name={camera.name} />
          )
        }
      </Loaded>
      {found && found.length + Number(query.hasNextPage) > 0 && <More query={query} />}
    </section>
  );
}

interface StepProps {
  label: string;
  Icon: typeof X;
  /** Null: there is nothing there. */
  onStep: (() => void) | null;
}

function Step({ label, Icon, onStep }: StepProps) {
  return (
    <Button
      variant="ghost"
      size="icon"
      className={cn("size-9", !onStep && "opacity-60")}
      aria-label={label}
      // Not disabled: whoever goes on by it would lose the focus at the end.
      aria-disabled={!onStep}
      onClick={() => onStep?.()}
    >
      <Icon aria-hidden="true" />
    </Button>
  );
}

/** Small, the newest first; a click shows one large. Arrow keys go from one to the next. */
function Pictures({ frames, name }: { frames: readonly Frame[]; name: string }) {
  const { t, i18n } = useWords();
  const [shown, setShown] = useState<string | null>(null);
  const place = frames.findIndex((frame) => frame.frame_uuid === shown);

  return (
    <>
      <ul aria-label={t("pictures")} onKeyDown={moveFocus} className={GRID}>
        {frames.map((frame, at) => (
          <li key={frame.frame_uuid}>
            <button
              type="button"
              tabIndex={at === Math.max(0, place) ? 0 : -1}
              onClick={() => setShown(frame.frame_uuid)}
              className="block w-full overflow-hidden rounded-md border bg-surface text-left hover:bg-raised"
            >
              <FrameThumbnail
                frame={frame}
                alt={t("picture", { name, time: clockTime(frame.captured_at, i18n.language) })}
              />
              <span aria-hidden="true" className="block px-2 py-1 text-quiet text-xs tabular-nums">
                {clockTime(frame.captured_at, i18n.language)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <Large frames={frames} place={place} name={name} onShow={setShown} />
    </>
  );
}

interface LargeProps {
  frames: readonly Frame[];
  /** Which of them is shown; -1: none. */
  place: number;
  name: string;
  onShow: (uuid: string | null) => void;
}

function Large({ frames, place, name, onShow }: LargeProps) {
  const { t, i18n } = useWords();
  const frame = frames[place];
  if (!frame) return null;
  // Time goes to the right, and the newest is first.
  const [earlier, later] = [frames[place + 1], frames[place - 1]];
  const stepTo = (to: Frame | undefined) => (to ? () => onShow(to.frame_uuid) : null);
  const time = dateAndTime(frame.captured_at, i18n.language);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons below do the same
    <div
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") stepTo(earlier)?.();
        if (event.key === "ArrowRight") stepTo(later)?.();
      }}
    >
      <Dialog open onClose={() => onShow(null)} title={time} className="w-[min(72rem,calc(100vw-1.5rem))]">
        <BoxedPicture frame={frame} alt={t("picture", { name, time })} boxes={false} />
        <div className="flex justify-between gap-2">
          <Step label={t("pictureEarlier")} Icon={ChevronLeft} onStep={stepTo(earlier)} />
          <Step label={t("pictureLater")} Icon={ChevronRight} onStep={stepTo(later)} />
        </div>
      </Dialog>
    </div>
  );
}

function Waiting() {
  return (
    <div aria-busy="true" className={GRID}>
      {SKELETONS.map((name) => (
        <Skeleton key={name} className="aspect-[4/3]" />
      ))}
    </div>
  );
}
