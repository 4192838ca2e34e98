import { useTranslation } from "react-i18next";
import { asProblem } from "@/api/problem";
import { FormProblem } from "./entry-page";
import { useProblemText } from "./problem-notice";

/** Why a form was refused, with the code; nothing where it was not. */
export function SentProblem({ error }: { error: unknown }) {
  const { t } = useTranslation();
  const text = useProblemText();
  if (!error) return null;
  return <FormProblem text={`${text(error)} (${t("problem.code", { code: asProblem(error).code })})`} />;
}
