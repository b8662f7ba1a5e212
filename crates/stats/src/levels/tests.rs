use super::*;

fn ladders(name: &str) -> Vec<(String, Vec<String>, Vec<CurvePoint>)> {
    let path = format!("{}/../../fixtures/ladders/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a fixture");
    text.lines().skip(1).map(|line| {
        let mut cells = Vec::new();
        let mut quoted = false;
        let mut cell = String::new();
        for c in line.chars() {
            match c { '"' => quoted = !quoted, ',' if !quoted => cells.push(std::mem::take(&mut cell)), c => cell.push(c) }
        }
        let points = cell.split_whitespace().map(|p| { let (k, ns) = p.split_once(':').unwrap(); CurvePoint { bytes: 1024.0 * k.parse::<f64>().unwrap(), ns: ns.parse().unwrap() } }).collect();
        (cells[0].clone(), cells, points)
    }).collect()
}

fn hash(s: &str) -> u64 { s.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)) }

#[test]
fn sweep() {
    let half: u64 = std::env::var("HALF").map_or(0, |h| h.parse().unwrap());
    let (mut right, mut all) = (0, 0);
    for (source, cells, points) in ladders("others.csv") {
        if hash(&source) % 2 != half || !cells[6].contains('K') && !cells[6].contains('M') { continue; }
        let mut truth = 1 + cells[6..9].iter().filter(|c| !c.is_empty()).count();
        if source == "4zkJ" { truth += 1; }
        let found = levels(&points).unwrap();
        all += 1;
        if found.len() == truth { right += 1; } else {
        let t: Vec<String> = found.iter().map(|l| format!("{:.2} [{:.0}-{:.0}]", l.price_ns, l.end.map_or(0., |e| e.from_bytes/1024.), l.end.map_or(0., |e| e.to_bytes/1024.))).collect();
            println!("BAD {source} {} {} | {}", found.len(), truth, t.join(" ")); }
    }
    println!("RIGHT {right} of {all}");
    for (source, _, points) in ladders("zen4-guest.csv") {
        let found = levels(&points).unwrap();
        let t: Vec<String> = found.iter().map(|l| format!("{:.2} [{:.0}-{:.0}]", l.price_ns, l.end.map_or(0., |e| e.from_bytes/1024.), l.end.map_or(0., |e| e.to_bytes/1024.))).collect();
        println!("{source} {} {}", found.len(), t.join(" "));
    }
}
