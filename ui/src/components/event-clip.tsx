import { Film, LoaderCircle } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { eventClip, framePicture } from "@/api/addresses";
import type { Clip, EventDetail } from "@/api/types";
import { dateAndTime, durationText } from "@/display/times";
import { usePhrases } from "@/hooks/use-phrases";

/** The short film of an event: to be played, on its way, or why there is none. */
export function EventClip({ event }: { event: EventDetail }) {
  const { t } = useTranslation();
  const { tagLabel } = usePhrases();
  const { clip } = event;
  if (!clip) return null;
  if (clip.state === "ready") return <Player event={event} clip={clip} />;
  if (clip.state === "asked") {
    return (
      <output className="flex items-center gap-2 text-quiet text-sm">
        <LoaderCircle aria-hidden="true" className="size-4 animate-spin motion-reduce:animate-none" />
        {t("clip.asked")}
      </output>
    );
  }
  return (
    <p className="flex items-center gap-2 text-quiet text-sm">
      <Film aria-hidden="true" className="size-4 shrink-0" />
      {clip.reason ? t("clip.none", { reason: tagLabel(clip.reason) }) : t("clip.noneUnknown")}
    </p>
  );
}

function Player({ event, clip }: { event: EventDetail; clip: Clip }) {
  const { t, i18n } = useTranslation();
  // Not every browser plays H.265: what it can't play it asks for again, made anew, and gives out as it is.
  const [way, setWay] = useState<"as-sent" | "converting" | "converted" | "failed">("as-sent");
  const isAsSent = way === "as-sent";
  const address = eventClip(event.event_uuid);
  const time = dateAndTime(clip.begin_at, i18n.language);
  const best = event.best_frame;
  const poster = best && best.pictures.length > 0 ? framePicture(best.frame_uuid, "infer") : undefined;
  const isSized = clip.width > 0 && clip.height > 0;
  return (
    <figure className="grid gap-2">
      <div className="grid place-items-center overflow-hidden rounded-xl border bg-black">
        {/* Cameras' clips have no sound. */}
        <video
          controls
          muted
          playsInline
          preload="metadata"
          src={isAsSent ? address : eventClip(event.event_uuid, true)}
          poster={poster}
          aria-label={t("clip.label", { camera: event.camera_name, time })}
          onError={() => setWay(isAsSent ? "converting" : "failed")}
          onLoadedMetadata={() => setWay(isAsSent ? "as-sent" : "converted")}
          className="max-h-[62vh] w-full"
          style={isSized ? { aspectRatio: clip.width / clip.height } : undefined}
        />
      </div>
      <figcaption className="flex flex-wrap gap-x-3 text-sm tabular-nums">
        <span>{t("clip.caption", { time, length: durationText(clip.end_at - clip.begin_at) })}</span>
        <a
          href={address}
          download={`${event.camera_id}-${event.event_uuid}.mp4`}
          className="text-accent underline-offset-4 hover:underline"
        >
          {t("clip.download")}
        </a>
      </figcaption>
      {(way === "converting" || way === "converted") && (
        <output className="text-quiet text-sm">{t(`clip.${way}`)}</output>
      )}
      {way === "failed" && (
        <p role="alert" className="text-quiet text-sm">
          {t("clip.failed")}
        </p>
      )}
    </figure>
  );
}
