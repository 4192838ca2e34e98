import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { useVocabulary } from "@/api/queries";
import type { Event, Label } from "@/api/types";

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
  const tagLabel = useCallback((tag: Label) => (english ? tag.label_en : tag.label_ja), [english]);
  /** What an event is called: one about the camera itself by its issue. */
  const eventTitle = useCallback(
    (event: Pick<Event, "primary_event" | "issue">) =>
      event.issue ? tagLabel(event.issue) : eventPhrase(event.primary_event),
    [eventPhrase, tagLabel],
  );
  return { eventPhrase, eventTitle, tagLabel, primaryEvents: data?.primary_events ?? [], tags: data?.tags ?? [] };
}
