//! How the files of one side are to be read. Pure.

/// What stands between the fields of a CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// A tab.
    Tab,
    /// `|`, which is never guessed.
    Pipe,
}

impl Delimiter {
    /// Those that are tried on a header where none is named.
    pub(super) const TRIED: [Self; 3] = [Self::Comma, Self::Semicolon, Self::Tab];

    /// Its byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Pipe => b'|',
        }
    }

    /// From its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "comma" => Some(Self::Comma),
            "semicolon" => Some(Self::Semicolon),
            "tab" => Some(Self::Tab),
            "pipe" => Some(Self::Pipe),
            _ => None,
        }
    }
}

/// The encoding of a file's text, by any label of the WHATWG Encoding Standard (<https://encoding.spec.whatwg.org>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub(super) &'static encoding_rs::Encoding);

impl Default for Encoding {
    fn default() -> Self {
        Self(encoding_rs::UTF_8)
    }
}

impl Encoding {
    /// From a label such as `latin1`, `windows-1252` or `utf-16le`.
    #[must_use]
    pub fn parse(label: &str) -> Option<Self> {
        encoding_rs::Encoding::for_label(label.as_bytes()).map(Self)
    }

    pub(super) fn is_utf_8(self) -> bool {
        self.0 == encoding_rs::UTF_8
    }
}

/// How the files of one side are to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// Columns that are wanted, in the order in which rows hand them out; each once.
    pub columns: Vec<String>,
    /// Between the fields of a CSV file; `None`: what makes the header have all wanted columns.
    pub delimiter: Option<Delimiter>,
    /// Of the text.
    pub encoding: Encoding,
}
