import { Share2 } from "lucide-react";
import { Suspense, useState } from "react";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/eventlist";
import { later } from "@/shell/later";
import { Button } from "./ui/button";

const useWords = addWords("eventlist", words);
const ShareDialog = later(() => import("./share-dialog"), "ShareDialog");

/** For people who may share. */
export function ShareEvent({ uuid }: { uuid: string }) {
  const { t } = useWords();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button variant="outline" size="small" onClick={() => setAsking(true)}>
        <Share2 aria-hidden="true" />
        {t("share")}
      </Button>
      {asking && (
        <Suspense fallback={null}>
          <ShareDialog uuid={uuid} onClose={() => setAsking(false)} />
        </Suspense>
      )}
    </>
  );
}
