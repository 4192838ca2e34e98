import { ImageOff } from "lucide-react";
import { useTranslation } from "react-i18next";
import { framePicture, type PictureKind } from "@/api/addresses";
import type { Frame } from "@/api/types";
import { aspectOf, placeBox } from "@/display/boxes";
import { usePicture } from "@/hooks/use-picture";
import { Skeleton } from "./ui/skeleton";

/** The best picture of a frame, at its true shape, with what the analyzer saw drawn on it. */
export function BoxedPicture({ frame, alt, boxes }: { frame: Frame; alt: string; boxes: boolean }) {
  const { t } = useTranslation();
  const kind: PictureKind = frame.pictures.includes("full") ? "full" : "infer";
  const shown = usePicture(frame.pictures.length > 0 ? framePicture(frame.frame_uuid, kind) : null);
  const aspect = aspectOf(frame, kind);
  return (
    <div className="grid place-items-center overflow-hidden rounded-xl border bg-black">
      {/* As wide as it can be without being taller than the screen. */}
      <div className="relative w-full" style={{ aspectRatio: aspect, maxWidth: `calc(62vh * ${aspect})` }}>
        {shown.src ? (
          <img src={shown.src} alt={alt} className="size-full object-fill" />
        ) : frame.pictures.length > 0 && !shown.failed ? (
          <Skeleton className="size-full rounded-none" />
        ) : (
          <div className="grid size-full place-content-center justify-items-center gap-2 bg-raised text-quiet text-sm">
            <ImageOff aria-hidden="true" className="size-8" />
            {frame.pictures.length > 0 ? t("camera.pictureFailed") : t("event.noPicture")}
          </div>
        )}
        {boxes && shown.src && <Boxes frame={frame} kind={kind} />}
      </div>
    </div>
  );
}

function Boxes({ frame, kind }: { frame: Frame; kind: PictureKind }) {
  return (
    <ul className="pointer-events-none absolute inset-0" data-testid="boxes">
      {frame.boxes.map((box) => {
        const placed = placeBox(box, frame, kind);
        if (!placed) return null;
        const { left, top, width, height } = placed;
        return (
          <li
            key={`${box.x1} ${box.y1} ${box.x2} ${box.y2} ${box.label}`}
            className="absolute rounded-xs border-2 border-amber-300 shadow-[0_0_0_1px_rgba(0,0,0,0.7)]"
            style={{ left: `${left}%`, top: `${top}%`, width: `${width}%`, height: `${height}%` }}
          >
            <BoxLabel label={box.label} conf={box.conf} above={top > 6} />
          </li>
        );
      })}
    </ul>
  );
}

function BoxLabel({ label, conf, above }: { label: string | null; conf: number | null; above: boolean }) {
  const { t, i18n } = useTranslation();
  if (!label && conf === null) return null;
  const name = label && i18n.exists(`box.${label}`) ? t(`box.${label}` as "box.person") : (label ?? "");
  return (
    <span
      className={`absolute left-[-2px] whitespace-nowrap bg-amber-300 px-1.5 font-medium text-black text-xs ${above ? "bottom-full" : "top-0"}`}
    >
      {name}
      {conf !== null && ` ${Math.round(conf * 100)}%`}
    </span>
  );
}
