import { useTranslation } from "react-i18next";
import { asProblem } from "@/api/problem";
import { useProblemText } from "@/components/problem-notice";
import { tell } from "@/shell/notices";

/** Says that something did not work: the cause and its code. */
export function useTellFailure(): (error: unknown) => void {
  const { t } = useTranslation();
  const text = useProblemText();
  return (error) =>
    tell({ text: `${text(error)} (${t("problem.code", { code: asProblem(error).code })})`, failed: true });
}
