//! Metrics: the script lays them out from the embedded record, one line per id, unfolded to a grid and to rows. Without it
//! the page says how many there are and how to get them.

use std::collections::BTreeSet;

use machmeter_data::Record;

use super::page::{Page, put};

pub(super) fn section(page: &mut Page, record: &Record) {
    if record.metrics.is_empty() {
        return;
    }
    let kinds = record.metrics.iter().map(|m| m.id.as_str()).collect::<BTreeSet<_>>().len();
    put!(
        page,
        "<section id=\"metrics\" aria-labelledby=\"h-metrics\"><h2 id=\"h-metrics\">Metrics <small>{} figures of {kinds} kinds</small></h2>\
         <p class=\"need quiet\">Laid out by this page's script. As a table without it: \
         <code>machmeter report THIS.html --csv</code>.</p>\
         <p class=\"js tools\" hidden><label>Search <input id=\"metric-search\" type=\"search\" placeholder=\"id, parameter, flag\" \
         autocomplete=\"off\"></label> <button type=\"button\" id=\"metric-all\">Unfold all</button> \
         <output id=\"metric-count\"></output></p><div id=\"metric-list\"></div></section>",
        record.metrics.len()
    );
}
