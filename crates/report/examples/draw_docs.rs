//! Draws the pictures of the book and the README: `cargo run -p machmeter-report --example draw_docs -- docs`.

#[path = "../tests/drawn/mod.rs"]
mod drawn;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: draw_docs FOLDER")?);
    for (name, text) in drawn::files() {
        std::fs::write(folder.join(name), text)?;
    }
    let html = machmeter_report::html::render(&drawn::record());
    std::fs::write(folder.join("example.sha256"), drawn::first_screen(&html))?;
    std::fs::write(folder.join("example.html"), html)?;
    Ok(())
}
