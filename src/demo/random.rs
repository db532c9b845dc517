//! A small seeded generator (splitmix64), so that one printed number gives the same world again on
//! every machine. Not for secrets.

/// Seeded generator. Same seed, same sequence, for ever: worlds in bug reports depend on it.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID_LETTERS: usize = 22;

impl Rng {
    /// A generator from a seed; every seed is as good as another.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 where the bound is 0. The bias of the remainder is far below what a demonstration can show.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// A number in `low..high`; `low` where the range is empty.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high.saturating_sub(low)).unwrap_or(0);
        low.saturating_add(i64::try_from(self.below(width)).unwrap_or(0))
    }

    /// True in so many of a thousand cases.
    pub const fn per_mille(&mut self, cases: u64) -> bool {
        self.below(1000) < cases
    }

    /// An index into something of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of these.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        assert!(!options.is_empty(), "nothing to pick from");
        options[self.index(options.len())]
    }

    /// Puts a slice into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }

    /// An id as Stripe writes them: the prefix, `_3` or `_1`, and letters of both cases.
    pub fn id(&mut self, prefix: &str) -> String {
        let mut text = String::with_capacity(prefix.len() + ID_LETTERS + 2);
        text.push_str(prefix);
        text.push('_');
        text.push(if matches!(prefix, "ch" | "pi" | "re" | "txn" | "evt") { '3' } else { '1' });
        let mut bits = 0;
        for position in 0..ID_LETTERS {
            if position % 10 == 0 {
                bits = self.next_u64();
            }
            let letter = usize::try_from(bits % 62).unwrap_or(0);
            text.push(char::from(ALPHABET[letter]));
            bits /= 62;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of splitmix64 for seed 1234567 (Vigna, reference implementation).
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn ranges_hold() {
        let mut rng = Rng::new(7);
        for _ in 0..1000 {
            assert!((-3..4).contains(&rng.between(-3, 4)));
            assert!(rng.below(5) < 5);
        }
        assert_eq!(rng.between(9, 9), 9);
        assert_eq!(rng.id("ch").len(), "ch_3".len() + ID_LETTERS);
    }
}
