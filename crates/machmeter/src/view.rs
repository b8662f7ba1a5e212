//! Shows a record on stdout, and writes it to the requested files.

use std::path::Path;

use machmeter_data::Table;
use machmeter_data::record::Record;
use machmeter_report::terminal::{self, TerminalStyle};
use machmeter_report::{card, format, html};
use machmeter_store::atomic;

use crate::globals::Color;
use crate::{Failure, Globals, Result, output, state};

pub(crate) fn style(globals: &Globals) -> TerminalStyle {
    let color = match globals.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => output::stdout_is_terminal() && !state::no_color() && !state::is_dumb(),
    };
    TerminalStyle {
        width: machmeter_sys::terminal::width().or_else(state::columns).unwrap_or(100).clamp(20, 200),
        color,
        ascii: globals.ascii || state::is_ascii(),
    }
}

/// Shows the record in every requested format; returns the errors.
pub(crate) fn show(record: &Record, tables: &[Table], globals: &Globals, saved: &[String]) -> Vec<String> {
    let mut trouble = Vec::new();
    let mut put = |target: &Path, made: Result<String, String>| {
        trouble.extend(made.and_then(|text| output::put(target, &text)).err());
    };
    if let Some(target) = &globals.json {
        put(target, render("json", record));
    }
    if let Some(target) = &globals.csv {
        put(target, in_format("csv", record, tables));
    }
    if let Some(target) = &globals.md {
        put(target, in_format("markdown", record, tables));
    }
    if !globals.stdout_is_taken() {
        let style = style(globals);
        let mut text = if globals.verbose > 0 {
            terminal::in_full(record, &style) + &terminal::views(record, &style)
        } else {
            terminal::page(record, &style)
        };
        for name in saved {
            text.push_str(&format!(" saved  {name}\n"));
        }
        put(Path::new("-"), Ok(text));
    }
    trouble
}

/// The record in a registered format.
/// Errors: one line, for an unknown format or missing data.
pub(crate) fn in_format(name: &str, record: &Record, tables: &[Table]) -> Result<String, String> {
    let format = format::by_name(name).ok_or_else(|| format!("no format '{name}'"))?;
    let mut out = Vec::new();
    (format.write)(record, tables, &mut out).map_err(|e| e.to_string())?;
    String::from_utf8(out).map_err(|e| e.to_string())
}

/// Rejects files of a record that cannot be written, before anything is measured.
pub(crate) fn writable(globals: &Globals) -> Result<()> {
    globals.output.iter().try_for_each(|path| ending(path, "json").map(|_| ()))?;
    could_write(globals)
}

/// Rejects files of options that cannot be written.
pub(crate) fn could_write(globals: &Globals) -> Result<()> {
    let forms = [&globals.json, &globals.csv, &globals.md].into_iter().flatten();
    let mut files = globals.output.iter().chain(forms.filter(|path| path.as_os_str() != "-"));
    files.try_for_each(|path| atomic::could_replace(path)).map_err(Failure::usage)
}

/// The extension of a file of `-o`: `json`, `html` or `svg`; `bare` if it has none.
/// Errors: any other extension.
pub(crate) fn ending<'a>(path: &'a Path, bare: &'a str) -> Result<&'a str> {
    let ending = path.extension().map_or(Some(bare), |e| e.to_str());
    ending.filter(|e| ["json", "html", "svg"].contains(e)).ok_or_else(|| {
        let what = "only .json (record), .html (report) and .svg (card) can be written";
        Failure::usage(format!("-o {}: {what}", path.display())).help("machmeter export writes other formats")
    })
}

/// Writes a file by its extension; returns its name and size.
/// Errors: one line with the reason.
pub(crate) fn write(path: &Path, ending: &str, record: &Record) -> Result<String, String> {
    let text = render(ending, record)?;
    atomic::write(path, &text).map_err(|e| e.to_string())?;
    Ok(format!("{} ({} kB)", path.display(), text.len().div_ceil(1000)))
}

/// The content of a file with this extension.
/// Errors: the record can't be written as JSON.
pub(crate) fn render(ending: &str, record: &Record) -> Result<String, String> {
    match ending {
        "html" => Ok(html::render(record)),
        "svg" => Ok(card::render(record)),
        _ => machmeter_store::json::to_string(record).map_err(|e| e.to_string()),
    }
}
