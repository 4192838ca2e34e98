import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { sentValues } from "./entry-page";
import { SentProblem } from "./form-problem";
import { Button } from "./ui/button";
import { DialogButtons } from "./ui/dialog";

/** What of a mutation a form shows. */
interface Sending {
  error: unknown;
  isPending: boolean;
}

interface Props {
  /** What its sending sets going: the first one's problem is told, and while one is under way nothing is sent again. */
  sending: readonly Sending[];
  onSend: (sent: Record<string, string>) => void;
  onClose: () => void;
  /** What sending is called where it is not "save". */
  action?: string;
  /** Something is missing that the browser does not see. */
  disabled?: boolean;
  /** What else can be done, at the other side of the buttons. */
  aside?: ReactNode;
  autoComplete?: "off";
  children: ReactNode;
}

/** The frame of every form in a dialog: its fields, why it was refused, the way out and the way on. */
export function DialogForm({
  sending,
  onSend,
  onClose,
  action,
  disabled = false,
  aside,
  autoComplete,
  children,
}: Props) {
  const { t } = useTranslation();
  return (
    <form className="grid gap-4" autoComplete={autoComplete} onSubmit={(event) => onSend(sentValues(event))}>
      {children}
      <SentProblem error={sending.find(({ error }) => error)?.error} />
      <DialogButtons>
        {aside}
        <Button variant="outline" onClick={onClose}>
          {t("action.cancel")}
        </Button>
        <Button type="submit" disabled={disabled || sending.some(({ isPending }) => isPending)}>
          {action ?? t("action.save")}
        </Button>
      </DialogButtons>
    </form>
  );
}
