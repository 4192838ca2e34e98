import { KeyRound, Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSession } from "@/api/queries";
import { useAddUser, useChangeUser, useMakePasswordLink, useRemoveUser, useUsers } from "@/api/settings";
import type { Grants, Role, User } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { CopiedText } from "@/components/copied-text";
import { DialogForm } from "@/components/dialog-form";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Field, SelectField } from "@/components/ui/field";
import { Cell, Row } from "@/components/ui/table";
import { dateAndTime } from "@/display/times";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { tell } from "@/shell/notices";
import { ReachFields } from "./reach";

const useWords = addWords("settings", words);

/** From least to most; nobody makes somebody above themselves. */
export const RANKS: readonly Role[] = ["viewer", "site_manager", "tenant_admin", "system_admin"];
export const rolesUpTo = (role: string) => RANKS.slice(0, RANKS.indexOf(role as Role) + 1);

interface Link {
  url: string;
  expires_at: number;
}

export function People() {
  const { t } = useWords();
  const query = useUsers();
  const users = query.data?.pages.flatMap((page) => page.users);
  const [editing, setEditing] = useState<User | "new" | null>(null);
  const [link, setLink] = useState<Link | null>(null);
  const headings = [t("login"), t("role"), t("reach"), t("lastSeen"), ""];
  return (
    <>
      <div className="mb-3 flex justify-end">
        <Button onClick={() => setEditing("new")}>
          <Plus aria-hidden="true" />
          {t("addUser")}
        </Button>
      </div>
      <LoadedTable query={{ ...query, data: users }} label={t("userList")} headings={headings} waitingRows={3}>
        {(user) => <UserRow key={user.user_uuid} user={user} onEdit={() => setEditing(user)} onLink={setLink} />}
      </LoadedTable>
      <More query={query} />
      <Dialog
        open={editing !== null}
        onClose={() => setEditing(null)}
        title={t(editing === "new" ? "addUser" : "changeUser")}
      >
        {editing !== null && (
          <UserForm
            user={editing === "new" ? null : editing}
            onClose={(made) => {
              setEditing(null);
              setLink(made ?? null);
            }}
          />
        )}
      </Dialog>
      <Dialog open={link !== null} onClose={() => setLink(null)} title={t("passwordLink")}>
        {link && <LinkShown link={link} />}
      </Dialog>
    </>
  );
}

function LinkShown({ link }: { link: Link }) {
  const { t, i18n } = useWords();
  return (
    <div className="grid gap-3">
      <p className="text-sm">{t("linkOnce", { time: dateAndTime(link.expires_at, i18n.language) })}</p>
      <CopiedText text={link.url} label={t("passwordLink")} />
    </div>
  );
}

interface RowProps {
  user: User;
  onEdit: () => void;
  onLink: (link: Link) => void;
}

