import { useState } from "react";
import { useVocabulary } from "@/api/queries";
import { useAddVocabulary, useChooseVocabulary, useVocabularies } from "@/api/settings";
import { Age } from "@/components/age";
import { FormProblem } from "@/components/entry-page";
import { SentProblem } from "@/components/form-problem";
import { LoadedTable } from "@/components/loaded-table";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { FileField } from "@/components/ui/file-field";
import { Cell, Row } from "@/components/ui/table";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { tell } from "@/shell/notices";

const useWords = addWords("settings", words);

/** The words that events and tags are named by, and which version of them is in use. */
export function VocabularyPart() {
  const { t, i18n } = useWords();
  const query = useVocabularies();
  const { data: vocabulary } = useVocabulary();
  const choose = useChooseVocabulary();
  const failed = useTellFailure();
  const headings = [t("version"), t("created"), ""];
  const active = query.data?.versions.find((one) => one.is_active)?.schema_version;
  return (
    <div className="grid gap-5">
      <AddVocabulary />
      <LoadedTable
        query={{ ...query, data: query.data?.versions }}
        label={t("versions")}
        headings={headings}
        waitingRows={1}
      >
        {(one) => (
          <Row key={one.schema_version}>
            <Cell column={0} className="font-mono">
              {one.schema_version}
            </Cell>
            <Cell column={1}>
              <Age at={one.created_at} />
            </Cell>
            <Cell column={2}>
              <div className="flex sm:justify-end">
                {one.is_active ? (
                  <Badge className="border-live/40 text-live">{t("active")}</Badge>
                ) : (
                  <Button
                    variant="outline"
                    size="small"
                    disabled={choose.isPending}
                    aria-label={`${t("use")}: ${one.schema_version}`}
                    onClick={() =>
                      choose.mutate(one.schema_version, {
                        onSuccess: () =>
                          tell({
                            text: t("used", { name: one.schema_version }),
                            ...(active ? { undo: () => choose.mutate(active) } : {}),
                          }),
                        onError: failed,
                      })
                    }
                  >
                    {t("use")}
                  </Button>
                )}
              </div>
            </Cell>
          </Row>
        )}
      </LoadedTable>
      {vocabulary && (
        <section aria-labelledby="tags-title">
          <h2 id="tags-title" className="mb-2 font-semibold">
            {t("tags")}{" "}
            <span className="font-normal text-quiet text-sm">{t("words", { count: vocabulary.tags.length })}</span>
          </h2>
          <ul className="flex flex-wrap gap-1.5">
            {vocabulary.tags.map((tag) => (
              <li key={tag.id}>
                <Badge title={tag.id} className="bg-raised">
                  {i18n.language === "en" ? tag.label_en : tag.label_ja}
                </Badge>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** Takes a vocabulary from a file; the server checks it, and says what is wrong. */
function AddVocabulary() {
  const { t } = useWords();
  const add = useAddVocabulary();
  const [isUnread, setUnread] = useState(false);

  async function send(file: File): Promise<void> {
    const document = asObject(await file.text());
    setUnread(document === null);
    if (document === null) return;
    add.mutate(document, {
      onSuccess: () => tell({ text: t("vocabularyAdded", { name: String(document.schema_version ?? file.name) }) }),
    });
  }

  return (
    <div className="grid max-w-xl gap-1.5">
      <FileField
        label={t("vocabularyFile")}
        hint={t("vocabularyHint")}
        accept="application/json,.json"
        disabled={add.isPending}
        onFile={(file) => void send(file)}
      />
      {isUnread && <FormProblem text={t("vocabularyNotJson")} />}
      <SentProblem error={add.error} />
    </div>
  );
}

function asObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
