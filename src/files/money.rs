//! Amounts in files: text and currency to minor units, exactly, and never by a guess. Pure.

use crate::record::{decimal_from_minor, iso_exponent, minor_from_decimal};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Codes in use by ISO 4217 (the list of SIX, <https://www.six-group.com/en/products-services/financial-information/data-standards.html>).
const CODES: &str = "aed afn all amd aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob bov brl bsd btn bwp byn \
    bzd cad cdf che chf chw clf clp cny cop cou crc cup cve czk djf dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs \
    gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr iqd irr isk jmd jod jpy kes kgs khr kmf kpw krw kwd kyd kzt lak \
    lbp lkr lrd lsl lyd mad mdl mga mkd mmk mnt mop mru mur mvr mwk mxn mxv myr mzn nad ngn nio nok npr nzd omr pab \
    pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp szl thb tjs \
    tmt tnd top try ttd twd tzs uah ugx usd usn uyi uyu uyw uzs ved ves vnd vuv wst xaf xcd xcg xof xpf yer zar zmw \
    zwg ang hrk";

/// Most decimals that a currency may be given.
pub const EXPONENT_MAX: u32 = 12;

/// Whether whole numbers are meant in the currency's smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// `19.99` is 19.99, `1999` is 1999.00.
    Decimal,
    /// `1999` is 19.99.
    Minor,
}

/// How decimal amounts are spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// `1234.56`.
    #[default]
    Plain,
    /// `1,234.56` as well.
    Point,
    /// `1.234,56` and `1234,56`.
    Comma,
}

/// The currencies that amounts may be in, with their decimals; numbered in the order of their codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Currencies {
    known: Vec<(String, u32)>,
}

impl Currencies {
    /// ISO 4217, changed and extended by `own` decimals (lower-case code → decimals).
    #[must_use]
    pub fn new(own: &BTreeMap<String, u32>) -> Self {
        let mut known: BTreeMap<String, u32> =
            CODES.split_whitespace().map(|code| (code.to_owned(), iso_exponent(code))).collect();
        known.extend(own.iter().map(|(code, exponent)| (code.clone(), *exponent)));
        Self { known: known.into_iter().collect() }
    }

    /// The number of a code in any case.
    #[must_use]
    pub fn number(&self, code: &str) -> Option<u16> {
        let code = code.to_ascii_lowercase();
        let place = self.known.binary_search_by(|(known, _)| known.cmp(&code)).ok()?;
        u16::try_from(place).ok()
    }

    /// Lower-case code and decimals.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u16) -> (&str, u32) {
        self.known.get(usize::from(number)).map_or(("", 0), |(code, exponent)| (code, *exponent))
    }
}

/// Why a cell is no amount or no currency: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyFault {
    /// What is wrong; never a text that could be personal.
    pub message: String,
    /// What to do; empty where the message says it.
    pub hint: String,
}

impl MoneyFault {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Reads the amounts of one side.
#[derive(Clone, Debug)]
pub struct MoneyReader<'a> {
    currencies: &'a Currencies,
    units: Option<Units>,
    numbers: Numbers,
    /// Codes of up to four bytes as spelled so far, and their numbers: there are few, and each row asks.
    met: Vec<(u32, u16)>,
}

