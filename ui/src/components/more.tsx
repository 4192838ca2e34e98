import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { useSeen } from "@/hooks/use-seen";
import { ProblemNotice } from "./problem-notice";
import { Button } from "./ui/button";

interface Pages {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  isFetchNextPageError: boolean;
  error: unknown;
  fetchNextPage: () => unknown;
}

/** The end of a list that goes on by itself when it is reached, and says so when nothing is left. */
export function More({ query, end }: { query: Pages; end?: string }) {
  const { t } = useTranslation();
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = query;
  const onSeen = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  const ref = useSeen<HTMLDivElement>(onSeen, hasNextPage && !isFetchingNextPage && !isFetchNextPageError);
  if (isFetchNextPageError) return <ProblemNotice error={query.error} onRetry={onSeen} />;
  if (!hasNextPage) return end ? <p className="py-8 text-center text-quiet text-sm">{end}</p> : null;
  return (
    <div ref={ref} className="grid place-items-center py-6">
      <Button variant="outline" disabled={isFetchingNextPage} onClick={onSeen}>
        {t("action.loadOlder")}
      </Button>
    </div>
  );
}
