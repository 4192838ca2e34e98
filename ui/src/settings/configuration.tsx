import { CircleAlert } from "lucide-react";
import { useConfiguration } from "@/api/settings";
import { Loaded } from "@/components/loaded";
import { Cell, Row, SkeletonRows, Table } from "@/components/ui/table";
import { useAddress } from "@/hooks/use-address";
import { useWritten } from "@/hooks/use-written";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { matches } from "@/shell/matching";

const useWords = addWords("settings", words);

/** Every setting in force and where it came from. They are changed in the file. */
export function Configuration() {
  const { t } = useWords();
  const query = useConfiguration();
  const { address } = useAddress();
  const written = useWritten("name");
  const wanted = address.get("name") ?? "";
  /** Where a value came from, with its kind in the reader's words. */
  const sourceText = (source: string) => {
    const [, kind, name] = /^(default|file|environment|secret file)\b ?(.*)$/.exec(source) ?? [];
    return kind ? t(`sources.${kind === "secret file" ? "secret" : (kind as "default")}`, { name }) : source;
  };
  const headings = [t("setting"), t("value"), t("source")];
  return (
    <>
      <p className="mb-3 text-quiet text-sm">{t("configurationLead")}</p>
      <input
        type="search"
        aria-label={t("filter")}
        placeholder={t("filter")}
        {...written}
        className="mb-4 h-9 w-full rounded-md border bg-ground px-3 text-base placeholder:text-quiet sm:w-72 sm:text-sm"
      />
      <Loaded
        query={query}
        waiting={
          <Table label={t("settingList")} headings={headings} busy>
            <SkeletonRows columns={headings.length} rows={12} />
          </Table>
        }
      >
        {({ settings, warnings }) => (
          <>
            {warnings.length > 0 && (
              <ul aria-label={t("warnings")} className="mb-4 grid gap-1 text-severity-2 text-sm">
                {warnings.map((warning) => (
                  <li key={warning} className="flex gap-2">
                    <CircleAlert aria-hidden="true" className="size-4 shrink-0" />
                    {warning}
                  </li>
                ))}
              </ul>
            )}
            <Table label={t("settingList")} headings={headings}>
              {settings
                .filter((one) => matches(`${one.section}.${one.key} ${one.doc}`, wanted))
                .map((one) => (
                  <Row key={`${one.section}.${one.key}`}>
                    <Cell column={0}>
                      <span className="font-mono text-sm">
                        {one.section}.{one.key}
                      </span>
                      <span className="block text-quiet text-xs">{one.doc}</span>
                    </Cell>
                    <Cell column={1} className="font-mono text-sm sm:[overflow-wrap:anywhere]">
                      {one.value === null ? <span className="text-quiet">{t("unset")}</span> : String(one.value)}
                    </Cell>
                    <Cell column={2} className="text-quiet text-xs sm:[overflow-wrap:anywhere]">
                      {sourceText(one.source)}
                    </Cell>
                  </Row>
                ))}
            </Table>
          </>
        )}
      </Loaded>
    </>
  );
}
