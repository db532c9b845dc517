//! `[[provider]]`: one table for each provider account pool.

use super::context::Context;
use super::document::Section;
use super::load::duration;
use super::unusable::{Unusable, suggestion};
use super::values::{parse_base_url, shown};
use super::{Accounts, EndpointKind, EndpointSettings, ProviderSettings};
use crate::record::EffectKind;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What every provider has, whoever it is.
const ENDPOINT_KEYS: [&str; 7] =
    ["name", "kind", "mode", "webhook_secrets", "webhook_url", "tolerance", "signature"];
/// What only those have whose lists are read.
const LIST_KEYS: [&str; 9] = [
    "base_url",
    "api_key",
    "accounts",
    "requests_per_second",
    "account_requests_per_second",
    "settle_delay",
    "effects",
    "event_types",
    "intent",
];

/// Stripe's documented limits (docs.stripe.com/rate-limits): 25 requests/s for one endpoint, 100/s for
/// a live account, 25/s for a sandbox. The defaults are 80 % of them.
const STRIPE_ENDPOINT_PER_SECOND: i64 = 25 * 8 / 10;
const STRIPE_LIVE_ACCOUNT_PER_SECOND: i64 = 100 * 8 / 10;
const STRIPE_TEST_ACCOUNT_PER_SECOND: i64 = 25 * 8 / 10;
const PER_SECOND_MAX: i64 = 100_000;

/// Every provider, at least one, names unique: those whose lists a run reads, and all as endpoints.
pub(super) fn read_providers(
    root: &Section<'_>,
    context: &Context<'_>,
) -> Result<(Vec<ProviderSettings>, Vec<EndpointSettings>), Unusable> {
    let known = [&ENDPOINT_KEYS[..], &LIST_KEYS[..]].concat();
    let mut providers = Vec::new();
    let mut endpoints: Vec<EndpointSettings> = Vec::new();
    for section in root.sections("provider", &known)? {
        let endpoint = read_endpoint(&section, context)?;
        if endpoints.iter().any(|other| other.name == endpoint.name) {
            let why = format!("`{}` is the name of two providers", endpoint.name);
            return Err(section.bad(
                "name",
                &why,
                "the name is the `provider` column everywhere; make it unique",
            ));
        }
        if endpoint.kind == EndpointKind::Stripe {
            providers.push(read_provider(&section, context, &endpoint)?);
        } else if let Some(key) = LIST_KEYS.into_iter().find(|key| section.raw(key).is_some()) {
            let why = format!("means nothing for {}, whose lists are not read", endpoint.kind.as_str());
            return Err(section.bad(key, &why, "leave it out"));
        }
        endpoints.push(endpoint);
    }
    if endpoints.is_empty() {
        return Err(root.bad(
            "[[provider]]",
            "is missing: there is nothing to ask",
            "`recon init` writes an example",
        ));
    }
    Ok((providers, endpoints))
}

fn read_endpoint(section: &Section<'_>, context: &Context<'_>) -> Result<EndpointSettings, Unusable> {
    const TOLERANCE_MAX: Duration = Duration::from_hours(24);
    let word = section.text("kind")?.unwrap_or("stripe");
    let kind = EndpointKind::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or_else(|| {
        let known = EndpointKind::ALL.map(EndpointKind::as_str);
        section.bad("kind", &format!("{} is not known", shown(word)), suggestion(word, &known))
    })?;
    let name = section
        .text("name")?
        .ok_or_else(|| section.bad("name", "is missing", "such as name = \"stripe\""))?;
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_word) {
        return Err(section.bad("name", "must be letters, digits, `_`, `-` and `.`", ""));
    }
    let mode = section.text("mode")?.unwrap_or("live");
    if !matches!(mode, "live" | "test") {
        return Err(section.bad("mode", "must be \"live\" or \"test\"", ""));
    }
    let tolerance = duration(section, "tolerance", "5m")?;
    if tolerance.is_zero() || tolerance > TOLERANCE_MAX {
        return Err(section.bad("tolerance", "must be longer than nothing and at most 24h", ""));
    }
    let public_url = section.text("webhook_url")?.map(|url| {
        parse_base_url(url).map_err(|why| section.bad("webhook_url", &why, "")).map(|_| url.trim().to_owned())
    });
    let signature = section.open_section("signature")?;
    let mut described = BTreeMap::new();
    for (key, _) in signature.entries() {
        described.insert(key.to_owned(), signature.text(key)?.unwrap_or_default().to_owned());
    }
    Ok(EndpointSettings {
        name: name.to_owned(),
        kind,
        mode: mode.to_owned(),
        secrets: context.secrets(section, "webhook_secrets")?,
        public_url: public_url.transpose()?,
        tolerance,
        signature: described,
    })
}