function UserRow({ user, onEdit, onLink }: RowProps) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const { data: session } = useSession();
  const failed = useTellFailure();
  const [change, remove, makeLink] = [useChangeUser(), useRemoveUser(), useMakePasswordLink()];
  const [removing, setRemoving] = useState(false);
  const { login } = user;
  const name = user.display_name || login;
  const isMe = session?.login === login;
  const role = RANKS.find((one) => one === user.role);
  const small = { variant: "ghost", size: "icon", className: "size-8" } as const;
  const turn = () =>
    change.mutate(
      { login, change: { disabled: !user.disabled } },
      {
        onSuccess: () =>
          tell({
            text: t(user.disabled ? "enabledOne" : "disabledOne", { name }),
            undo: () => change.mutate({ login, change: { disabled: user.disabled } }),
          }),
        onError: failed,
      },
    );
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {name}
        <span className="block font-mono font-normal text-quiet text-xs">{login}</span>
        {user.disabled && <Badge className="text-severity-2">{t("disabled")}</Badge>}
      </Cell>
      <Cell column={1}>{role ? t(`roles.${role}`) : user.role}</Cell>
      <Cell column={2}>
        {user.grants ? [...user.grants.sites, ...user.grants.camera_ids].join(", ") || "–" : t("everything")}
      </Cell>
      <Cell column={3}>{user.last_seen_at === null ? t("never") : <Age at={user.last_seen_at} />}</Cell>
      <Cell column={4}>
        <div className="flex flex-wrap gap-1 sm:justify-end">
          <Button
            {...small}
            aria-label={`${t("passwordLink")}: ${name}`}
            title={t("passwordLink")}
            onClick={() => makeLink.mutate(login, { onSuccess: onLink, onError: failed })}
          >
            <KeyRound aria-hidden="true" />
          </Button>
          <Button {...small} aria-label={`${shared("action.change")}: ${name}`} onClick={onEdit}>
            <Pencil aria-hidden="true" />
          </Button>
          {!isMe && (
            <>
              <Button
                variant="ghost"
                size="small"
                aria-label={`${t(user.disabled ? "enable" : "disable")}: ${name}`}
                onClick={turn}
              >
                {t(user.disabled ? "enable" : "disable")}
              </Button>
              <Button {...small} aria-label={`${shared("action.remove")}: ${name}`} onClick={() => setRemoving(true)}>
                <Trash2 aria-hidden="true" />
              </Button>
            </>
          )}
        </div>
        <ConfirmDialog
          open={removing}
          onClose={() => setRemoving(false)}
          title={t("removeUser")}
          lead={t("removeUserLead", { name })}
          action={shared("action.remove")}
          typed={login}
          onConfirm={async () => {
            await remove.mutateAsync(login);
            tell({ text: t("removed", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}

function UserForm({ user, onClose }: { user: User | null; onClose: (link?: Link) => void }) {
  const { t, i18n } = useWords();
  const { data: session } = useSession();
  const [add, change] = [useAddUser(), useChangeUser()];
  const [role, setRole] = useState<Role>(RANKS.find((one) => one === user?.role) ?? "viewer");
  const [granted, setGranted] = useState<Grants | null>(user?.grants ?? null);
  // Administrators reach everything of their tenant.
  const isNarrowed = role === "viewer" || role === "site_manager";

  function send(sent: Record<string, string>): void {
    const grants = isNarrowed ? granted : null;
    const language = sent.language === "en" ? ("en" as const) : ("ja" as const);
    const display_name = sent.display_name ?? "";
    if (user) {
      const reach = grants ? { grants } : { all_sites: true };
      change.mutate({ login: user.login, change: { display_name, role, language, ...reach } }, { onSuccess: done });
    } else {
      add.mutate(
        { login: sent.login ?? "", display_name, role, language, ...(grants ? { grants } : {}) },
        { onSuccess: ({ password_link }) => done(password_link ?? undefined) },
      );
    }
  }

  function done(made?: unknown): void {
    tell({ text: t("saved") });
    onClose(typeof made === "object" && made !== null && "url" in made ? (made as Link) : undefined);
  }

  return (
    <DialogForm sending={[add, change]} onClose={() => onClose()} onSend={send}>
      {!user && (
        <Field label={t("login")} name="login" required maxLength={128} autoCapitalize="none" autoComplete="off" />
      )}
      <Field
        label={t("displayName")}
        name="display_name"
        maxLength={128}
        defaultValue={user?.display_name ?? ""}
        autoComplete="off"
      />
      <SelectField label={t("role")} value={role} onChange={(event) => setRole(event.target.value as Role)}>
        {rolesUpTo(session?.role ?? "viewer").map((one) => (
          <option key={one} value={one}>
            {t(`roles.${one}`)}
          </option>
        ))}
      </SelectField>
      {isNarrowed && <ReachFields granted={granted} onChange={setGranted} />}
      <SelectField label={t("language")} name="language" defaultValue={user?.language ?? i18n.language}>
        <option value="ja">日本語</option>
        <option value="en">English</option>
      </SelectField>
    </DialogForm>
  );
}
