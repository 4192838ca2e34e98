import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { useVocabulary } from "@/api/queries";
import type { Tag } from "@/api/types";

/** The vocabulary's words in the reader's language. What it does not know is shown by its own name. */
export function usePhrases() {
  const { data } = useVocabulary();
  const { i18n } = useTranslation();
  const english = i18n.language === "en";
  const eventPhrase = useCallback(
    (primaryEvent: string) => {
      const found = data?.primary_events.find((one) => one.id === primaryEvent);
      return found ? (english ? found.label_en : found.label_ja) : primaryEvent;
    },
    [data, english],
  );
  const tagLabel = useCallback((tag: Tag) => (english ? tag.label_en : tag.label_ja), [english]);
  return { eventPhrase, tagLabel, primaryEvents: data?.primary_events ?? [] };
}
