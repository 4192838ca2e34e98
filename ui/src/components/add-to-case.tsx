import { Bookmark, BriefcaseBusiness } from "lucide-react";
import { Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { CaseItemAsked } from "@/api/types";
import { useBookmark } from "@/hooks/use-bookmark";
import { useShortcuts } from "@/shell/keyboard";
import { later } from "@/shell/later";
import { Button } from "./ui/button";

const CaseDialog = later(() => import("./case-dialog"), "CaseDialog");

/** B bookmarks something, C asks for a case to put it into; null: nothing is chosen. For people who may investigate. */
export function KeepKeys({ item }: { item: CaseItemAsked | null }) {
  const { asking } = useKeeping(item);
  return asking;
}

/** The same, with buttons. */
export function AddToCase({ item }: { item: CaseItemAsked }) {
  const { t } = useTranslation();
  const { bookmark, ask, asking } = useKeeping(item);
  if (!bookmark) return null;
  return (
    <>
      <Button variant="outline" size="small" onClick={bookmark}>
        <Bookmark aria-hidden="true" />
        {t("bookmark.add")}
      </Button>
      <Button variant="outline" size="small" onClick={ask}>
        <BriefcaseBusiness aria-hidden="true" />
        {t("live.keep")}
      </Button>
      {asking}
    </>
  );
}

function useKeeping(item: CaseItemAsked | null) {
  const { t } = useTranslation();
  const put = useBookmark();
  const [asked, setAsked] = useState<CaseItemAsked | null>(null);
  const bookmark = put && (() => item && put(item));
  const ask = () => setAsked(item);
  const when = () => item !== null;
  useShortcuts(
    bookmark
      ? [
          { key: "b", name: t("bookmark.add"), when, run: bookmark },
          { key: "c", name: t("live.keep"), when, run: ask },
        ]
      : [],
  );
  const asking = asked && (
    <Suspense fallback={null}>
      <CaseDialog item={asked} onClose={() => setAsked(null)} />
    </Suspense>
  );
  return { bookmark, ask, asking };
}
