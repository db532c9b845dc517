//! Packed and foreign text: gzip and zstd by their first bytes, and other encodings than UTF-8 on request.

use super::side::Encoding;
use encoding_rs::DecoderResult;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read, Result};

/// Anything that can be read on any thread.
pub(super) type Reader = Box<dyn Read + Send>;

/// Bytes that are read from a packed or foreign file at once.
const READ_BYTES: usize = 128 << 10;

/// The content of a file: unpacked, and as UTF-8.
pub(super) fn open(mut file: impl Read + Send + 'static, encoding: Encoding) -> Result<Reader> {
    let start = peek(&mut file, 4)?;
    let is_gzip = start.starts_with(&[0x1f, 0x8b]);
    let is_zstd = matches!(*start, [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
    let whole = Cursor::new(start).chain(file);
    let unpacked: Reader = if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, whole)))
    } else if is_zstd {
        let source = BufReader::with_capacity(READ_BYTES, whole);
        Box::new(Zstd { source, decoder: FrameDecoder::new(), is_open: false })
    } else {
        Box::new(whole)
    };
    if encoding.is_utf_8() {
        return Ok(unpacked);
    }
    Ok(Box::new(Decoded {
        source: BufReader::with_capacity(READ_BYTES, unpacked),
        decoder: encoding.0.new_decoder_with_bom_removal(),
        label: encoding.0.name(),
        ready: Vec::new(),
        at: 0,
        is_ended: false,
    }))
}

/// The first bytes, fewer where there are fewer.
pub(super) fn peek(source: &mut impl Read, len: usize) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    source.take(len as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Zstandard frames, one after the other, each with its checksum compared where it has one.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    is_open: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Opens the next frame; false at the end of the file.
    fn open_frame(&mut self) -> Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    std::io::copy(&mut (&mut self.source).take(u64::from(length)), &mut std::io::sink())?;
                }
                Err(error) => return Err(damaged(&error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            if !self.is_open && !self.open_frame()? {
                return Ok(0);
            }
            self.is_open = true;
            while self.decoder.can_collect() < buffer.len() && !self.decoder.is_finished() {
                let wanted = BlockDecodingStrategy::UptoBytes(buffer.len() - self.decoder.can_collect());
                self.decoder.decode_blocks(&mut self.source, wanted).map_err(|error| damaged(&error))?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let written = self.decoder.get_checksum_from_data();
            if written.is_some() && written != self.decoder.get_calculated_checksum() {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    "the checksum of the zstd data is another one",
                ));
            }
            self.is_open = false;
        }
    }
}

fn damaged(error: &FrameDecoderError) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the zstd data is damaged or cut off ({error})"))
}

/// The text is not in the encoding that was named.
#[derive(Debug, thiserror::Error)]
#[error("there are bytes that are no text in {0}")]
pub(super) struct WrongEncoding(&'static str);

/// Text of another encoding as UTF-8; bytes that are no text in it are an error.
struct Decoded<R> {
    source: R,
    decoder: encoding_rs::Decoder,
    label: &'static str,
    ready: Vec<u8>,
    at: usize,
    is_ended: bool,
}

impl<R: BufRead> Decoded<R> {
    fn decode(&mut self) -> Result<()> {
        let input = self.source.fill_buf()?;
        let is_last = input.is_empty();
        let room =
            self.decoder.max_utf8_buffer_length_without_replacement(input.len()).unwrap_or(READ_BYTES * 4);
        self.ready.resize(room.max(16), 0);
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(input, &mut self.ready, is_last);
        self.ready.truncate(written);
        self.at = 0;
        self.source.consume(read);
        self.is_ended = is_last && result == DecoderResult::InputEmpty;
        if matches!(result, DecoderResult::Malformed(..)) {
            return Err(Error::other(WrongEncoding(self.label)));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.at == self.ready.len() && !self.is_ended {
            self.decode()?;
        }
        let len = buffer.len().min(self.ready.len() - self.at);
        buffer[..len].copy_from_slice(&self.ready[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: Vec<u8>, label: &str) -> Result<String> {
        let mut text = String::new();
        open(Cursor::new(bytes), Encoding::parse(label).unwrap())?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn other_encodings_are_read_on_request_and_wrong_bytes_are_refused() {
        assert_eq!(all(b"Jo\xe3o".to_vec(), "latin1").unwrap(), "João");
        let wide: Vec<u8> =
            "\u{feff}id;João\n".repeat(50_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
        let text = all(wide, "utf-16le").unwrap();
        assert_eq!(text.chars().filter(|letter| *letter == 'ã').count(), 50_000);
        assert!(text.starts_with("id;João"));
        let error = all(vec![b'a', 0x81, 0xff], "shift_jis").unwrap_err();
        assert!(error.to_string().contains("Shift_JIS"), "{error}");
    }

    #[test]
    fn packed_files_are_known_by_their_first_bytes() {
        use std::io::Write;
        let text = "id,amount\n".repeat(100_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let twice = [&*gzip, &*gzip].concat();
        assert_eq!(all(twice, "utf-8").unwrap(), text.repeat(2));
        assert_eq!(
            all(gzip[..gzip.len() - 9].to_vec(), "utf-8").unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
        let zstd =
            ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let several = [&skipped[..], &zstd, &skipped, &zstd].concat();
        assert_eq!(all(several, "utf-8").unwrap(), text.repeat(2));
        let mut damaged = zstd.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert!(all(damaged, "utf-8").is_err());
        for len in 1..zstd.len().min(60) {
            let found = all(zstd[..zstd.len() - len].to_vec(), "utf-8");
            assert!(found.is_err(), "{len} bytes cut off");
        }
    }
}
