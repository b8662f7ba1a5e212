#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Assertions of the Parquet crate are caught where it is called; libFuzzer's hook would abort before that.
    std::panic::set_hook(Box::new(|_| {}));
    machmeter::untrusted::parquet(bytes);
});
