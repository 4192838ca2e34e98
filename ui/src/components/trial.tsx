import { CircleAlert, CircleCheck, Clock, LoaderCircle } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useTryReceiver } from "@/api/deliveries";
import type { Delivery, Receiver } from "@/api/types";
import { useTroubleText } from "@/hooks/use-trouble-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/rules";
import { useProblemText } from "./problem-notice";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";
import { Dialog, DialogButtons } from "./ui/dialog";

const useWords = addWords("rules", words);

type Tried = Pick<Receiver, "receiver_uuid" | "name">;
interface Line extends Tried {
  state: keyof typeof ICONS;
  cause: string;
}

const ICONS = { sending: LoaderCircle, arrived: CircleCheck, notArrived: CircleAlert, waits: Clock };
const COLOURS = { sending: "text-quiet", arrived: "text-live", notArrived: "text-severity-3", waits: "text-quiet" };

/** What became of a test message, in short. */
export function outcomeOf({ status, last_error, reason }: Delivery): Pick<Line, "state" | "cause"> {
  if (status === "done") return { state: "arrived", cause: "" };
  if (status === "queued" || status === "running") return { state: "waits", cause: "" };
  return { state: "notArrived", cause: last_error || reason };
}

/** Test messages to receivers, all at once: one that hangs does not hide what became of the others. */
export function useTrial() {
  const { mutateAsync } = useTryReceiver();
  const problemText = useProblemText();
  const [lines, setLines] = useState<readonly Line[] | null>(null);

  function begin(receivers: readonly Tried[]): void {
    setLines(receivers.map(({ receiver_uuid, name }) => ({ receiver_uuid, name, state: "sending", cause: "" })));
    for (const { receiver_uuid } of receivers) {
      const set = (outcome: Pick<Line, "state" | "cause">) =>
        setLines(
          (now) => now?.map((one) => (one.receiver_uuid === receiver_uuid ? { ...one, ...outcome } : one)) ?? null,
        );
      mutateAsync(receiver_uuid).then(
        (delivery) => set(outcomeOf(delivery)),
        (error) => set({ state: "notArrived", cause: problemText(error) }),
      );
    }
  }

  const isPending = lines?.some(({ state }) => state === "sending") ?? false;
  return { begin, lines, isPending, close: () => setLines(null) };
}

/** Says of each receiver what became of its test message. */
export function TrialDialog({ name, trial }: { name: string; trial: ReturnType<typeof useTrial> }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const { lines, close } = trial;
  return (
    <Dialog open={lines !== null} onClose={close} title={t("testTitle", { name })}>
      <p className="text-quiet text-sm">{t(lines?.length === 0 ? "testNobody" : "testLead")}</p>
      <ul aria-label={t("testResults")} aria-live="polite" className="grid gap-3">
        {lines?.map((line) => (
          <TrialLine key={line.receiver_uuid} line={line} />
        ))}
      </ul>
      <DialogButtons>
        <Button asChild variant="ghost">
          <Link to="/deliveries?state=all">{t("log")}</Link>
        </Button>
        <Button onClick={close}>{shared("action.close")}</Button>
      </DialogButtons>
    </Dialog>
  );
}

function TrialLine({ line: { name, state, cause } }: { line: Line }) {
  const { t } = useWords();
  const troubleText = useTroubleText();
  const Icon = ICONS[state];
  return (
    <li className="flex gap-3 rounded-lg border p-3 text-sm">
      <Icon
        aria-hidden="true"
        className={cn("size-5 shrink-0", COLOURS[state], state === "sending" && "animate-spin")}
      />
      <div className="min-w-0 [overflow-wrap:anywhere]">
        <p className="font-medium">{name}</p>
        <p className={state === "notArrived" ? "text-severity-3" : "text-quiet"}>
          {t(state, { cause: troubleText(cause) })}
        </p>
      </div>
    </li>
  );
}
