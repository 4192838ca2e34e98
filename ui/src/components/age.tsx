import { useTranslation } from "react-i18next";
import { ageOf } from "@/display/age";
import { dateAndTime } from "@/display/times";
import { useNow, useOfNow } from "@/hooks/use-now";
import { cn } from "./ui/class-names";

export function useAgeText(): (thenMs: number) => string {
  const { t } = useTranslation();
  const now = useNow();
  return (thenMs) => {
    const { unit, count } = ageOf(thenMs, now);
    return unit === "seconds" && count < 1 ? t("age.now") : t(`age.${unit}`, { count });
  };
}

/** How long ago something was; it ticks by itself, and is drawn anew only when its words change. */
export function Age({ at, className }: { at: number; className?: string }) {
  const { t, i18n } = useTranslation();
  const text = useOfNow((now) => {
    const { unit, count } = ageOf(at, now);
    return unit === "seconds" && count < 1 ? t("age.now") : t(`age.${unit}`, { count });
  });
  return (
    <time
      dateTime={new Date(at).toISOString()}
      title={dateAndTime(at, i18n.language)}
      className={cn("whitespace-nowrap", className)}
    >
      {text}
    </time>
  );
}
