//! The program. All code is in the library, so a program with more probes needs only these lines.

fn main() -> std::process::ExitCode {
    machmeter::main_with(&machmeter::Registries::default())
}
