import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { addItem, createCase, findOpenCase, removeItem } from "@/api/cases";
import { useSession } from "@/api/queries";
import type { CaseItemAsked } from "@/api/types";
import { tell } from "@/shell/notices";
import { useTellFailure } from "./use-tell";

/** What begins the title of the case that somebody's bookmarks are in; the words behind it are in their language. */
export const BOOKMARKS = "★";

export interface Bookmarked {
  caseUuid: string;
  /** False: it was there already. */
  added: boolean;
}

/**
 * Puts something into one's own case of bookmarks, which is made with the first one. A bookmark is in a case because
 * what it points at must not be swept away, and is the same in every browser. Null: not allowed to investigate.
 */
export function useBookmarking(): ((item: CaseItemAsked) => Promise<Bookmarked>) | null {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { data: session } = useSession();
  const { mutateAsync } = useMutation({
    // One after the other: the second must find the case that the first one made.
    scope: { id: "bookmark" },
    mutationFn: async ({ item, login, title }: { item: CaseItemAsked; login: string; title: string }) => {
      const mine = await findOpenCase((one) => one.created_by === login && one.title.startsWith(BOOKMARKS));
      const { case_uuid } = mine ?? (await createCase({ title, note: null }));
      return { caseUuid: case_uuid, added: (await addItem(case_uuid, item)).added };
    },
    onSettled: () => {
      for (const noun of ["cases", "case"]) void client.invalidateQueries({ queryKey: [noun] });
    },
  });
  if (!session?.permissions.includes("investigate")) return null;
  const { login, display_name: name } = session;
  return (item) => mutateAsync({ item, login, title: `${BOOKMARKS} ${t("bookmark.of", { name: name || login })}` });
}

/** The same, and says so, with the way back. */
export function useBookmark(): ((item: CaseItemAsked) => void) | null {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const client = useQueryClient();
  const failed = useTellFailure();
  const bookmark = useBookmarking();
  if (!bookmark) return null;
  const show = (caseUuid: string) => ({ text: t("bookmark.show"), run: () => void navigate(`/cases/${caseUuid}`) });
  const undo = (caseUuid: string, item: CaseItemAsked) =>
    void removeItem(caseUuid, item).then(() => client.invalidateQueries({ queryKey: ["case"] }), failed);
  return (item) =>
    void bookmark(item).then(
      ({ caseUuid, added }) =>
        tell(
          added
            ? { text: t("bookmark.added"), undo: () => undo(caseUuid, item) }
            : { text: t("bookmark.already"), action: show(caseUuid) },
        ),
      failed,
    );
}
