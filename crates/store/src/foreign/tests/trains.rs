//! Tests of the readers of trains and round trips.

use super::*;

#[test]
fn a_file_of_netgauge_gives_its_trains_and_tells_what_no_link_has() {
    let out = read(&["netgauge/loggp.out"]);
    assert_eq!(codes_of(&out), [codes::IMPOSSIBLE_NUMBERS.id, codes::WRONG_UNIT.id]);
    let text = &out.warnings[0].text;
    assert!(text.starts_with("2 lines where g, G or lsqu is not a number; 4 impossible values"), "{text}");
    let rows = out.table("net_rows").expect("rows");
    // For each of 30 sizes two trains, one with work, one of receive calls; and the work.
    assert_eq!(rows.rows(), 4 * 30 + 1);
    assert_eq!(out.table("net_pairs").map(Table::rows), Some(0));
}

#[test]
fn a_file_of_netpipe_gives_round_trips_alone() {
    let out = read(&["netpipe/np.out"]);
    assert_eq!(codes_of(&out), [""; 0]);
    assert_eq!(out.table("net_rows").map(Table::rows), Some(82 + 1));
    let three_columns = in_memory(&[("three", "1 2 3\n4 5 6\n7 8 9\n10 11 12\n")]);
    assert!(read_input(&three_columns).is_err(), "the rates are not those of the times");
}

#[test]
fn published_tables_of_a_kernel_are_rows_of_the_flow_probe() {
    let out = read(&["gedae/altivec1.csv"]);
    let rows = out.table("flow_rows").expect("rows");
    assert_eq!(rows.rows(), 1);
    let published = rows.notes.iter().find(|n| n.0 == "fact.graphs.published").expect("the tables");
    assert_eq!(published.1.matches("\"called\"").count(), 55);
    let wrong = in_memory(&[("t.csv", "Timer,Called,Total,Mean,Stdv,Min,Max,Perc,PerFire\napply,1,2\n")]);
    assert!(read_input(&wrong).unwrap_err().to_string().contains("3 columns, 9 expected"));
}
