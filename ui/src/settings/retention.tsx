import { useState } from "react";
import { useRetention } from "@/api/operations";
import { useSession } from "@/api/queries";
import { useRetentionPreview, useRunRetention } from "@/api/settings";
import type { RetentionStatus } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Loaded } from "@/components/loaded";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Skeleton } from "@/components/ui/skeleton";
import { Cell, Row, Table } from "@/components/ui/table";
import { bytesText, numberText } from "@/display/sizes";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { StorageLines } from "@/pages/system";
import { tell } from "@/shell/notices";

const useWords = addWords("settings", words);

/** What is kept and for how long, what goes next, and cleaning up now. */
export function Retention() {
  const { t } = useWords();
  const query = useRetention();
  const { data: session } = useSession();
  const mayRun = session?.permissions.includes("manage_system") ?? false;
  return (
    <Loaded query={query} waiting={<Skeleton className="h-80 w-full rounded-xl" />}>
      {(retention) => (
        <div className="grid gap-5">
          <div className="grid items-start gap-5 lg:grid-cols-2">
            <Card className="grid gap-3 p-4">
              <h2 className="font-semibold text-sm">{t("kept")}</h2>
              <StorageLines retention={retention} />
              {retention.round_ended_at !== null && (
                <p className="text-quiet text-sm">
                  {t("lastRound")}: <Age at={retention.round_ended_at} />
                </p>
              )}
            </Card>
            <Days retention={retention} />
          </div>
          <Kept retention={retention} />
          {mayRun && <CleanUp />}
        </div>
      )}
    </Loaded>
  );
}

type DayName = keyof typeof words.ja.dayNames;

function Days({ retention }: { retention: RetentionStatus }) {
  const { t } = useWords();
  const names = (Object.keys(words.ja.dayNames) as DayName[]).filter((name) => name in retention.days);
  return (
    <Card className="grid gap-3 p-4">
      <h2 className="font-semibold text-sm">{t("days")}</h2>
      <dl className="grid grid-cols-[1fr_auto] gap-x-4 gap-y-1.5 text-sm">
        {names.map((name) => (
          <div key={name} className="contents">
            <dt className="text-quiet">{t(`dayNames.${name}`)}</dt>
            <dd className="text-right tabular-nums">
              {retention.days[name] ? t("daysOf", { count: retention.days[name] }) : t("forever")}
            </dd>
          </div>
        ))}
      </dl>
      <p className="text-quiet text-xs">{t("daysLead")}</p>
    </Card>
  );
}

function Kept({ retention }: { retention: RetentionStatus }) {
  const { t, i18n } = useWords();
  if (retention.kept.length === 0) return null;
  return (
    <Table label={t("kept")} headings={[t("class"), t("pictures"), t("size"), t("oldest")]}>
      {retention.kept.map((one) => (
        <Row key={one.retention_class}>
          <Cell column={0}>
            {i18n.exists(`classes.${one.retention_class}`, { ns: "settings" })
              ? t(`classes.${one.retention_class as "normal"}`)
              : one.retention_class}
          </Cell>
          <Cell column={1} className="tabular-nums">
            {numberText(one.pictures, i18n.language)}
          </Cell>
          <Cell column={2} className="tabular-nums">
            {bytesText(one.bytes, i18n.language)}
          </Cell>
          <Cell column={3}>{one.oldest_at === null ? "–" : <Age at={one.oldest_at} />}</Cell>
        </Row>
      ))}
    </Table>
  );
}

function CleanUp() {
  const { t, i18n } = useWords();
  const [wanted, setWanted] = useState(false);
  const preview = useRetentionPreview(wanted);
  const run = useRunRetention();
  const [asking, setAsking] = useState(false);
  return (
    <Card className="grid gap-3 p-4">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="mr-auto font-semibold text-sm">{t("preview")}</h2>
        <Button
          variant="outline"
          size="small"
          disabled={preview.isFetching}
          onClick={() => (wanted ? void preview.refetch() : setWanted(true))}
        >
          {t("previewShow")}
        </Button>
        <Button variant="danger" size="small" onClick={() => setAsking(true)}>
          {t("run")}
        </Button>
      </div>
      {wanted && (
        <Loaded query={preview} waiting={<Skeleton className="h-12 w-full" />}>
          {({ going }) =>
            going.length === 0 ? (
              <p className="text-quiet text-sm">{t("previewNone")}</p>
            ) : (
              <ul className="grid gap-1 text-sm">
                {going.map((one) => (
                  <li key={`${one.what} ${one.reason}`} className="flex justify-between gap-4">
                    <span>
                      {one.what} <span className="text-quiet">({one.reason})</span>
                    </span>
                    <span className="tabular-nums">
                      {t("previewLine", {
                        count: one.count,
                        size: bytesText(one.bytes, i18n.language),
                      })}
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
      )}
      <ConfirmDialog
        open={asking}
        onClose={() => setAsking(false)}
        title={t("runTitle")}
        lead={t("runLead")}
        action={t("run")}
        typed={t("runTyped")}
        onConfirm={async () => {
          await run.mutateAsync(undefined);
          tell({ text: t("ran") });
        }}
      />
    </Card>
  );
}
