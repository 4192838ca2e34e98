import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { useAddItem, useCases, useCreateCase } from "@/api/cases";
import type { CaseItemAsked } from "@/api/types";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cases";
import { tell } from "@/shell/notices";
import { DialogForm } from "./dialog-form";
import { Dialog } from "./ui/dialog";
import { Field, SelectField } from "./ui/field";

const useWords = addWords("cases", words);
const NEW = "new";

/** Asks for the case; open while there is something to put into one. */
export function CaseDialog({ item, onClose }: { item: CaseItemAsked | null; onClose: () => void }) {
  const { t } = useWords();
  return (
    <Dialog open={item !== null} onClose={onClose} title={t("addTitle")}>
      {item && <Choice item={item} onClose={onClose} />}
    </Dialog>
  );
}

function Choice({ item, onClose }: { item: CaseItemAsked; onClose: () => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const navigate = useNavigate();
  const query = useCases("open");
  const cases = query.data?.pages.flatMap((page) => page.cases) ?? [];
  const [wanted, setWanted] = useState<string | null>(null);
  const chosen = wanted ?? cases[0]?.case_uuid ?? NEW;
  const [create, add] = [useCreateCase(), useAddItem()];

  async function put(title: string): Promise<void> {
    const made = chosen === NEW ? await create.mutateAsync({ title, note: null }) : null;
    const target = made ?? cases.find((one) => one.case_uuid === chosen);
    if (!target) return;
    // A case that was made stays chosen, so that another try does not make a second one.
    if (made) setWanted(made.case_uuid);
    const { added } = await add.mutateAsync({ caseUuid: target.case_uuid, item });
    onClose();
    tell({
      text: t(added ? "added" : "already", { title: target.title }),
      action: { text: t("show"), run: () => void navigate(`/cases/${target.case_uuid}`) },
    });
  }

  return (
    <DialogForm
      sending={[query, create, add]}
      onClose={onClose}
      action={shared("action.add")}
      onSend={(sent) => void put(sent.title ?? "").catch(() => undefined)}
    >
      <SelectField
        label={t("toExisting")}
        value={chosen}
        disabled={query.isPending}
        onChange={(event) => setWanted(event.target.value)}
      >
        {cases.map((one) => (
          <option key={one.case_uuid} value={one.case_uuid}>
            {one.title}
          </option>
        ))}
        <option value={NEW}>{t("newOne")}</option>
      </SelectField>
      {chosen === NEW && <Field label={t("name")} name="title" required maxLength={255} autoComplete="off" />}
    </DialogForm>
  );
}
