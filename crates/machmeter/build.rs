//! The program exports `_end`: see `sys/src/mpi/shmem.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=_end");
}
