//! Programs of tests export `_end`, as the program does: see `src/mpi/shmem.rs`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol=_end");
}
