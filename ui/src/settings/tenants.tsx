import { Plus } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { useAddTenant, useChangeTenant, useEraseTenant, useMakeAdminLink, useTenants } from "@/api/settings";
import type { PasswordLink, Tenant, TenantAsked } from "@/api/types";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { CopiedText } from "@/components/copied-text";
import { DialogForm } from "@/components/dialog-form";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Dialog, DialogButtons } from "@/components/ui/dialog";
import { Field } from "@/components/ui/field";
import { Cell, Row } from "@/components/ui/table";
import { bytesText, numberText } from "@/display/sizes";
import { dateAndTime } from "@/display/times";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { tell } from "@/shell/notices";

const useWords = addWords("settings", words);

const QUOTAS = ["cameras_running_max", "cameras_max", "people_max", "sites_max", "kept_bytes_max"] as const;
type QuotaName = (typeof QUOTAS)[number];
type Quotas = Partial<Record<QuotaName, number | null>>;

/** Several organizations on one server: added, bounded, switched off, erased. */
export function Tenants() {
  const { t } = useWords();
  const query = useTenants();
  const tenants = query.data?.pages.flatMap((page) => page.tenants);
  const [editing, setEditing] = useState<Tenant | "new" | null>(null);
  const headings = [t("tenantName"), t("usage"), ""];
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-3xl text-quiet text-sm">{t("tenantsLead")}</p>
        <Button onClick={() => setEditing("new")}>
          <Plus aria-hidden="true" />
          {t("addTenant")}
        </Button>
      </div>
      <LoadedTable query={{ ...query, data: tenants }} label={t("tenantList")} headings={headings} waitingRows={2}>
        {(one) => <TenantRow key={one.tenant_uuid} tenant={one} onEdit={() => setEditing(one)} />}
      </LoadedTable>
      <More query={query} />
      <Dialog
        open={editing !== null}
        onClose={() => setEditing(null)}
        title={t(editing === "new" ? "addTenant" : "changeTenant")}
      >
        {editing === "new" && <NewTenant onClose={() => setEditing(null)} />}
        {editing !== null && editing !== "new" && <ChangeTenant tenant={editing} onClose={() => setEditing(null)} />}
      </Dialog>
    </>
  );
}

