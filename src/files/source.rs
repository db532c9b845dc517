//! Hands out the files of both sides in blocks of whole rows, to any number of threads, in one order.
//!
//! A block ends after a line end that no quotes enclose. Quotes come in pairs in every CSV that is read further, so
//! their count says which line ends those are; where it misleads, the row that makes it so is refused.

use super::ROW_BYTES_MAX;
use super::layout::{self, CsvLayout, Layout};
use super::open::Watch;
use super::side::FileSettings;
use super::unpack::{self, Reader, WrongEncoding};
use crate::config::Unusable;
use anyhow::{Result, bail};
use memchr::{memchr_iter, memrchr, memrchr2};
use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const BLOCK_BYTES: usize = 512 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A row of a file: the wanted fields in the order of the settings' columns, `None` where JSON has no value.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r, 'a> {
    /// Number of its file.
    pub file: u32,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// Wanted fields.
    pub fields: &'r [Option<Cow<'a, str>>],
}

/// Something about a file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNote {
    /// The file as it was named.
    pub path: PathBuf,
    /// What is to be known.
    pub note: &'static str,
}

/// The files of a reading, numbered from 0, each with its side's settings.
#[derive(Debug)]
pub struct Source {
    files: Vec<(PathBuf, Arc<FileSettings>)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_file: usize,
    open: Option<OpenFile>,
    /// Blocks handed out.
    sequence: u64,
    is_stopped: bool,
    notes: Vec<FileNote>,
}

struct OpenFile {
    number: usize,
    reader: Reader,
    watch: Watch,
    layout: Option<Arc<Layout>>,
    /// The begun row at the end of the last block.
    carry: Vec<u8>,
    /// Line on which the next block begins.
    line: u64,
    is_ended: bool,
    /// Whether its last line had no line end.
    lacks_line_end: bool,
}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "file {} at line {}", self.number, self.line)
    }
}

/// What a block of bytes holds.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) sequence: u64,
    pub(super) file: usize,
    /// First byte and line of its rows.
    pub(super) start: usize,
    pub(super) line: u64,
    pub(super) layout: Arc<Layout>,
    /// Whether its last row is too long to be whole.
    pub(super) is_cut: bool,
}

impl Source {
    /// Files to be read in this order.
    #[must_use]
    pub fn new(files: Vec<(PathBuf, Arc<FileSettings>)>) -> Self {
        Self { files, state: Mutex::default() }
    }

    /// The file of a number as it was named.
    #[must_use]
    pub fn path(&self, file: usize) -> &Path {
        self.files.get(file).map_or(Path::new(""), |(path, _)| path)
    }

    pub(super) fn settings(&self, file: usize) -> Option<&FileSettings> {
        self.files.get(file).map(|(_, settings)| &**settings)
    }

    /// What was noticed about the files, once they are read.
    #[must_use]
    pub fn notes(self) -> Vec<FileNote> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).notes
    }

    /// Hands out no more blocks.
    pub(super) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_stopped = true;
    }

    /// The next block of whole rows into `buffer`; `None` when everything was handed out. An error carries the number
    /// that its block would have had.
    pub(super) fn next_block(&self, buffer: &mut Vec<u8>) -> Result<Option<Block>, (u64, anyhow::Error)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped {
            return Ok(None);
        }
        let sequence = state.sequence;
        let found = self.fill(&mut state, buffer);
        state.sequence += 1;
        state.is_stopped = !matches!(&found, Ok(Some(block)) if !block.is_cut);
        found.map_err(|error| (sequence, error))
    }

    fn fill(&self, state: &mut State, buffer: &mut Vec<u8>) -> Result<Option<Block>> {
        loop {
            if state.open.is_none() {
                let Some((path, settings)) = self.files.get(state.next_file) else { return Ok(None) };
                state.open = Some(OpenFile::new(state.next_file, path, settings)?);
                state.next_file += 1;
            }
            let Some(open) = &mut state.open else { return Ok(None) };
            let (path, settings) = &self.files[open.number];
            let block = open.block(state.sequence, path, settings, buffer)?;
            if open.is_ended {
                open.watch.check()?;
                if open.layout.is_none() {
                    bail!(layout::empty(&path.display().to_string()));
                }
                if open.lacks_line_end {
                    let note =
                        "its last line has no line end; if the file was cut off, that row may be wrong";
                    state.notes.push(FileNote { path: path.clone(), note });
                }
                state.open = None;
            }
            if block.is_some() {
                return Ok(block);
            }
        }
    }
}

impl OpenFile {
    fn new(number: usize, path: &Path, settings: &FileSettings) -> Result<Self> {
        let (file, watch) = Watch::open(path)?;
        let reader = unpack::open(file, settings.encoding).map_err(|error| told(error, path, 1))?;
        let (carry, layout) = (Vec::new(), None);
        Ok(Self { number, reader, watch, layout, carry, line: 1, is_ended: false, lacks_line_end: false })
    }

