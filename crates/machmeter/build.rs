//! Compiles the recorder of `machmeter trace`, which the program embeds, and exports `_end` from the program.
//!
//! The recorder is a shared library, even if the program itself is linked statically. Cargo cannot make the library of one package a part of another
//! (artifact dependencies are unstable). Crate `machmeter-pmpi` therefore uses the standard library only, and one call of the compiler builds it. The
//! call uses the target and the linker of this build, but not the flags that decide how the program is linked. The result is compressed. A mark at the
//! end of the library shows `trace --recorder` which files it may replace.
#![allow(clippy::disallowed_methods, reason = "Cargo tells build scripts what to do by variables")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use miniz_oxide::deflate::compress_to_vec_zlib;

/// Last bytes of a recorder file. The loader ignores bytes behind the sections.
const MARK: &str = "\nmachmeter recorder of MPI calls\n";
/// Effort of the compressor, 0 to 10. At 9 it saves 1 kB more and takes twice the time.
const EFFORT: u8 = 6;
/// Flags of the program's build that select the linker.
const LINKER_FLAGS: [&str; 5] = [
    "-Clinker=",
    "-Clinker-flavor=",
    "-Clink-arg=-fuse-ld=",
    "-Clink-arg=--target=",
    "-Clink-arg=--sysroot=",
];

fn main() {
    // See `sys/src/mpi/shmem.rs`.
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=_end");
    let sources = ["build.rs", "../pmpi/src", "../data/src/trace/format"];
    for path in sources {
        println!("cargo::rerun-if-changed={path}");
    }
    let target = variable("TARGET");
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    for name in [linker.as_str(), "RUSTFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rustc-env=RECORDER_MARK={}", MARK.trim());
    let built = built(&target).unwrap_or_else(|why| {
        // Programs for musl are static by default, and often lack a linker for shared libraries.
        assert!(variable("CARGO_CFG_TARGET_ENV") != "gnu", "the recorder of MPI calls (crates/pmpi): {why}");
        println!(
            "cargo::warning=`machmeter trace` will not record: the recorder cannot be built: {}",
            why.lines().next().unwrap_or_default()
        );
        Vec::new()
    });
    let place = out_dir().join("recorder.zlib");
    fs::write(&place, compress_to_vec_zlib(&built, EFFORT)).expect("OUT_DIR takes files");
}

/// The library with its mark.
/// Errors: the complete output of the compiler.
fn built(target: &str) -> Result<Vec<u8>, String> {
    let library = out_dir().join("libmachmeter_pmpi.so");
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args([
        "--crate-name=machmeter_pmpi",
        "--crate-type=cdylib",
        "--edition=2024",
        "--cap-lints=allow",
    ]);
    // A panic aborts the program in either case, because it must not unwind into C.
    compiler.args(["-Copt-level=2", "-Ccodegen-units=1", "-Cpanic=abort", "-Cstrip=symbols"]);
    compiler.arg("--target").arg(target).arg("-o").arg(&library);
    if variable("CARGO_CFG_TARGET_ENV") == "musl" {
        compiler.arg("-Ctarget-feature=-crt-static");
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    compiler.args(linker_flags(&env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default()));
    // Makes the paths in messages equal on all machines.
    compiler.current_dir(Path::new(&variable("CARGO_MANIFEST_DIR")).join("../pmpi")).arg("src/lib.rs");
    let out = compiler.output().map_err(|e| format!("{}: {e}", variable("RUSTC")))?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    let mut bytes = fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    bytes.extend(MARK.bytes());
    Ok(bytes)
}

/// The flags that select a linker, each as one word. A flag may be two words (`-C linker=x`).
fn linker_flags(encoded: &str) -> Vec<String> {
    let mut words = encoded.split('\x1f');
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        let is_half = ["-C", "--codegen"].contains(&word);
        let flag = if is_half { format!("-C{}", words.next().unwrap_or_default()) } else { word.to_owned() };
        if LINKER_FLAGS.iter().any(|known| flag.starts_with(known)) {
            flags.push(flag);
        }
    }
    flags
}

/// The value of a variable that Cargo sets.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn out_dir() -> PathBuf {
    PathBuf::from(variable("OUT_DIR"))
}
