import { useState } from "react";
import { useSites } from "@/api/camera";
import { useFlags, useQuota, useSetFlag, useSetQuota } from "@/api/operations";
import type { Flag, FlagAsked } from "@/api/types";
import { Age } from "@/components/age";
import { sentValues } from "@/components/entry-page";
import { SentProblem } from "@/components/form-problem";
import { Loaded } from "@/components/loaded";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Field, SelectField } from "@/components/ui/field";
import { Meter } from "@/components/ui/meter";
import { Skeleton } from "@/components/ui/skeleton";
import { Cell, Row, Table } from "@/components/ui/table";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { tell } from "@/shell/notices";

const useWords = addWords("settings", words);

const FLAGS = ["assignment.style", "assignment.shadow"] as const;
const VALUES = ["spread", "pack"] as const;

/** How cameras are given to workers, and how many may run. */
export function Features() {
  return (
    <div className="grid max-w-4xl gap-6">
      <QuotaPart />
      <FlagsPart />
    </div>
  );
}

function QuotaPart() {
  const { t } = useWords();
  const query = useQuota();
  const set = useSetQuota();
  return (
    <Card className="grid max-w-md gap-4 p-4">
      <h2 className="font-semibold">{t("quota")}</h2>
      <Loaded query={query} waiting={<Skeleton className="h-32 w-full" />}>
        {({ running, cameras_running_max: most }) => (
          <form
            key={most}
            className="grid gap-4"
            onSubmit={(event) => {
              const { most: wanted = "" } = sentValues(event);
              set.mutate(wanted === "" ? null : Number(wanted), { onSuccess: () => tell({ text: t("saved") }) });
            }}
          >
            <Meter
              label={t("usage")}
              value={running}
              max={most}
              text={most === null ? t("noQuota", { running }) : t("quotaText", { running, max: most })}
            />
            <Field
              label={t("quotaMax")}
              name="most"
              type="number"
              min={0}
              max={1_000_000}
              defaultValue={most ?? ""}
              hint={t("quotaLead")}
            />
            <SentProblem error={set.error} />
            <Button type="submit" variant="outline" className="justify-self-start" disabled={set.isPending}>
              {t("set")}
            </Button>
          </form>
        )}
      </Loaded>
    </Card>
  );
}

function FlagsPart() {
  const { t } = useWords();
  const query = useFlags();
  const headings = [t("flag"), t("sites"), t("value"), t("changedAt"), ""];
  return (
    <section aria-labelledby="flags-title" className="grid gap-3">
      <h2 id="flags-title" className="font-semibold">
        {t("flags")}
      </h2>
      <p className="text-quiet text-sm">{t("flagsLead")}</p>
      <SetFlag />
      <Loaded query={query} waiting={<Skeleton className="h-24 w-full rounded-xl" />}>
        {({ flags }) =>
          flags.length === 0 ? (
            <p className="rounded-xl border border-dashed px-4 py-6 text-center text-quiet text-sm">{t("noFlags")}</p>
          ) : (
            <Table label={t("flagList")} headings={headings}>
              {flags.map((flag) => (
                <FlagRow key={`${flag.name} ${flag.site}`} flag={flag} />
              ))}
            </Table>
          )
        }
      </Loaded>
    </section>
  );
}

function FlagRow({ flag }: { flag: Flag }) {
  const { t } = useWords();
  const set = useSetFlag();
  const failed = useTellFailure();
  const known = FLAGS.find((one) => one === flag.name);
  const value = VALUES.find((one) => one === flag.value);
  const name = known ? t(`flagNames.${known}`) : flag.name;
  const asked = (to: FlagAsked["value"]): FlagAsked => ({
    name: flag.name as FlagAsked["name"],
    site: flag.site,
    value: to,
  });
  return (
    <Row>
      <Cell column={0}>
        {name}
        <span className="block font-mono text-quiet text-xs">{flag.name}</span>
      </Cell>
      <Cell column={1}>{flag.site ?? t("allSites")}</Cell>
      <Cell column={2}>{value ? t(`flagValues.${value}`) : flag.value}</Cell>
      <Cell column={3}>
        <Age at={flag.updated_at} />
      </Cell>
      <Cell column={4}>
        <div className="flex sm:justify-end">
          <Button
            variant="outline"
            size="small"
            disabled={set.isPending}
            aria-label={`${t("clearFlag")}: ${name}, ${flag.site ?? t("allSites")}`}
            onClick={() =>
              set.mutate(asked(null), {
                onSuccess: () =>
                  tell({
                    text: t("saved"),
                    ...(value ? { undo: () => set.mutate(asked(value), { onError: failed }) } : {}),
                  }),
                onError: failed,
              })
            }
          >
            {t("clearFlag")}
          </Button>
        </div>
      </Cell>
    </Row>
  );
}

function SetFlag() {
  const { t } = useWords();
  const set = useSetFlag();
  const sites = useSites().data?.sites ?? [];
  const [site, setSite] = useState("");
  return (
    <form
      className="flex flex-wrap items-end gap-3"
      onSubmit={(event) => {
        const sent = sentValues(event);
        const name = FLAGS.find((one) => one === sent.name) ?? FLAGS[0];
        const value = VALUES.find((one) => one === sent.value) ?? VALUES[0];
        set.mutate({ name, site: site || null, value }, { onSuccess: () => tell({ text: t("flagSet") }) });
      }}
    >
      <SelectField label={t("flag")} name="name">
        {FLAGS.map((name) => (
          <option key={name} value={name}>
            {t(`flagNames.${name}`)}
          </option>
        ))}
      </SelectField>
      <SelectField label={t("sites")} value={site} onChange={(event) => setSite(event.target.value)}>
        <option value="">{t("allSites")}</option>
        {sites.map((one) => (
          <option key={one.name}>{one.name}</option>
        ))}
      </SelectField>
      <SelectField label={t("value")} name="value">
        {VALUES.map((value) => (
          <option key={value} value={value}>
            {t(`flagValues.${value}`)}
          </option>
        ))}
      </SelectField>
      <Button type="submit" variant="outline" className="h-9" disabled={set.isPending}>
        {t("set")}
      </Button>
      <SentProblem error={set.error} />
    </form>
  );
}
