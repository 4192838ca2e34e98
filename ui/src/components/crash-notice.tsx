import { OctagonAlert } from "lucide-react";
import { Component, type ReactNode, useCallback, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Problem, UNREACHABLE } from "@/api/problem";
import { isPartMissing } from "@/shell/later";
import { EmptyState } from "./empty-state";
import { ProblemNotice } from "./problem-notice";
import { Button } from "./ui/button";

/** Stands in for a page that failed to draw, so that a defect is told and not a blank screen. */
export class CrashGuard extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return isPartMissing(error) ? <PartMissing /> : <CrashNotice message={error.message} />;
  }
}

function CrashNotice({ message }: { message: string }) {
  const { t } = useTranslation();
  return (
    <div className="p-8">
      <EmptyState Icon={OctagonAlert} title={t("problem.crashed")} lead={message}>
        <Button onClick={() => location.reload()}>{t("action.reload")}</Button>
      </EmptyState>
    </div>
  );
}

const ASK_MS = 3000;
const RELOADED = "camserver.reloaded";
/** A page that loading anew does not help is not loaded anew again and again. */
const RELOAD_APART_MS = 60_000;

/** The page's file did not come: the server is away, or was upgraded. Either way the newest one is loaded when it can. */
function PartMissing() {
  const retry = useCallback(async () => {
    if (await isThere()) location.reload();
  }, []);
  useEffect(() => {
    const reloadedAt = Number(sessionStorage.getItem(RELOADED) ?? 0);
    if (Date.now() - reloadedAt < RELOAD_APART_MS) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const ask = async () => {
      const isBack = await isThere();
      if (isOver) return;
      if (!isBack) {
        timer = setTimeout(ask, ASK_MS);
        return;
      }
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
    };
    void ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  return <ProblemNotice error={new Problem(0, UNREACHABLE, "")} onRetry={() => void retry()} />;
}

async function isThere(): Promise<boolean> {
  try {
    return (await fetch("/api/session", { cache: "no-store" })).status < 500;
  } catch {
    return false;
  }
}
