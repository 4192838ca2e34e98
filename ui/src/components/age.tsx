import { useTranslation } from "react-i18next";
import { ageOf } from "@/display/age";
import { dateAndTime } from "@/display/times";
import { useNow } from "@/hooks/use-now";

export function useAgeText(): (thenMs: number) => string {
  const { t } = useTranslation();
  const now = useNow();
  return (thenMs) => {
    const { unit, count } = ageOf(thenMs, now);
    return unit === "seconds" && count < 1 ? t("age.now") : t(`age.${unit}`, { count });
  };
}

/** How long ago something was; it ticks by itself. */
export function Age({ at, className }: { at: number; className?: string }) {
  const { i18n } = useTranslation();
  const text = useAgeText();
  return (
    <time dateTime={new Date(at).toISOString()} title={dateAndTime(at, i18n.language)} className={className}>
      {text(at)}
    </time>
  );
}
