import { ImageOff } from "lucide-react";
import { useState } from "react";
import { framePicture } from "@/api/addresses";
import type { Frame } from "@/api/types";

/** The small picture of a look, loaded when it comes near the screen. */
export function FrameThumbnail({ frame, alt }: { frame: Frame; alt: string }) {
  const [failed, setFailed] = useState(false);
  if (frame.pictures.length === 0 || failed) {
    return (
      <span className="grid aspect-video place-content-center bg-raised text-quiet">
        <ImageOff aria-label={alt} className="size-5" />
      </span>
    );
  }
  return (
    <img
      src={framePicture(frame.frame_uuid, "infer")}
      alt={alt}
      loading="lazy"
      onError={() => setFailed(true)}
      className="aspect-video w-full bg-black object-contain"
    />
  );
}
