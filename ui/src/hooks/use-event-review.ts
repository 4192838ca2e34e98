import { useReviewByUuid } from "@/api/incidents";
import { useSession } from "@/api/queries";
import type { Event } from "@/api/types";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/eventlist";
import { tell } from "@/shell/notices";
import { useTellFailure } from "./use-tell";

const useWords = addWords("eventlist", words);

/** Marks what an event belongs to as reviewed (or no longer), says so, and offers the way back. Null: nobody may, or nothing is. */
export function useEventReview(): ((event: Event, reviewed?: boolean) => void) | null {
  const { t } = useWords();
  const { data: session } = useSession();
  const reviewByUuid = useReviewByUuid();
  const failed = useTellFailure();
  if (!session?.permissions.includes("review")) return null;
  return ({ incident_uuid, camera_name: name }, wanted = true) => {
    if (!incident_uuid) return;
    const review = (reviewed: boolean): void =>
      void reviewByUuid(incident_uuid, reviewed).then(
        () => tell({ text: t(reviewed ? "marked" : "unmarked", { name }), undo: () => review(!reviewed) }),
        failed,
      );
    review(wanted);
  };
}
