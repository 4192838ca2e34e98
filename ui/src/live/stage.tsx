import type { ReactNode, Ref } from "react";
import { useTranslation } from "react-i18next";
import { framePicture } from "@/api/addresses";
import type { Camera } from "@/api/types";
import { Still } from "@/components/still";
import { cn } from "@/components/ui/class-names";
import type { PlayerView } from "./player";
import { isLive } from "./viewing";

interface Props {
  camera: Camera | undefined;
  name: string;
  view: PlayerView | null;
  video: Ref<HTMLVideoElement>;
  last: Ref<HTMLCanvasElement>;
  hasLast: boolean; // a picture was taken when the last stream ended
  isMuted: boolean;
  className?: string;
  children?: ReactNode;
}

/**
 * Pictures of a camera, one above the other: the still, which is there at once; the last picture of a stream that ended;
 * the video, from its first picture on.
 */
export function Stage({ camera, name, view, video, last, hasLast, isMuted, className, children }: Props) {
  const { t } = useTranslation();
  const viewing = view?.viewing;
  const isPlaying = viewing !== undefined && isLive(viewing) && viewing.seen && viewing.stream !== null;
  const isDim = viewing !== undefined && ["expired", "lost", "rejected"].includes(viewing.phase);
  const picture = camera?.latest_picture;
  return (
    <div className={cn("relative isolate aspect-video overflow-hidden bg-black", className)}>
      <Still
        src={picture ? framePicture(picture.frame_uuid, "infer") : null}
        alt={isPlaying || hasLast ? "" : t("live.still", { name })}
        className={cn("absolute inset-0 size-full", isDim && "opacity-40", isPlaying && "invisible")}
      />
      <canvas
        ref={last}
        role="img"
        aria-label={t("live.still", { name })}
        className={cn(
          "absolute inset-0 size-full bg-black object-contain",
          isDim && "opacity-40",
          (!hasLast || isPlaying || viewing?.phase === "rejected") && "hidden",
        )}
      />
      {/* Live pictures have no captions; sound is off until somebody wants it. */}
      <video
        ref={video}
        muted={isMuted}
        playsInline
        disablePictureInPicture
        aria-label={t("live.video", { name })}
        className={cn("absolute inset-0 size-full object-contain", !isPlaying && "invisible")}
      />
      {children}
    </div>
  );
}

/** Copies what a video element shows onto a canvas; whether there was anything. */
export function keepLastPicture(video: HTMLVideoElement | null, canvas: HTMLCanvasElement | null): boolean {
  if (!video || !canvas || video.videoWidth === 0 || video.readyState < 2) return false;
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d")?.drawImage(video, 0, 0);
  return true;
}
