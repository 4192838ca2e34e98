import { OctagonAlert } from "lucide-react";
import { Component, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { EmptyState } from "./empty-state";
import { Button } from "./ui/button";

/** Stands in for a page that failed to draw, so that a defect is told and not a blank screen. */
export class CrashGuard extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    return this.state.error ? <CrashNotice message={this.state.error.message} /> : this.props.children;
  }
}

function CrashNotice({ message }: { message: string }) {
  const { t } = useTranslation();
  return (
    <main className="p-8">
      <EmptyState Icon={OctagonAlert} title={t("problem.crashed")} lead={message}>
        <Button onClick={() => location.reload()}>{t("action.reload")}</Button>
      </EmptyState>
    </main>
  );
}
