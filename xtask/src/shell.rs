//! Manual pages and completions, from the command line itself.

use std::fs;
use std::path::Path;

use anyhow::Result;
use clap_complete::Shell;
use machmeter::{Registries, command_line};

/// Writes `man` or `completions` into `target`: a page for the program and for each verb, a file for each shell.
pub(crate) fn write(root: &Path, what: &str) -> Result<()> {
    let folder = root.join("target").join(what);
    fs::create_dir_all(&folder)?;
    let mut command = command_line(&Registries::default());
    if what == "man" {
        clap_mangen::generate_to(command, &folder)?;
    } else {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            clap_complete::generate_to(shell, &mut command, "machmeter", &folder)?;
        }
    }
    println!("{what}: {} files in {}", fs::read_dir(&folder)?.count(), folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_completions_have_the_options_that_act() {
        let root = crate::root();
        write(&root, "man").and_then(|()| write(&root, "completions")).unwrap();
        let has = |f: &str, text| fs::read_to_string(root.join("target").join(f)).unwrap().contains(text);
        assert!(has("man/machmeter-noise.1", r"\-\-cpus") && !has("man/machmeter-explain.1", r"\-\-cpus"));
        let shells = ["machmeter.bash", "machmeter.fish", "_machmeter"];
        assert!(shells.iter().all(|s| has(&format!("completions/{s}"), "predict-from")));
    }
}
