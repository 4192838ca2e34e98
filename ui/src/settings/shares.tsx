import { Share2 } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { useRevokeShare, useShares } from "@/api/shares";
import type { Share } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { EmptyState } from "@/components/empty-state";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { Button } from "@/components/ui/button";
import { Cell, Row } from "@/components/ui/table";
import { dateAndTime } from "@/display/times";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/shares";
import { tell } from "@/shell/notices";

const useWords = addWords("shares", words);

/** What is open to whoever has an address: one's own, or all within reach for those who manage cameras. */
export function Shares() {
  const { t } = useWords();
  const query = useShares();
  const shares = query.data?.pages.flatMap((page) => page.shares);
  const headings = [t("what"), t("by"), t("note"), t("until"), t("opened"), ""];
  return (
    <>
      <p className="mb-4 max-w-3xl text-quiet text-sm">{t("lead")}</p>
      <LoadedTable
        query={{ ...query, data: shares }}
        label={t("list")}
        headings={headings}
        empty={
          <EmptyState Icon={Share2} title={t("emptyTitle")} lead={t("emptyLead")}>
            <Button asChild variant="outline">
              <Link to="/events">{t("toEvents")}</Link>
            </Button>
          </EmptyState>
        }
      >
        {(share) => <ShareRow key={share.share_uuid} share={share} />}
      </LoadedTable>
      <More query={query} />
    </>
  );
}

function ShareRow({ share }: { share: Share }) {
  const { t, i18n } = useWords();
  const revoke = useRevokeShare();
  const [asking, setAsking] = useState(false);
  const { kind, camera_name, note, last_opened_at } = share;
  const name = note ? `${camera_name} (${note})` : camera_name;
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {kind === "event" ? (
          <Link to={`/events/${share.uuid}`} className="text-accent underline-offset-4 hover:underline">
            {camera_name}
          </Link>
        ) : (
          camera_name
        )}
        <span className="block font-normal text-quiet text-xs">
          {t(kind)} · {share.site}
        </span>
      </Cell>
      <Cell column={1}>
        {share.by}, <Age at={share.created_at} />
      </Cell>
      <Cell column={2} className="[overflow-wrap:anywhere]">
        {note || "–"}
      </Cell>
      <Cell column={3} className="tabular-nums">
        {share.expires_at === null ? t("endless") : dateAndTime(share.expires_at, i18n.language)}
      </Cell>
      <Cell column={4}>
        {last_opened_at === null ? (
          t("never")
        ) : (
          <>
            {t("times", { count: share.opened_count })}, <Age at={last_opened_at} />
          </>
        )}
      </Cell>
      <Cell column={5}>
        <div className="flex sm:justify-end">
          <Button variant="ghost" size="small" aria-label={`${t("revoke")}: ${name}`} onClick={() => setAsking(true)}>
            {t("revoke")}
          </Button>
        </div>
        <ConfirmDialog
          open={asking}
          onClose={() => setAsking(false)}
          title={t("revokeTitle")}
          lead={t("revokeLead", { name })}
          action={t("revoke")}
          onConfirm={async () => {
            await revoke.mutateAsync(share.share_uuid);
            tell({ text: t("revoked", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}
