import { useTranslation } from "react-i18next";
import { useWhy } from "@/api/camera";
import { Loaded } from "./loaded";
import { Skeleton } from "./ui/skeleton";

/** Why a camera is looked at, or is not, in the server's words: the reason first, then what led to it. */
export function WhyLines({ cameraId }: { cameraId: string }) {
  const { i18n } = useTranslation();
  const query = useWhy(cameraId);
  return (
    <Loaded query={query} waiting={<Skeleton aria-busy="true" className="h-12 w-full" />}>
      {({ lines }) => (
        <ul className="grid gap-1 text-sm">
          {lines.map((line, place) => (
            <li key={line.code} className={place === 0 ? "" : "text-quiet"}>
              {i18n.language === "en" ? line.text_en : line.text_ja}
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}
