import { CircleAlert, RotateCw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { asProblem, UNREACHABLE } from "@/api/problem";
import { useAgeText } from "./age";
import { Button } from "./ui/button";
import { Card } from "./ui/card";

/** What went wrong, for people: the server's own sentence where there is one. */
export function useProblemText(): (error: unknown) => string {
  const { t } = useTranslation();
  return (error) => {
    const problem = asProblem(error);
    if (problem.code === UNREACHABLE) return t("problem.unreachable");
    return problem.message || t("problem.unknown");
  };
}

interface Props {
  error: unknown;
  onRetry: () => void;
}

/** In the place of what could not be loaded. */
export function ProblemNotice({ error, onRetry }: Props) {
  const { t } = useTranslation();
  const text = useProblemText();
  return (
    <Card role="alert" className="mx-auto grid w-full max-w-lg justify-items-center gap-3 p-8 text-center">
      <CircleAlert aria-hidden="true" className="size-8 text-severity-3" />
      <p className="font-semibold">{t("problem.title")}</p>
      <p className="text-quiet text-sm">{text(error)}</p>
      <p className="font-mono text-quiet text-xs">{t("problem.code", { code: asProblem(error).code })}</p>
      <Button variant="outline" onClick={onRetry}>
        <RotateCw aria-hidden="true" />
        {t("action.retry")}
      </Button>
    </Card>
  );
}

/** Above what is still shown from before, with its age. */
export function StaleNotice({ error, onRetry, at }: Props & { at: number }) {
  const { t } = useTranslation();
  const age = useAgeText();
  return (
    <output className="mb-4 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border border-severity-2/40 bg-severity-2/10 px-4 py-2 text-sm">
      <CircleAlert aria-hidden="true" className="size-4 shrink-0 text-severity-2" />
      <span>{t("problem.stale", { age: age(at) })}</span>
      <span className="font-mono text-quiet text-xs">{t("problem.code", { code: asProblem(error).code })}</span>
      <Button variant="outline" size="small" className="ml-auto" onClick={onRetry}>
        {t("action.retry")}
      </Button>
    </output>
  );
}