function TenantRow({ tenant, onEdit }: { tenant: Tenant; onEdit: () => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const failed = useTellFailure();
  const [change, erase] = [useChangeTenant(), useEraseTenant()];
  const [erasing, setErasing] = useState(false);
  const [linking, setLinking] = useState(false);
  const { name, tenant_uuid: uuid, disabled } = tenant;
  const isGoing = tenant.erasing_at !== null;
  const turn = () =>
    change.mutate(
      { uuid, change: { disabled: !disabled, quotas: {} } },
      {
        onSuccess: () =>
          tell({
            text: t(disabled ? "enabledOne" : "disabledOne", { name }),
            undo: () => change.mutate({ uuid, change: { disabled, quotas: {} } }),
          }),
        onError: failed,
      },
    );
  return (
    <Row>
      <Cell column={0} className="font-medium">
        <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
          {name}
          {tenant.is_home && <Badge className="text-quiet">{t("home")}</Badge>}
          {disabled && <Badge className="border-severity-2/40 text-severity-2">{t("disabled")}</Badge>}
        </span>
        {isGoing && (
          <span className="block text-severity-2 text-xs">
            {t("erasing", { rows: tenant.erased_rows, objects: tenant.erased_objects })}
          </span>
        )}
      </Cell>
      <Cell column={1}>
        <Usage tenant={tenant} />
      </Cell>
      <Cell column={2}>
        <div className="flex gap-1 max-sm:flex-wrap sm:justify-end">
          <Button
            variant="outline"
            size="small"
            disabled={isGoing}
            aria-label={`${shared("action.change")}: ${name}`}
            onClick={onEdit}
          >
            {shared("action.change")}
          </Button>
          <Button
            variant="ghost"
            size="small"
            disabled={isGoing || disabled}
            aria-label={`${t("adminLink")}: ${name}`}
            onClick={() => setLinking(true)}
          >
            {t("adminLink")}
          </Button>
          {!tenant.is_home && (
            <>
              <Button
                variant="ghost"
                size="small"
                disabled={isGoing || change.isPending}
                aria-label={`${t(disabled ? "enable" : "disable")}: ${name}`}
                onClick={turn}
              >
                {t(disabled ? "enable" : "disable")}
              </Button>
              <Button
                variant="ghost"
                size="small"
                disabled={isGoing}
                aria-label={`${t("erase")}: ${name}`}
                onClick={() => setErasing(true)}
              >
                {t("erase")}
              </Button>
            </>
          )}
        </div>
        <Dialog open={linking} onClose={() => setLinking(false)} title={t("adminLinkTitle", { name })}>
          {linking && <AdminLink tenant={tenant} onClose={() => setLinking(false)} />}
        </Dialog>
        <ConfirmDialog
          open={erasing}
          onClose={() => setErasing(false)}
          title={t("eraseTitle")}
          lead={t("eraseLead", { name })}
          action={t("erase")}
          typed={name}
          onConfirm={async () => {
            await erase.mutateAsync({ uuid, confirm: name });
            tell({ text: t("erased", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}

/** For when everybody who looks after a tenant has lost the way in. */
function AdminLink({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { t } = useWords();
  const make = useMakeAdminLink();
  if (make.data) {
    const { login, made, password_link } = make.data;
    return (
      <MadeLink link={password_link} onClose={onClose}>
        {t(made ? "adminMade" : "adminFound", { login })}
      </MadeLink>
    );
  }
  return (
    <DialogForm
      sending={[make]}
      onClose={onClose}
      action={t("makeAdminLink")}
      onSend={({ login = "" }) => make.mutate({ uuid: tenant.tenant_uuid, login: login.trim() })}
    >
      <p className="text-quiet text-sm">{t("adminLinkLead")}</p>
      <Field label={t("admin")} name="login" required maxLength={128} autoCapitalize="none" autoComplete="off" />
    </DialogForm>
  );
}

/** A link that is shown once. */
function MadeLink({ link, onClose, children }: { link: PasswordLink; onClose: () => void; children?: ReactNode }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  return (
    <div className="grid gap-3">
      {children && <p className="text-sm">{children}</p>}
      <p className="text-sm">{t("linkOnce", { time: dateAndTime(link.expires_at, i18n.language) })}</p>
      <CopiedText text={link.url} label={t("passwordLink")} />
      <DialogButtons>
        <Button onClick={onClose}>{shared("action.close")}</Button>
      </DialogButtons>
    </div>
  );
}

function Usage({ tenant }: { tenant: Tenant }) {
  const { t, i18n } = useWords();
  const text = (quota: string, value: number) =>
    quota === "kept_bytes_max" ? bytesText(value, i18n.language) : numberText(value, i18n.language);
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1 text-sm">
      {tenant.quotas.map(({ quota, used, most, is_short }) => {
        const known = QUOTAS.find((one) => one === quota);
        return (
          <li key={quota} className={is_short ? "text-severity-2" : undefined}>
            <span className="text-quiet">{known ? t(`quotaNames.${known}`) : quota}: </span>
            <span className="whitespace-nowrap tabular-nums">
              {text(quota, used)} / {most === null ? t("unlimited") : text(quota, most)}
            </span>
            {is_short && ` (${t("short")})`}
          </li>
        );
      })}
    </ul>
  );
}

/** Empty fields are no limit. */
function sentQuotas(sent: Record<string, string>): Quotas {
  const quotas: Quotas = {};
  for (const name of QUOTAS) quotas[name] = sent[name] ? Number(sent[name]) : null;
  return quotas;
}

function QuotaFields({ tenant }: { tenant: Tenant | null }) {
  const { t } = useWords();
  return (
    <fieldset className="grid gap-3">
      <legend className="mb-1 font-medium text-sm">{t("quotas")}</legend>
      <p className="text-quiet text-xs">{t("quotaHint")}</p>
      <div className="grid gap-3 sm:grid-cols-2">
        {QUOTAS.map((name) => (
          <Field
            key={name}
            label={
              name === "kept_bytes_max" ? t("inBytes", { name: t(`quotaNames.${name}`) }) : t(`quotaNames.${name}`)
            }
            name={name}
            type="number"
            min={0}
            defaultValue={tenant?.quotas.find((one) => one.quota === name)?.most ?? ""}
          />
        ))}
      </div>
    </fieldset>
  );
}

function ChangeTenant({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { t } = useWords();
  const change = useChangeTenant();
  return (
    <DialogForm
      sending={[change]}
      onClose={onClose}
      onSend={(sent) => {
        const name = sent.name?.trim() ?? "";
        const changed = { ...(name === tenant.name ? {} : { name }), quotas: sentQuotas(sent) };
        change.mutate(
          { uuid: tenant.tenant_uuid, change: changed },
          {
            onSuccess: () => {
              tell({ text: t("saved") });
              onClose();
            },
          },
        );
      }}
    >
      <Field label={t("tenantName")} name="name" required maxLength={128} defaultValue={tenant.name} />
      <QuotaFields tenant={tenant} />
    </DialogForm>
  );
}

function NewTenant({ onClose }: { onClose: () => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const add = useAddTenant();
  const made = add.data?.password_link;
  if (made) return <MadeLink link={made} onClose={onClose} />;
  return (
    <DialogForm
      sending={[add]}
      onClose={onClose}
      action={shared("action.add")}
      onSend={(sent) => {
        const asked = {
          name: sent.name?.trim() ?? "",
          admin: sent.admin?.trim() ?? "",
          admin_name: sent.admin_name?.trim() ?? "",
          ...(sent.site?.trim() ? { site: sent.site.trim() } : {}),
          timezone: sent.timezone?.trim() || Intl.DateTimeFormat().resolvedOptions().timeZone,
          quotas: sentQuotas(sent),
        };
        // What is left out the server fills in; the generated types want everything said.
        add.mutate(asked as TenantAsked, {
          onSuccess: ({ tenant }) => tell({ text: t("tenantAdded", { name: tenant.name }) }),
        });
      }}
    >
      <Field label={t("tenantName")} name="name" required maxLength={128} autoComplete="off" />
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t("admin")} name="admin" required maxLength={128} autoCapitalize="none" autoComplete="off" />
        <Field label={t("adminName")} name="admin_name" maxLength={128} autoComplete="off" />
        <Field label={t("firstSite")} name="site" maxLength={128} defaultValue="main" autoComplete="off" />
        <Field
          label={t("timezone")}
          name="timezone"
          maxLength={64}
          defaultValue={Intl.DateTimeFormat().resolvedOptions().timeZone}
          autoCapitalize="none"
        />
      </div>
      <QuotaFields tenant={null} />
    </DialogForm>
  );
}
