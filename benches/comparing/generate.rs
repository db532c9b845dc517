//! Six relations of a seeded month: about three events a payment, refunds, a few disputes, and faults
//! planted in one payment of a thousand. The same size gives the same bytes.

use super::relations::Relation;
use anyhow::{Context, Result};
use recon::record::Window;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Start of the month, Unix µs: 2026-10-01.
const START_US: u64 = 1_790_812_800_000_000;
const MONTH_US: u64 = 31 * 86_400_000_000;
/// One payment in this many is faulty.
const FAULTY_ONE_IN: u64 = 1_000;
const FAULT_KINDS: u64 = 11;
/// Inbox rows that wait to be written, so that they arrive in another order than they were sent.
const ARRIVING: usize = 4_096;

/// The month, as a run's window.
pub(crate) fn window() -> Window {
    let us = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
    Window { from_us: us(START_US), until_us: us(START_US + MONTH_US) }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn place(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// An id such as the provider makes them: a prefix and 24 letters and digits.
    fn id(&mut self, prefix: &str) -> String {
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut id = String::with_capacity(prefix.len() + 24);
        id.push_str(prefix);
        for _ in 0..3 {
            let mut bits = self.next();
            for _ in 0..8 {
                id.push(char::from(LETTERS[usize::try_from(bits % 62).unwrap_or_default()]));
                bits /= 62;
            }
        }
        id
    }
}

struct Month {
    random: Random,
    files: Vec<BufWriter<File>>,
    arriving: Vec<String>,
    events: u64,
}

/// What one payment of the month is like.
struct Payment {
    scope: &'static str,
    root: String,
    currency: &'static str,
    at_us: u64,
    fault: Option<u64>,
}

/// One effect of a payment and the events that tell of it.
struct Effect {
    kind: &'static str,
    object: String,
    event_type: &'static str,
    state_type: &'static str,
    minor: u64,
    later_us: u64,
}

/// Writes the relations into `folder` and says how many payments are faulty.
pub(crate) fn generate(folder: &Path, events: u64) -> Result<u64> {
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let mut files = Vec::new();
    for relation in Relation::ALL {
        let (name, header) = relation.shape();
        let mut file =
            BufWriter::with_capacity(1 << 20, File::create(folder.join(name).with_extension("csv"))?);
        writeln!(file, "{header}")?;
        files.push(file);
    }
    let mut month = Month { random: Random(events), files, arriving: Vec::new(), events: 0 };
    let mut planted = 0;
    let mut twin = None;
    while month.events < events {
        let mut payment = month.payment(month.events * (MONTH_US / 2) / events);
        planted += u64::from(payment.fault.is_some());
        if payment.fault == Some(10) && twin.is_none() {
            twin = Some(payment.root.clone());
        }
        month.write(&mut payment, twin.as_deref())?;
        if payment.fault == Some(10) && twin.as_deref() != Some(&payment.root) {
            twin = None;
        }
    }
    let left: Vec<String> = std::mem::take(&mut month.arriving);
    for row in left {
        writeln!(month.files[1], "{row}")?;
    }
    for file in &mut month.files {
        file.flush()?;
    }
    Ok(planted)
}

impl Month {
    fn payment(&mut self, since_us: u64) -> Payment {
        let scope = match self.random.below(10) {
            0 => "stripe,acct_1NkP2aLkdIwHu7ix,live",
            1 => "stripe,acct_1MgQ7bXyzAbCdEfG,live",
            _ => "stripe,,live",
        };
        Payment {
            scope,
            root: self.random.id("pi_3"),
            currency: ["usd", "usd", "eur", "brl", "jpy"][self.random.place(5)],
            at_us: START_US + since_us,
            fault: (self.random.below(FAULTY_ONE_IN) == 0).then(|| self.random.below(FAULT_KINDS)),
        }
    }

    fn effects(&mut self) -> (Vec<Effect>, &'static str, u64) {
        let charge = self.random.id("ch_3");
        let minor = 100 + self.random.below(50_000);
        let mut effects = vec![Effect {
            kind: "credit",
            object: charge,
            event_type: "charge.succeeded",
            state_type: "payment_intent.succeeded",
            minor,
            later_us: 0,
        }];
        let (mut status, mut refunded) = ("paid", 0);
        let luck = self.random.below(100);
        if luck < 15 {
            refunded = if luck < 8 { minor } else { minor / 2 };
            status = if luck < 8 { "refunded" } else { "partially_refunded" };
            effects.push(Effect {
                kind: "refund",
                object: self.random.id("re_3"),
                event_type: "refund.created",
                state_type: "charge.refunded",
                minor: refunded,
                later_us: 86_400_000_000,
            });
        } else if luck < 16 {
            status = "disputed";
            effects.push(Effect {
                kind: "dispute_withdrawn",
                object: self.random.id("dp_1"),
                event_type: "charge.dispute.funds_withdrawn",
                state_type: "charge.dispute.created",
                minor,
                later_us: 172_800_000_000,
            });
        }
        (effects, status, refunded)
    }

    /// Faults: 0 missed event, 1 dead letter, 2 effect missing, 3 booked twice, 4 other amount, 5 other
    /// currency, 6 stale status, 7 row names an event of nobody, 8 booked out of the window, 9 orphan beside it, 10 a second payment for one intent.
    fn write(&mut self, payment: &mut Payment, twin: Option<&str>) -> Result<()> {
        let (effects, status, refunded) = self.effects();
        let Payment { scope, root, currency, at_us, fault } = payment;
        let created = self.random.id("evt_3");
        self.provider_event(scope, root, root, &created, "payment_intent.created", "", *at_us, false)?;
        let authorized = effects[0].minor;
        for (place, effect) in effects.iter().enumerate() {
            let fault = fault.filter(|_| place == 0);
            let at_us = *at_us + effect.later_us;
            let event = self.random.id("evt_3");
            let state_event = self.random.id("evt_3");
            let object = &effect.object;
            self.provider_event(scope, root, object, &event, effect.event_type, effect.kind, at_us, true)?;
            self.provider_event(scope, root, root, &state_event, effect.state_type, "state", at_us, true)?;
            let status = if fault == Some(1) { "dead" } else { "applied" };
            if fault != Some(0) {
                self.inbox_event(scope, &event, effect.event_type, at_us, status)?;
            }
            self.inbox_event(scope, &state_event, effect.state_type, at_us, "superseded")?;
            let intent = match twin {
                Some(twin) if fault == Some(10) => twin,
                _ if effect.kind == "credit" => root,
                _ => "",
            };
            let (kind, minor) = (effect.kind, effect.minor);
            writeln!(self.files[2], "{scope},{root},{object},{kind},{minor},{currency},{at_us},{intent},1")?;
            self.local_effect(scope, root, effect, currency, at_us, &event, fault)?;
        }
        for (object, refunded, authorized) in [
            (effects[0].object.as_str(), refunded.to_string(), authorized.to_string()),
            (root, String::new(), String::new()),
        ] {
            writeln!(self.files[4], "{scope},{root},{object},{status},{refunded},{authorized},{at_us}")?;
        }
        let local = if *fault == Some(6) { "pending" } else { status };
        writeln!(self.files[5], "{scope},{root},{root},{local},{refunded},{at_us},")?;
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one argument a column")]
    fn provider_event(
        &mut self,
        scope: &str,
        root: &str,
        object: &str,
        event: &str,
        event_type: &str,
        tracks: &str,
        at_us: u64,
        wanted: bool,
    ) -> Result<()> {
        self.events += 1;
        let wanted = u8::from(wanted);
        writeln!(self.files[0], "{scope},{root},{object},{event},{event_type},{tracks},{at_us},{wanted},1")?;
        Ok(())
    }

    fn inbox_event(
        &mut self,
        scope: &str,
        event: &str,
        event_type: &str,
        at_us: u64,
        status: &str,
    ) -> Result<()> {
        let received = at_us + self.random.below(3_000_000);
        let body: [u64; 4] = std::array::from_fn(|_| self.random.next());
        let row = format!(
            "{scope},{event},{event_type},{received},{status},{:016x}{:016x}{:016x}{:016x}",
            body[0], body[1], body[2], body[3]
        );
        if self.arriving.len() < ARRIVING {
            self.arriving.push(row);
            return Ok(());
        }
        let place = self.random.place(ARRIVING);
        let arrived = std::mem::replace(&mut self.arriving[place], row);
        writeln!(self.files[1], "{arrived}")?;
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one argument a column")]
    fn local_effect(
        &mut self,
        scope: &str,
        root: &str,
        effect: &Effect,
        currency: &str,
        at_us: u64,
        event: &str,
        fault: Option<u64>,
    ) -> Result<()> {
        let Effect { kind, object, minor, .. } = effect;
        let minor = if fault == Some(4) { minor + 1 } else { *minor };
        let currency = if fault == Some(5) { "gbp" } else { currency };
        let foreign = self.random.id("evt_3");
        let event = if fault == Some(7) { foreign.as_str() } else { event };
        let is_late = fault == Some(8);
        let applied = at_us + 2_000_000 + if is_late { MONTH_US } else { 0 };
        let in_window = u8::from(!is_late);
        let copies = match fault {
            Some(2) => 0,
            Some(3) => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let row = self.random.id("row_");
            writeln!(
                self.files[3],
                "{scope},{root},{object},{row},{kind},{minor},{currency},{applied},{event},,{in_window}"
            )?;
        }
        if fault == Some(9) {
            let (row, orphan) = (self.random.id("row_"), self.random.id("re_3"));
            writeln!(
                self.files[3],
                "{scope},{root},{orphan},{row},refund,{minor},{currency},{applied},,,{in_window}"
            )?;
        }
        Ok(())
    }
}
