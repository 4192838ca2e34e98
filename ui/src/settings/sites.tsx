import { Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSites } from "@/api/camera";
import { useSession } from "@/api/queries";
import { useAddSite, useChangeSite, useRemoveSite } from "@/api/settings";
import type { Site } from "@/api/types";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { DialogForm } from "@/components/dialog-form";
import { LoadedTable } from "@/components/loaded-table";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Field } from "@/components/ui/field";
import { Cell, Row } from "@/components/ui/table";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { tell } from "@/shell/notices";

const useWords = addWords("settings", words);

export function Sites() {
  const { t } = useWords();
  const query = useSites();
  const sites = query.data?.sites;
  const { data: session } = useSession();
  const mayAdd = session?.permissions.includes("manage_people") ?? false;
  const [editing, setEditing] = useState<Site | "new" | null>(null);
  const headings = [t("siteName"), t("timezone"), t("cameras"), t("workers"), ""];
  return (
    <>
      {mayAdd && (
        <div className="mb-3 flex justify-end">
          <Button onClick={() => setEditing("new")}>
            <Plus aria-hidden="true" />
            {t("addSite")}
          </Button>
        </div>
      )}
      <LoadedTable query={{ ...query, data: sites }} label={t("siteList")} headings={headings} waitingRows={2}>
        {(site) => (
          <SiteRow
            key={site.site_uuid}
            site={site}
            mayRemove={mayAdd && (sites?.length ?? 0) > 1}
            onEdit={() => setEditing(site)}
          />
        )}
      </LoadedTable>
      <Dialog
        open={editing !== null}
        onClose={() => setEditing(null)}
        title={t(editing === "new" ? "addSite" : "changeSite")}
      >
        {editing !== null && <SiteForm site={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
      </Dialog>
    </>
  );
}

function SiteRow({ site, mayRemove, onEdit }: { site: Site; mayRemove: boolean; onEdit: () => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const remove = useRemoveSite();
  const [removing, setRemoving] = useState(false);
  const { name } = site;
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {name}
      </Cell>
      <Cell column={1}>{site.timezone}</Cell>
      <Cell column={2}>{site.cameras}</Cell>
      <Cell column={3}>{site.workers}</Cell>
      <Cell column={4}>
        <div className="flex gap-1 sm:justify-end">
          <Button
            variant="ghost"
            size="icon"
            className="size-8"
            aria-label={`${shared("action.change")}: ${name}`}
            onClick={onEdit}
          >
            <Pencil aria-hidden="true" />
          </Button>
          {mayRemove && (
            <Button
              variant="ghost"
              size="icon"
              className="size-8"
              aria-label={`${shared("action.remove")}: ${name}`}
              onClick={() => setRemoving(true)}
            >
              <Trash2 aria-hidden="true" />
            </Button>
          )}
        </div>
        <ConfirmDialog
          open={removing}
          onClose={() => setRemoving(false)}
          title={t("removeSite")}
          lead={t("removeSiteLead", { name })}
          action={shared("action.remove")}
          typed={name}
          onConfirm={async () => {
            await remove.mutateAsync(name);
            tell({ text: t("removed", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}

function SiteForm({ site, onClose }: { site: Site | null; onClose: () => void }) {
  const { t } = useWords();
  const [add, change] = [useAddSite(), useChangeSite()];
  const done = {
    onSuccess: () => {
      tell({ text: t("saved") });
      onClose();
    },
  };
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <DialogForm
      sending={[add, change]}
      onClose={onClose}
      onSend={({ name = "", timezone = "" }) => {
        if (site) change.mutate({ site: site.name, name, timezone }, done);
        else add.mutate({ name, timezone }, done);
      }}
    >
      <Field label={t("siteName")} name="name" required maxLength={128} defaultValue={site?.name ?? ""} />
      <Field
        label={t("timezone")}
        name="timezone"
        required
        maxLength={64}
        defaultValue={site?.timezone ?? here}
        hint={t("timezoneHint")}
      />
    </DialogForm>
  );
}
