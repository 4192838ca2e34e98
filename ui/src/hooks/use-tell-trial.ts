import type { Delivery } from "@/api/types";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import { tell } from "@/shell/notices";

const useWords = addWords("deliveries", words);

/** Says what became of a test message. */
export function useTellTrial(): (name: string, delivery: Delivery) => void {
  const { t } = useWords();
  return (name, { status, last_error, reason }) => {
    if (status === "done") tell({ text: t("testOk", { name }) });
    else if (status === "queued" || status === "running") tell({ text: t("testWaits", { name }) });
    else tell({ text: t("testFailed", { name, cause: last_error || reason }), failed: true });
  };
}