    /// The next block, `None` where nothing is left but perhaps an end.
    fn block(
        &mut self,
        sequence: u64,
        path: &Path,
        settings: &FileSettings,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Block>> {
        buffer.clear();
        buffer.append(&mut self.carry);
        let mut is_cut = false;
        let mut aim = BLOCK_BYTES;
        loop {
            self.read_up_to(aim, buffer).map_err(|error| told(error, path, self.line))?;
            if self.is_ended {
                if buffer.last().is_some_and(|last| *last != b'\n') {
                    buffer.push(b'\n');
                    self.lacks_line_end = true;
                }
                break;
            }
            if let Some(end) = self.rows_end(buffer) {
                self.carry.extend_from_slice(&buffer[end..]);
                buffer.truncate(end);
                break;
            }
            if buffer.len() > ROW_BYTES_MAX {
                is_cut = true;
                break;
            }
            aim = buffer.len() * 2 + 1;
        }
        let (file, mut start, mut line) = (self.number, 0, self.line);
        self.line += memchr_iter(b'\n', buffer).count() as u64;
        let layout = if let Some(layout) = &self.layout {
            Arc::clone(layout)
        } else {
            let Some((layout, begin, at_line)) = begin(buffer, settings, is_cut, path)? else {
                return Ok(None);
            };
            (start, line) = (begin, at_line);
            Arc::clone(self.layout.insert(Arc::new(layout)))
        };
        if start == buffer.len() && !is_cut {
            return Ok(None);
        }
        Ok(Some(Block { sequence, file, start, line, layout, is_cut }))
    }

    fn read_up_to(&mut self, len: usize, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        let mut held = buffer.len();
        buffer.resize(len.max(held), 0);
        while held < buffer.len() {
            match self.reader.read(&mut buffer[held..]) {
                Ok(0) => {
                    self.is_ended = true;
                    break;
                }
                Ok(read) => held += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.truncate(held);
        Ok(())
    }

    /// Where the last whole row ends: after the last line end that an even number of quotes stands before.
    fn rows_end(&self, bytes: &[u8]) -> Option<usize> {
        if matches!(self.layout.as_deref(), Some(Layout::JsonLines))
            || is_json(bytes) && self.layout.is_none()
        {
            return memrchr(b'\n', bytes).map(|at| at + 1);
        }
        let mut quotes = memchr_iter(b'"', bytes).count();
        let mut end = bytes.len();
        while let Some(at) = memrchr2(b'"', b'\n', &bytes[..end]) {
            if bytes[at] == b'"' {
                quotes -= 1;
            } else if quotes.is_multiple_of(2) {
                return Some(at + 1);
            }
            end = at;
        }
        None
    }
}

/// The columns that the beginning of a file shows: its header, or the names in its first object.
///
/// # Errors
/// When it cannot be read or has none.
pub fn header_of(path: &Path, settings: &FileSettings) -> Result<Vec<String>> {
    let name = path.display().to_string();
    let mut buffer = Vec::new();
    let mut file = OpenFile::new(0, path, settings)?;
    let block = file.block(0, path, settings, &mut buffer)?;
    match file.layout.as_deref() {
        Some(Layout::Csv(layout)) => Ok(layout.header.clone()),
        Some(Layout::JsonLines) => {
            let start = block.map_or(0, |block| block.start);
            let text = String::from_utf8_lossy(&buffer[start..]);
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(first).map_err(|_| {
                    Unusable::new(format!("{name}:1: no JSON object"), "one object a line is needed")
                })?;
            Ok(object.into_iter().map(|(name, _)| name).collect())
        }
        None => bail!(layout::empty(&name)),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    content(bytes).first() == Some(&b'{')
}

/// Without byte order mark and blank lines at the start.
fn content(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii_start()
}

/// The layout that the first block of a file shows, and byte and line at which its rows begin; `None` where nothing
/// is in it.
fn begin(
    buffer: &[u8],
    settings: &FileSettings,
    is_cut: bool,
    path: &Path,
) -> Result<Option<(Layout, usize, u64)>> {
    let name = path.display().to_string();
    let content = content(buffer);
    if content.is_empty() {
        return Ok(None);
    }
    if matches!(buffer, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        bail!(Unusable::new(format!("{name} is UTF-16 text"), "say so: --encoding utf-16le (or utf-16be)"));
    }
    if let Some(refused) = layout::refused(content, &name) {
        bail!(refused);
    }
    let mark = if buffer.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    if content.first() == Some(&b'{') {
        return Ok(Some((Layout::JsonLines, mark, 1)));
    }
    let text = match std::str::from_utf8(&buffer[mark..]) {
        Ok(text) => text,
        // What is wrong later is told where it stands.
        Err(error) => std::str::from_utf8(&buffer[mark..][..error.valid_up_to()])?,
    };
    let has_header = text.len() == buffer.len() - mark || text.trim_ascii_start().contains('\n');
    if !has_header || text.contains('\0') && text.find('\0') < text.find('\n') {
        bail!(not_text(&name, 1));
    }
    let (layout, read, line): (CsvLayout, _, _) = layout::of_csv(text, settings, is_cut, &name)?;
    Ok(Some((Layout::Csv(layout), mark + read, line)))
}

/// A file that is not the text that it should be.
pub(super) fn not_text(name: &str, line: u64) -> Unusable {
    Unusable::new(
        format!("{name}:{line}: there are bytes that are not UTF-8 text"),
        "name the encoding if it is another one, such as --encoding latin1 or --encoding utf-16le",
    )
}

/// A file that could not be read on.
fn told(error: std::io::Error, path: &Path, line: u64) -> anyhow::Error {
    use std::io::ErrorKind;
    let shown = path.display();
    if let Some(cause) = error.get_ref()
        && cause.is::<WrongEncoding>()
    {
        let message = format!("{shown}: after line {line}: {error}");
        return Unusable::new(message, "name the encoding that it has").into();
    }
    match error.kind() {
        ErrorKind::UnexpectedEof => {
            anyhow::anyhow!("{shown}: the packed data ends too early, after line {line}: the file is cut off")
        }
        ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            anyhow::anyhow!("{shown}: the packed data is damaged after line {line}: {error}")
        }
        _ => anyhow::Error::new(error).context(format!("read {shown}, after line {line}")),
    }
}
