import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asProblem } from "@/api/problem";
import { FormProblem } from "./entry-page";
import { useProblemText } from "./problem-notice";
import { Button } from "./ui/button";
import { Dialog, DialogButtons } from "./ui/dialog";
import { Field } from "./ui/field";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  lead: string;
  action: string;
  /** What must be written first, where something is lost for good. */
  typed?: string;
  onConfirm: () => Promise<unknown>;
}

export function ConfirmDialog({ open, onClose, title, lead, action, typed, onConfirm }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      {open && <Question {...{ onClose, lead, action, onConfirm, ...(typed === undefined ? {} : { typed }) }} />}
    </Dialog>
  );
}

function Question({ onClose, lead, action, typed, onConfirm }: Omit<Props, "open" | "title">) {
  const { t } = useTranslation();
  const problemText = useProblemText();
  const [written, setWritten] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  return (
    <form
      className="grid gap-4"
      onSubmit={async (event) => {
        event.preventDefault();
        setBusy(true);
        setProblem(null);
        try {
          await onConfirm();
          onClose();
        } catch (error) {
          setProblem(error);
          setBusy(false);
        }
      }}
    >
      <p className="text-quiet text-sm">{lead}</p>
      {typed !== undefined && (
        <Field
          label={t("confirm.typed", { typed })}
          value={written}
          onChange={(event) => setWritten(event.target.value)}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
        />
      )}
      {problem !== null && (
        <FormProblem text={`${problemText(problem)} (${t("problem.code", { code: asProblem(problem).code })})`} />
      )}
      <DialogButtons>
        <Button variant="outline" onClick={onClose}>
          {t("action.cancel")}
        </Button>
        <Button type="submit" variant="danger" disabled={busy || (typed !== undefined && written.trim() !== typed)}>
          {action}
        </Button>
      </DialogButtons>
    </form>
  );
}