fn read_provider(
    section: &Section<'_>,
    context: &Context<'_>,
    endpoint: &EndpointSettings,
) -> Result<ProviderSettings, Unusable> {
    let base_url = parse_base_url(section.text("base_url")?.unwrap_or("https://api.stripe.com"))
        .map_err(|why| section.bad("base_url", &why, ""))?;
    let api_key = context.secret(section, "api_key")?.ok_or_else(|| {
        section.bad(
            "api_key",
            "is missing",
            "write api_key = { env = \"STRIPE_API_KEY\" }; a restricted key that reads is enough",
        )
    })?;
    check_key(section, api_key.reveal(), &endpoint.mode)?;
    let account_default =
        if endpoint.mode == "live" { STRIPE_LIVE_ACCOUNT_PER_SECOND } else { STRIPE_TEST_ACCOUNT_PER_SECOND };
    Ok(ProviderSettings {
        name: endpoint.name.clone(),
        base_url,
        api_key,
        accounts: read_accounts(section)?,
        mode: endpoint.mode.clone(),
        requests_per_second: per_second(section, "requests_per_second", STRIPE_ENDPOINT_PER_SECOND)?,
        account_requests_per_second: per_second(section, "account_requests_per_second", account_default)?,
        settle_delay: duration(section, "settle_delay", "5m")?,
        effects: read_effects(section)?,
        event_types: read_event_types(section)?,
        intent: read_intent(section)?,
    })
}

/// Refuses what by its own prefix cannot be meant (docs.stripe.com/keys): the provider would answer "unauthorised",
/// or with another mode's data. Says which sort of key it is and nothing else of it; an unknown sort passes.
fn check_key(section: &Section<'_>, key: &str, mode: &str) -> Result<(), Unusable> {
    let (why, hint) = match key.get(..key.find('_').map_or(0, |at| at + 1)) {
        Some("pk_") => (
            "is a publishable key (pk_…), which can list nothing".to_owned(),
            "give a restricted key that reads (rk_…)".to_owned(),
        ),
        Some("whsec_") => (
            "is the signing secret of a webhook endpoint (whsec_…), not an API key".to_owned(),
            "give a restricted key that reads (rk_…)".to_owned(),
        ),
        Some(sort @ ("rk_" | "sk_")) => {
            let key_mode = ["live", "test"].into_iter().find(|word| key[3..].starts_with(word));
            match key_mode.filter(|key_mode| *key_mode != mode) {
                Some(key_mode) => (
                    format!("is a key of {key_mode} mode ({sort}{key_mode}_…), and `mode` is \"{mode}\""),
                    format!("write mode = \"{key_mode}\", or give a key that begins with {sort}{mode}_"),
                ),
                None => return Ok(()),
            }
        }
        _ => return Ok(()),
    };
    Err(section.bad("api_key", &why, hint))
}

fn per_second(section: &Section<'_>, key: &str, default: i64) -> Result<u32, Unusable> {
    let rate = section.integer(key, 1, PER_SECOND_MAX)?.unwrap_or(default);
    Ok(u32::try_from(rate).unwrap_or(1))
}

fn read_accounts(section: &Section<'_>) -> Result<Accounts, Unusable> {
    let Some(names) = section.texts("accounts")? else { return Ok(Accounts::Named(vec![String::new()])) };
    if names == ["*"] {
        return Ok(Accounts::All);
    }
    if names.is_empty() {
        return Err(section.bad("accounts", "is empty", "\"\" is the platform account"));
    }
    let mut seen = BTreeSet::new();
    for name in &names {
        if *name == "*" {
            return Err(section.bad("accounts", "must have \"*\" alone or not at all", ""));
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(section.bad("accounts", "must hold account ids such as acct_1, or \"\"", ""));
        }
        if !seen.insert(*name) {
            return Err(section.bad("accounts", &format!("names `{name}` twice"), ""));
        }
    }
    Ok(Accounts::Named(names.into_iter().map(str::to_owned).collect()))
}

fn read_effects(section: &Section<'_>) -> Result<BTreeSet<EffectKind>, Unusable> {
    let Some(words) = section.texts("effects")? else {
        return Ok(BTreeSet::from([
            EffectKind::Credit,
            EffectKind::Refund,
            EffectKind::DisputeWithdrawn,
            EffectKind::DisputeReinstated,
        ]));
    };
    let known = EffectKind::ALL.map(EffectKind::as_str);
    let mut effects = BTreeSet::new();
    for word in words {
        let kind = word.parse::<EffectKind>().map_err(|()| {
            let why = format!("names {}, which is no kind of effect", shown(word));
            section.bad("effects", &why, suggestion(word, &known))
        })?;
        effects.insert(kind);
    }
    if effects.is_empty() {
        return Err(section.bad("effects", "is empty: there is nothing to compare", ""));
    }
    Ok(effects)
}

fn read_event_types(section: &Section<'_>) -> Result<Option<BTreeSet<String>>, Unusable> {
    let Some(types) = section.texts("event_types")? else { return Ok(None) };
    for name in &types {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_');
        if name.is_empty() || !name.bytes().all(is_plain) {
            return Err(section.bad(
                "event_types",
                "must hold exact event types such as charge.succeeded",
                "leave the setting out to take the types that the endpoint is subscribed to",
            ));
        }
    }
    Ok(Some(types.into_iter().map(str::to_owned).collect()))
}

fn read_intent(section: &Section<'_>) -> Result<Option<String>, Unusable> {
    let Some(path) = section.text("intent")? else { return Ok(None) };
    if path.split('.').any(|step| step.is_empty() || step.chars().any(char::is_whitespace)) {
        return Err(section.bad("intent", "must be a dotted path such as metadata.order_id", ""));
    }
    Ok(Some(path.to_owned()))
}
