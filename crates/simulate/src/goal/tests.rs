//! What is read, what is refused and where, and that nothing is lost between text and binary.

use super::*;

fn binary(goal: &Goal) -> Vec<u8> {
    let mut out = Vec::new();
    write_binary(goal, &mut out).unwrap();
    out
}

const EXAMPLE: &str = "// two ranks
num_ranks 2

rank 0{
  l1: calc 100 cpu 2
  l2: send 10b to 1 tag 5 cpu 1 nic 3
  recv 0b from -1 tag -1 // no label
  sendx:calc 7
  l2 requires l1
  sendx irequires l1 /* over
  lines */
}
rank 1 {
  l1: recv 10b from 0 tag 5
  l2: send 0b to 0
}
";

#[test]
fn a_text_is_read() {
    let goal = read_text(EXAMPLE.as_bytes()).unwrap();
    assert_eq!((goal.ranks(), goal.operations(), goal.messages()), (2, 6, 2));
    assert_eq!((goal.max_cpu, goal.max_nic), (2, 3));
    assert_eq!(goal.takes_any, [true, false]);
    let send = goal.nodes(0)[1];
    assert_eq!((send.op, send.requires), (Op { cpu: 1, nic: 3, ..Op::send(1, 10, 5) }, 1));
    assert_eq!(goal.edges(0), [1, 3], "the end of l1 frees l2, its start sendx");
}

#[test]
fn malformed_texts_are_refused_with_their_place() {
    let rank = |body: &str| format!("num_ranks 2\nrank 0 {{\n{body}\n}}\nrank 1 {{\n}}\n");
    for (body, expected) in [
        ("jump 5", "line 3, column 1: expected `send`, `recv`, `calc` or a requirement, found `jump`"),
        ("l1: put 5b to 1", "line 3, column 5: `put` is an operation of Portals, which is not supported"),
        ("put 5b to 1", "line 3, column 1: `put` is an operation of Portals, which is not supported"),
        ("calc", "line 3, column 5: expected a time in ns, found the end of the line"),
        ("calc -5", "line 3, column 6: expected a time in ns, found `-5`"),
        ("calc 1.5", "line 3, column 7: expected `cpu` or the end of the line, found `.5`"),
        ("calc 99999999999999999999", "line 3, column 6: a time in ns is at most 18446744073709551615"),
        ("send 5 to 1", "line 3, column 8: expected `b` for bytes, found `to`"),
        ("send 5b from 1", "line 3, column 9: expected `to`, found `from`"),
        ("send 5b to 2", "line 3, column 12: rank 2 is none of the 2 ranks"),
        ("send 5b to -1", "line 3, column 12: expected a rank, found `-1`"),
        (
            "recv 5b from 1 nic 1 cpu 1",
            "line 3, column 22: expected `tag`, `cpu`, `nic` in this order or the end of the line, found `cpu`",
        ),
        ("send 5b to 1 cpu 255", "line 3, column 18: a CPU is at most 254"),
        ("l1: calc 5\nl1: calc 6", "line 4, column 1: label `l1` is defined twice"),
        ("l1: calc 5\nl1 requires l2", "line 4, column 13: label `l2` is not defined before this line"),
        ("l1: calc 5\nl1 requires l1", "line 4, column 1: an operation cannot require itself"),
        ("l1 needs l2", "line 3, column 1: expected `send`, `recv`, `calc` or a requirement, found `l1`"),
        (
            "a: calc 1\nb: calc 1\nc: calc 1\nd: calc 1\na requires b\nb irequires c\nc requires b\nd requires a",
            "line 5, column 1: rank 0: this operation requires itself through other operations",
        ),
        ("}", "line 4, column 1: expected `rank 1` of 2, found `}`"),
        ("{", "line 3, column 1: expected an operation, a label or `}`, found `{`"),
    ] {
        let error = read_text(rank(body).as_bytes()).unwrap_err();
        assert_eq!(error, expected, "{body}");
    }
    for (whole, expected) in [
        ("", "line 1, column 1: expected `num_ranks`, found the end of the file"),
        ("num_ranks 0", "line 1, column 11: a schedule has at least one rank"),
        ("num_ranks 4294967295", "line 1, column 11: a number of ranks is at most 4294967294"),
        ("num_ranks 2\nrank 1 {", "line 2, column 6: ranks stand in order: expected rank 0 of 2"),
        ("num_ranks 1\nrank 0\n{", "line 2, column 7: expected `{`, found the end of the line"),
        ("num_ranks 1\nrank 0 {\n", "line 3, column 1: expected `}` of rank 0, found the end of the file"),
        ("num_ranks 1\nrank 0 {\n}\nrank 1 {", "line 4, column 1: nothing may follow rank 0, the last one"),
        (
            "num_ranks 4294967294\nrank 0 {\n}\n",
            "line 4, column 1: expected `rank 1` of 4294967294, found the end of the file",
        ),
    ] {
        assert_eq!(read_text(whole.as_bytes()).unwrap_err(), expected, "{whole}");
    }
}

