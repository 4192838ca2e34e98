import type { Event } from "@/api/types";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/eventlist";
import { useEventReview } from "./use-event-review";
import { useListKeys } from "./use-list-keys";

const useWords = addWords("eventlist", words);
const idOf = (event: Event) => event.event_uuid;
const pageOf = (event: Event) => `/events/${event.event_uuid}`;

/** The keys of a list of events, which stay in it when they are reviewed. */
export function useEventKeys(events: readonly Event[]): Event | undefined {
  const { t } = useWords();
  const names = { next: t("next"), previous: t("previous"), open: t("open"), mark: t("mark") };
  const review = useEventReview();
  const mark = review && ((event: Event) => review(event));
  return useListKeys({ items: events, idOf, pageOf, mark, leaves: false, names });
}
