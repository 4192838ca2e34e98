import { Sheet } from "lucide-react";
import { useState } from "react";
import { useNavigate } from "react-router";
import { useAddEventSheet } from "@/api/scoring";
import type { SearchFilter } from "@/api/search";
import { readCategories } from "@/display/scoring";
import { asScoringSearch } from "@/display/search-filter";
import { dateAndTime } from "@/display/times";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/scoring";
import { DialogForm } from "./dialog-form";
import { Button } from "./ui/button";
import { Dialog } from "./ui/dialog";
import { Field, TextField } from "./ui/field";

const useWords = addWords("scoring", words);
const MOST = 5000;
const MOST_USUAL = 500;

/** Has the events of a search scored. For people who may, where a model is configured. */
export function ScoreThese({ filter }: { filter: SearchFilter }) {
  const { t } = useWords();
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button variant="outline" size="small" onClick={() => setOpen(true)}>
        <Sheet aria-hidden="true" />
        {t("these")}
      </Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={t("these")}>
        {open && <Wanted filter={filter} onClose={() => setOpen(false)} />}
      </Dialog>
    </>
  );
}

function Wanted({ filter, onClose }: { filter: SearchFilter; onClose: () => void }) {
  const { t, i18n } = useWords();
  const navigate = useNavigate();
  const add = useAddEventSheet();
  return (
    <DialogForm
      sending={[add]}
      onClose={onClose}
      action={t("next")}
      onSend={({ name = "", categories = "", most = "", instructions = "" }) => {
        add.mutate(
          {
            name,
            search: asScoringSearch(filter),
            categories: readCategories(categories),
            most: Number(most),
            instructions,
          },
          { onSuccess: (made) => void navigate(`/scoring/sheets/${made.sheet_uuid}`) },
        );
      }}
    >
      <p className="text-quiet text-sm">{t("theseLead", { most: MOST })}</p>
      <Field
        label={t("theseName")}
        name="name"
        required
        maxLength={255}
        defaultValue={`${t("kinds.events")} ${dateAndTime(Date.now(), i18n.language)}`}
        autoComplete="off"
      />
      <TextField
        label={t("theseCategories")}
        name="categories"
        required
        rows={5}
        maxLength={10_000}
        defaultValue={t("theseSample")}
      />
      <Field label={t("most")} name="most" type="number" min={1} max={MOST} required defaultValue={MOST_USUAL} />
      <TextField label={t("instructions")} name="instructions" maxLength={10_000} />
    </DialogForm>
  );
}
