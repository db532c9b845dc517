//! The shop of `books_oracle`, whose books may be written: the statements that a team writes for its own tables, its key
//! table, and all of its rows as text.

use super::handler::Handler;
use crate::books::{Books, Kind};
use crate::books_oracle::{Moved, instant, staged_with};
use crate::stage::Stage;
use recon::commands::Outcome;
use recon::commands::apply::{ApplyArgs, apply_with};
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use recon::gather::KEY_TABLES;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Where the corrections go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Ledger,
    Sql,
    /// What events announce by the handler, the rest by statements.
    Http,
}

pub struct Shop {
    pub stage: Stage,
    pub books: Books,
    pub kind: Kind,
    pub handler: Option<Handler>,
}

const HANDLED: [&str; 2] = ["missed_event", "unapplied_event"];
const WRITTEN: [&str; 4] = ["missing_effect", "duplicate_effect", "stale_state", "forbidden_transition"];

impl Shop {
    pub async fn new(kind: Kind, to: To, seed: u64, events: usize, mix: &Mix) -> Self {
        Self::on(kind, to, (seed, events, mix), None).await
    }

    pub async fn on(kind: Kind, to: To, (seed, events, mix): (u64, usize, &Mix), own: Option<Books>) -> Self {
        let moved = if to == To::Ledger { Moved::InboxOnly } else { Moved::All };
        let (stage, books) = staged_with(kind, (seed, events, mix, Faults::default()), own, moved).await;
        let mut shop = Self { stage, books, kind, handler: None };
        if to == To::Ledger {
            std::fs::remove_file(shop.query("effects.sql")).unwrap();
            std::fs::remove_file(shop.query("states.sql")).unwrap();
            return shop;
        }
        let id = kind.pick("text", "text", "varchar(190)");
        let table = KEY_TABLES.iter().find(|(name, _)| *name == kind.pick("sqlite", "postgres", "mysql"));
        shop.books
            .run_sql(&format!(
                "alter table shop_booking add k {id}; create unique index booking_key on shop_booking (k); {};",
                table.unwrap().1
            ))
            .await;
        let folder = shop.stage.folder.path();
        std::fs::write(folder.join("target.url"), shop.books.hand().url()).unwrap();
        write_target(kind, &folder.join("target"));
        let mut text = std::fs::read_to_string(shop.stage.config()).unwrap();
        text += "[target]\nurl = { file = \"target.url\" }\nqueries = \"target\"\n[corrections.target]\n";
        let by = if to == To::Http { "http" } else { "sql" };
        for word in HANDLED {
            writeln!(text, "{word} = \"{by}\"").unwrap();
        }
        for word in WRITTEN {
            writeln!(text, "{word} = \"sql\"").unwrap();
        }
        if to == To::Http {
            let handler = Handler::open(&shop.stage.world, kind, shop.books.hand()).await;
            std::fs::write(folder.join("hook.secret"), super::handler::SECRET).unwrap();
            writeln!(
                text,
                "[corrections.http]\nurl = \"{}\"\nsecret = {{ file = \"hook.secret\" }}\ntimeout = \"2s\"\n\
                 verify_within = \"1s\"\nrequests_per_second = 1000",
                handler.url
            )
            .unwrap();
            shop.handler = Some(handler);
        }
        std::fs::write(shop.stage.config(), text).unwrap();
        shop
    }

    pub fn query(&self, name: &str) -> PathBuf {
        self.stage.folder.path().join("queries").join(name)
    }

    /// Writes one of the team's statements anew.
    pub fn statement(&self, name: &str, text: &str) {
        std::fs::write(self.stage.folder.path().join("target").join(name), text).unwrap();
    }

    /// Applies a plan: how it ended, what it said on stdout and on stderr.
    pub async fn apply(&self, plan: &Path) -> anyhow::Result<(Outcome, String, String)> {
        let settings = recon::config::load_to_apply(Some(&self.stage.config()))?;
        let args = ApplyArgs { plan: plan.to_owned() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let provider = recon::commands::apply::configured(&settings, self.stage.world.now_us);
        let now_us = self.stage.world.now_us;
        let outcome = apply_with(&settings, &args, now_us, &provider, &mut out, &mut err).await?;
        Ok((outcome, String::from_utf8(out)?, String::from_utf8(err)?))
    }

    /// Every row of the shop, and of the key table.
    pub async fn rows(&self) -> String {
        let mut all = String::new();
        for table in ["shop_event", "shop_booking", "shop_payment", "recon_applied"] {
            all += &self.books.hand().dump(table).await;
        }
        all
    }
}

/// What a team writes for these tables.
fn write_target(kind: Kind, folder: &Path) {
    let at = |name: &str| match kind {
        Kind::Sqlite => format!(":{name}"),
        Kind::Postgres => format!("timestamptz 'epoch' + :{name} * interval '1 microsecond'"),
        Kind::MariaDb => format!("date_add('1970-01-01', interval :{name} microsecond)"),
    };
    let live = "case :mode when 'live' then 1 else 0 end";
    std::fs::create_dir_all(folder).unwrap();
    for (name, text) in [
        (
            "apply_effect.sql",
            format!(
                "-- Books an effect once: k is unique, and the handler's own key.
                 insert into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes, k)
                 values (:effect_key, :account, {live}, :object_id, :kind, :amount_minor, :currency, {}, :event_id, '', :effect_key)",
                at("applied_at_us")
            ),
        ),
        (
            "reverse_entry.sql",
            format!(
                "insert into shop_booking (number, acct, live, ext, what, cents, money, booked, event, undoes, k)
                 select :effect_key, acct, live, ext, what, -cents, money, {}, '', number, :effect_key
                 from shop_booking where number = :effect_id and cents = :amount_minor;",
                at("applied_at_us")
            ),
        ),
        (
            "set_state.sql",
            format!(
                "update shop_payment set word = :state, refunded = coalesce(:refunded_minor, refunded), changed = {},
                    who = 'recon'
                 where ext = :object_id and acct = :account and word = :found_status",
                at("applied_at_us")
            ),
        ),
        (
            "file_event.sql",
            format!(
                "insert into shop_event (acct, live, id, name, raw, sha, got, word)
                 values (:account, {live}, :event_id, :event_type, :body_bytes, '', {}, 'applied')",
                at("occurred_at_us")
            ),
        ),
        (
            "mark_event.sql",
            format!("update shop_event set word = 'applied' where id = :event_id and acct = :account and live = {live}"),
        ),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// An instant as a literal of a statement that the shop itself runs.
pub fn now(kind: Kind, us: i64) -> String {
    instant(kind, us)
}