#[test]
fn hostile_binaries_are_refused_with_their_place() {
    let good = binary(&read(EXAMPLE.as_bytes()).unwrap());
    for length in 0..good.len() {
        assert!(read_binary(&good[..length]).is_err(), "cut to {length}");
    }
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read_binary(&file).map(|_| ()).unwrap_err()
    };
    let huge = (1u64 << 63).to_le_bytes();
    assert_eq!(
        changed(8, &u32::MAX.to_le_bytes()),
        "byte 8: 4294967295 ranks; a file of 320 bytes has room for 19"
    );
    assert_eq!(changed(8, &[0; 4]), "byte 8: 0 ranks; a file of 320 bytes has room for 19");
    assert!(changed(0, &2342u64.to_le_bytes()).contains("used up by a run with --save-mem"));
    assert!(changed(0, b"machmete").starts_with("byte 0: no binary schedule"));
    assert_eq!(changed(22, &huge), "byte 22: rank 0 ends at 9223372036854775808, outside 46 to 312");
    assert_eq!(changed(14, &huge), "byte 14: rank 0 starts at 9223372036854775808 instead of 38");
    assert!(changed(46, &[255; 4]).contains("rank 0: 4294967295 operations do not fit into"));
    assert!(changed(50, &[255; 4]).contains("do not fit into"));
    let first = 46 + 8 + 2 * 4;
    assert!(changed(first + 4, &[9]).contains("operation of kind 9"));
    assert!(changed(first, &[7]).contains("operation 0 has 0 requirements, not 7"));
    assert!(changed(first + 21, &[200]).contains("beyond the largest one"));
    // Every byte, changed to a few values: an error or a schedule, never anything else.
    for at in 0..good.len() {
        for value in [0, 1, 3, 127, 255] {
            let mut file = good.clone();
            file[at] = value;
            if let Ok(goal) = read_binary(&file) {
                assert_eq!(binary(&goal), file, "byte {at} to {value}");
            }
        }
    }
}

#[test]
fn files_of_portals_are_recognized() {
    // One rank with one operation of 104 bytes, whose fields are others.
    let [one, zero] = [1u32, 0].map(u32::to_le_bytes);
    let [cookie, start, end] = [4223u64, 22, 22 + 8 + 4 + 104 + 3].map(u64::to_le_bytes);
    let file = [&cookie[..], &one, &[0, 0], &start, &end, &one, &one, &zero, &[7; 107]].concat();
    assert!(read_binary(&file).unwrap_err().contains("operations of Portals are not supported"));
}

#[test]
fn a_trace_for_smpi_waits_before_what_requires_messages() {
    let goal = read_text(
        b"num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3\nb: recv 16b from 1\nc: calc 50\nc requires b\n}\nrank 1 {\nrecv 8b from 0 tag 3\nsend 16b to 0\n}",
    )
    .unwrap();
    let mut out = Vec::new();
    write_smpi(&goal, &mut out).unwrap();
    let expected = "0 init\n0 isend 1 3 8 6\n0 irecv 1 0 16 6\n0 wait 1 0 0\n0 compute 50\n0 wait 0 1 3\n0 finalize\n\
                    1 init\n1 irecv 0 3 8 6\n1 isend 0 0 16 6\n1 wait 0 1 3\n1 wait 1 0 0\n1 finalize\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let any = read_text(EXAMPLE.as_bytes()).unwrap();
    assert!(write_smpi(&any, &mut Vec::new()).unwrap_err().to_string().contains("rank 0 receives from any"));
}