/// A short code as a number; `None` for what is longer or empty.
#[inline]
fn packed(text: &str) -> Option<u32> {
    match *text.as_bytes() {
        [a, b, c] => Some(u32::from_le_bytes([a, b, c, 0])),
        [a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

impl<'a> MoneyReader<'a> {
    /// A reader; without `units` a whole number of a currency with decimals is refused.
    #[must_use]
    pub const fn new(currencies: &'a Currencies, units: Option<Units>, numbers: Numbers) -> Self {
        Self { currencies, units, numbers, met: Vec::new() }
    }

    /// The number of a currency.
    ///
    /// # Errors
    /// When the code is not known.
    #[inline]
    pub fn currency(&mut self, text: &str) -> Result<u16, MoneyFault> {
        let short = packed(text);
        if let Some((_, number)) = self.met.iter().find(|(code, _)| Some(*code) == short) {
            return Ok(*number);
        }
        let code = text.trim_matches([' ', '\t']);
        let number = self.currencies.number(code).ok_or_else(|| unknown_currency(code))?;
        // A NUL, which no text has, keeps codes of three and of four bytes apart.
        self.met.extend(short.map(|code| (code, number)));
        Ok(number)
    }

    /// Minor units of an amount.
    ///
    /// # Errors
    /// When the text is no amount, is finer than the currency, or could be meant in two ways.
    #[inline]
    pub fn amount(&self, text: &str, currency: u16) -> Result<i64, MoneyFault> {
        let (code, exponent) = self.currencies.get(currency);
        if self.numbers == Numbers::Plain
            && let Some((minor, has_point)) = fast_decimal(text.as_bytes(), exponent)
            && (has_point || self.units == Some(Units::Decimal))
            && self.units != Some(Units::Minor)
        {
            return Ok(minor);
        }
        self.careful_amount(text, code, exponent)
    }

    fn careful_amount(&self, text: &str, code: &str, exponent: u32) -> Result<i64, MoneyFault> {
        let text = text.trim_matches([' ', '\t']);
        if text.is_empty() {
            return Err(MoneyFault::new("is empty, and an amount is needed", ""));
        }
        let text = self.plain(text)?;
        if self.units == Some(Units::Minor) {
            return whole(&text);
        }
        if self.units.is_none() && exponent > 0 && !text.contains('.') {
            refuse_unclear(&text, code, exponent)?;
        }
        minor_from_decimal(&text, exponent)
            .map_err(|error| MoneyFault::new(error.to_string(), self.hint(&text)))
    }

    /// The text with a point and no grouping.
    fn plain<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, MoneyFault> {
        let (group, mark) = match self.numbers {
            Numbers::Plain => return Ok(Cow::Borrowed(text)),
            Numbers::Point => (',', '.'),
            Numbers::Comma => ('.', ','),
        };
        let (whole, fraction) =
            text.split_once(mark).map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let digits = whole.trim_start_matches(['-', '+']);
        let mut groups = digits.split(group);
        let first = groups.next().unwrap_or_default();
        let is_grouped = digits.contains(group);
        let fits = !is_grouped || ((1..=3).contains(&first.len()) && groups.all(|part| part.len() == 3));
        if !fits || fraction.is_some_and(|rest| rest.contains([group, mark])) {
            return Err(MoneyFault::new("has separators that are not those of --numbers", ""));
        }
        let whole = whole.replace(group, "");
        Ok(Cow::Owned(fraction.map_or_else(|| whole.clone(), |fraction| format!("{whole}.{fraction}"))))
    }

    fn hint(&self, text: &str) -> &'static str {
        if self.numbers == Numbers::Plain && text.contains(',') {
            "amounts with separators are read on request: --numbers point (1,234.56) or --numbers comma (1.234,56)"
        } else {
            "put the row right in the file; an amount is digits with a point, such as -1234.56"
        }
    }
}

fn unknown_currency(code: &str) -> MoneyFault {
    let hint = "write an ISO 4217 code such as usd; the decimals of any other are said by --exponent CODE=N";
    if code.is_empty() {
        return MoneyFault::new("is empty, and a currency is needed", "");
    }
    if code.len() <= 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return MoneyFault::new(format!("`{code}` is no currency that is known"), hint);
    }
    MoneyFault::new(format!("a text of {} characters is no currency", code.chars().count()), hint)
}

/// A whole number can be meant in two ways, unless it is 0; what is no number is told elsewhere.
fn refuse_unclear(text: &str, code: &str, exponent: u32) -> Result<(), MoneyFault> {
    let Some(number) = whole(text).ok().filter(|number| *number != 0) else { return Ok(()) };
    let small = decimal_from_minor(number, exponent);
    Err(MoneyFault::new(
        format!("`{number}` can be {number} or {small} {code}"),
        "say which: --units decimal, or --units minor for amounts in the smallest unit (for one side: \
         --left units=minor)",
    ))
}

/// A whole number of minor units.
fn whole(text: &str) -> Result<i64, MoneyFault> {
    minor_from_decimal(text, 0).ok().filter(|_| !text.contains('.')).ok_or_else(|| {
        MoneyFault::new("is no whole number of minor units", "--units decimal reads decimal text")
    })
}

/// Powers of ten, as far as the decimals of nearly all currencies go.
const POWERS: [i64; 4] = [1, 10, 100, 1_000];

/// What nearly every amount is, quickly: digits, at most one point, few enough not to overflow; whether there is a point,
/// too. `None` for anything else, which the careful reader then judges.
#[inline]
fn fast_decimal(text: &[u8], exponent: u32) -> Option<(i64, bool)> {
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 15 || exponent as usize >= POWERS.len() {
        return None;
    }
    let (mut minor, mut point) = (0_i64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte.wrapping_sub(b'0') {
            digit @ 0..=9 => minor = minor.wrapping_mul(10).wrapping_add(i64::from(digit)),
            _ if *byte == b'.' && point.is_none() && at > 0 => point = Some(at),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |at| digits.len() - 1 - at);
    let missing = exponent.checked_sub(u32::try_from(decimals).ok()?)?;
    if point.is_some() && decimals == 0 {
        return None;
    }
    let minor = minor * POWERS[missing as usize];
    Some((if is_negative { -minor } else { minor }, point.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(units: Option<Units>, numbers: Numbers, text: &str, code: &str) -> Result<i64, String> {
        let currencies = Currencies::new(&BTreeMap::new());
        let mut reader = MoneyReader::new(&currencies, units, numbers);
        let number = reader.currency(code).map_err(|fault| fault.message)?;
        reader.amount(text, number).map_err(|fault| fault.message)
    }

    #[test]
    fn c42_decimal_text_is_exact_and_what_is_finer_is_refused() {
        let decimal = |text: &str| read(Some(Units::Decimal), Numbers::Plain, text, "USD");
        for (text, minor) in [
            ("19.99", 1999),
            ("8.20", 820),
            ("0.56", 56),
            ("-0.01", -1),
            ("7", 700),
            (" 10.5 ", 1050),
            ("1.5000", 150),
        ] {
            assert_eq!(decimal(text), Ok(minor), "{text}");
        }
        assert!(decimal("2.675").unwrap_err().contains("more than 2 decimals"));
        for text in
            ["", " ", "-", ".5", "5.", "1e3", "1,000.00", "$5.00", "(5.00)", "5.00-", "−5.00", "NaN", "1.2.3"]
        {
            assert!(decimal(text).is_err(), "{text}");
        }
        assert!(!decimal("Maria Silva").unwrap_err().contains("Maria"), "C61");
    }

    #[test]
    fn c39_c41_decimals_are_the_currencys() {
        assert_eq!(read(None, Numbers::Plain, "5800", "jpy"), Ok(5800));
        assert_eq!(read(None, Numbers::Plain, "58.00", "JPY"), Ok(58));
        assert_eq!(read(None, Numbers::Plain, "18.600", "KWD"), Ok(18_600));
        assert_eq!(read(Some(Units::Minor), Numbers::Plain, "18600", "kwd"), Ok(18_600));
    }

    #[test]
    fn a_whole_number_is_refused_until_its_unit_is_said() {
        let text = read(None, Numbers::Plain, "1999", "usd").unwrap_err();
        assert!(text.contains("1999 or 19.99 usd"), "{text}");
        assert_eq!(read(Some(Units::Decimal), Numbers::Plain, "1999", "usd"), Ok(199_900));
        assert_eq!(read(Some(Units::Minor), Numbers::Plain, "1999", "usd"), Ok(1999));
        assert_eq!(read(None, Numbers::Plain, "0", "usd"), Ok(0));
        assert!(read(Some(Units::Minor), Numbers::Plain, "19.99", "usd").is_err());
        assert!(read(Some(Units::Minor), Numbers::Plain, "19.00", "usd").is_err());
    }

    #[test]
    fn separators_are_read_on_request_only() {
        let decimal = Some(Units::Decimal);
        assert_eq!(read(decimal, Numbers::Comma, "1.234,56", "brl"), Ok(123_456));
        assert_eq!(read(decimal, Numbers::Comma, "-1234,5", "brl"), Ok(-123_450));
        assert_eq!(read(decimal, Numbers::Point, "1,234,567.8", "usd"), Ok(123_456_780));
        for text in ["1.2,3", "12.34", "1,2,3", "1.234.56,7", ",5", "1234.567,00"] {
            assert!(read(decimal, Numbers::Comma, text, "brl").is_err(), "{text}");
        }
        assert!(read(decimal, Numbers::Plain, "1234,56", "brl").is_err());
    }

    #[test]
    fn currencies_are_known_or_said() {
        for code in ["usd", "Eur", " GBP "] {
            assert!(read(Some(Units::Minor), Numbers::Plain, "1", code).is_ok(), "{code}");
        }
        assert!(read(None, Numbers::Plain, "1.00", "usdt").unwrap_err().contains("`usdt`"));
        assert!(!read(None, Numbers::Plain, "1.00", "Maria Silva").unwrap_err().contains("Maria"));
        let own = Currencies::new(&BTreeMap::from([("usdt".to_owned(), 6), ("isk".to_owned(), 2)]));
        let reader = MoneyReader::new(&own, None, Numbers::Plain);
        assert_eq!(reader.amount("1.000001", own.number("USDT").unwrap()), Ok(1_000_001));
        assert_eq!(reader.amount("1.00", own.number("ISK").unwrap()), Ok(100));
    }

    #[test]
    fn the_quick_reader_never_says_anything_else() {
        let texts = [
            "0",
            "-0",
            "00",
            "1",
            "1.",
            ".1",
            "-",
            "1.0",
            "1.00",
            "1.000",
            "-12.34",
            "123456789012345",
            "1..0",
        ];
        for (text, exponent) in texts.iter().flat_map(|text| (0..4).map(move |exponent| (text, exponent))) {
            if let Some((minor, has_point)) = fast_decimal(text.as_bytes(), exponent) {
                assert_eq!(minor_from_decimal(text, exponent), Ok(minor), "{text} {exponent}");
                assert_eq!(has_point, text.contains('.'), "{text}");
            }
        }
    }
}
