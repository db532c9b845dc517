//! `recon.toml` as tables whose every error names the file and the line. Values are read one by one,
//! so that nothing is silently ignored and no secret gets into a message.

use super::unusable::{Unusable, suggestion};
use super::values::shown;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A configuration text and where it came from.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl Document<'_> {
    pub fn line_of(&self, offset: usize) -> usize {
        self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
    }

    /// `recon.toml:12`.
    pub fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path.display(), self.line_of(offset))
    }
}

/// One table of the document. A table that is not there reads as empty.
pub(super) struct Section<'a> {
    document: Document<'a>,
    /// As a person would write it: `[report]`, `[[provider]]`.
    title: String,
    table: Option<&'a DeTable<'a>>,
    offset: usize,
}

impl<'a> Section<'a> {
    /// The document's root, whose keys are the section names.
    pub fn root(document: Document<'a>, table: &'a DeTable<'a>, known: &[&str]) -> Result<Self, Unusable> {
        let section = Self { document, title: String::new(), table: Some(table), offset: 0 };
        section.refuse_unknown(known)?;
        Ok(section)
    }

    /// The sub-table `key`, with its keys checked against `known`.
    pub fn section(&self, key: &str, known: &[&str]) -> Result<Section<'a>, Unusable> {
        let section = self.open_section(key)?;
        section.refuse_unknown(known)?;
        Ok(section)
    }

    /// The sub-table `key`, whose keys are data.
    pub fn open_section(&self, key: &str) -> Result<Section<'a>, Unusable> {
        let inner = self.title.trim_matches(['[', ']']);
        let title = if inner.is_empty() { format!("[{key}]") } else { format!("[{inner}.{key}]") };
        let (table, offset) = match self.value(key) {
            None => (None, self.offset),
            Some(value) => match value.get_ref().as_table() {
                Some(table) => (Some(table), value.span().start),
                None => return Err(self.wrong_type(key, value, "a table")),
            },
        };
        Ok(Section { document: self.document, title, table, offset })
    }

    /// The `[[key]]` tables.
    pub fn sections(&self, key: &str, known: &[&str]) -> Result<Vec<Section<'a>>, Unusable> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let Some(array) = value.get_ref().as_array() else {
            return Err(self.wrong_type(key, value, &format!("written as [[{key}]]")));
        };
        let mut sections = Vec::new();
        for item in array {
            let Some(table) = item.get_ref().as_table() else {
                return Err(self.wrong_type(key, item, &format!("written as [[{key}]]")));
            };
            let section = Section {
                document: self.document,
                title: format!("[[{key}]]"),
                table: Some(table),
                offset: item.span().start,
            };
            section.refuse_unknown(known)?;
            sections.push(section);
        }
        Ok(sections)
    }

    fn refuse_unknown(&self, known: &[&str]) -> Result<(), Unusable> {
        let Some(table) = self.table else { return Ok(()) };
        let unknown = table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        let Some(key) = unknown else { return Ok(()) };
        let place = self.document.place(key.span().start);
        let inside = if self.title.is_empty() { String::new() } else { format!(" in {}", self.title) };
        Err(Unusable::new(
            format!("{place}: unknown setting {}{inside}", shown(key.get_ref())),
            suggestion(key.get_ref(), known),
        ))
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table?.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value)
    }

    /// Keys with their text values, for tables whose keys are data.
    pub fn entries(&self) -> Vec<(&'a str, &'a Spanned<DeValue<'a>>)> {
        let Some(table) = self.table else { return Vec::new() };
        table.iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect()
    }

    /// A text.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, Unusable> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(self.wrong_type(key, value, "a text in quotes")),
        }
    }

    /// A whole number of at least `min` and at most `max`.
    pub fn integer(&self, key: &str, min: i64, max: i64) -> Result<Option<i64>, Unusable> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
            .ok_or_else(|| self.wrong_type(key, value, "a whole number"))?;
        if (min..=max).contains(&number) {
            return Ok(Some(number));
        }
        let why =
            if number < min { format!("must be at least {min}") } else { format!("must be at most {max}") };
        Err(self.bad(key, &why, ""))
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, Unusable> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.get_ref().as_bool().map(Some).ok_or_else(|| self.wrong_type(key, value, "true or false"))
    }

    /// A list of texts.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, Unusable> {
        let Some(items) = self.items(key)? else { return Ok(None) };
        let texts = items.iter().map(|item| {
            item.get_ref().as_str().ok_or_else(|| self.wrong_type(key, item, "a list of texts in quotes"))
        });
        texts.collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// The values of a list.
    pub fn items(&self, key: &str) -> Result<Option<Vec<&'a Spanned<DeValue<'a>>>>, Unusable> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.get_ref().as_array() {
            Some(array) => Ok(Some(array.iter().collect())),
            None => Err(self.wrong_type(key, value, "a list")),
        }
    }

    /// The value as it stands, for settings with more than one form.
    pub fn raw(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.value(key)
    }

    /// An error about one setting, at its line, or at the section's where it is missing.
    pub fn bad(&self, key: &str, why: &str, hint: impl Into<String>) -> Unusable {
        let offset = self.value(key).map_or(self.offset, |value| value.span().start);
        let of = if self.title.is_empty() { String::new() } else { format!("{} ", self.title) };
        Unusable::new(format!("{}: {of}{key} {why}", self.document.place(offset)), hint)
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> Unusable {
        let of = if self.title.is_empty() { String::new() } else { format!("{} ", self.title) };
        let place = self.document.place(value.span().start);
        let is = value.get_ref().type_str();
        Unusable::new(format!("{place}: {of}{key} must be {wanted}, and is a {is}"), "")
    }
}
