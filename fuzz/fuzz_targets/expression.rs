#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machmeter::untrusted::expression(bytes));
