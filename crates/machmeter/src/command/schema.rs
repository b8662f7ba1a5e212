//! `machmeter schema [WHAT]`: prints the JSON Schema of the record, of a comparison, or of a probe's parameters.

use clap::{Arg, ArgMatches, Command};
use machmeter_data::Record;

use crate::{Exit, Failure, Globals, Registries, Result, output};

pub(super) fn define(name: &'static str) -> Command {
    Command::new(name).about("Print the JSON Schema of a record, a comparison or parameters").arg(
        Arg::new("what")
            .value_name("WHAT")
            .default_value("record")
            .help("record, comparison, or a probe for its parameters"),
    )
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let what = matches.get_one::<String>("what").map_or("record", String::as_str);
    let schema = match what {
        "record" => schemars::schema_for!(Record).to_value(),
        "comparison" => schemars::schema_for!(machmeter_compare::Comparison).to_value(),
        name => {
            let unknown =
                || Failure::usage(format!("no schema '{name}'")).help("record, comparison, or a probe");
            (registries.probes.iter().find(|p| p.info.name == name).ok_or_else(unknown)?.schema)()
        }
    };
    let text = serde_json::to_string_pretty(&schema).map_err(Failure::cannot)?;
    output::print(&text).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}
