import { useTranslation } from "react-i18next";
import { useOfNow } from "@/hooks/use-now";
import { Badge } from "./ui/badge";
import { cn } from "./ui/class-names";

const BEAT_MS = 2000;

/**
 * Pulses and never spins: a spinner reads as loading. It beats with the page's clock: an animation without end draws
 * sixty times a second, and a wall has many of these.
 */
export function OngoingBadge({ textClassName }: { textClassName?: string }) {
  const { t } = useTranslation();
  const isWide = useOfNow((now) => Math.floor(now / BEAT_MS) % 2) === 1;
  return (
    <Badge className="border-live/40 bg-live/10 text-live">
      <span aria-hidden="true" className="relative flex size-2">
        <span
          className={cn(
            "absolute inline-flex size-full rounded-full bg-live opacity-40 motion-reduce:scale-100",
            isWide && "scale-175",
          )}
        />
        <span className="relative inline-flex size-2 rounded-full bg-live" />
      </span>
      <span className={textClassName}>{t("event.ongoing")}</span>
    </Badge>
  );
}
