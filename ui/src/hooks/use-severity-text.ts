import { useTranslation } from "react-i18next";
import { type Severity, severityOf } from "@/display/severity";

/** A least severity in words. Nothing is above the highest, so that one is said by its name alone. */
export function useSeverityText(): (least: number) => string {
  const { t } = useTranslation();
  return (least) => {
    const step: Severity = severityOf(least);
    const name = t(`severity.s${step}`);
    return step === 3 ? name : t("severity.atLeast", { name });
  };
}
