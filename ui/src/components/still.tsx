import { ImageOff } from "lucide-react";
import { useTranslation } from "react-i18next";
import { usePicture } from "@/hooks/use-picture";
import { cn } from "./ui/class-names";
import { Skeleton } from "./ui/skeleton";

interface Props {
  src: string | null; // null: there is none
  alt: string;
  none?: string; // what is said where there is none
  troubled?: boolean; // something is told on top of it
  className?: string;
}

/** A picture in a box of 16:9 that is there before it. */
export function Still({ src, alt, none, troubled = false, className }: Props) {
  const { t } = useTranslation();
  const shown = usePicture(src);
  return (
    <div
      className={cn("@container relative aspect-video overflow-hidden", src ? "bg-black" : "bg-raised", className)}
    >
      {shown.src ? (
        <img
          src={shown.src}
          alt={alt}
          className={cn("size-full object-contain", troubled && "opacity-40 grayscale")}
        />
      ) : src && !shown.failed ? (
        <Skeleton className="size-full rounded-none" />
      ) : troubled ? null : (
        <div className="grid size-full place-content-center justify-items-center gap-2 bg-raised p-2 text-center text-quiet text-sm @max-[9rem]:p-1 @max-[9rem]:text-xs">
          <ImageOff aria-hidden="true" className="size-6 @max-[9rem]:hidden" />
          {src ? t("camera.pictureFailed") : (none ?? t("camera.noPicture"))}
        </div>
      )}
    </div>
  );
}
