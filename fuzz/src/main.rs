//! The fuzzer: one program with every target; `RECON_FUZZ_TARGET` names the one that runs. See `fuzz/README.md`.

#![no_main]

mod checks;

use checks::Target;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var("RECON_FUZZ_TARGET").unwrap_or_default();
        let known = || Target::names().collect::<Vec<_>>().join(" ");
        Target::named(&name).unwrap_or_else(|| panic!("RECON_FUZZ_TARGET must be one of: {}", known()))
    })
}

fuzz_target!(|data: &[u8]| {
    target().check(data);
});
