use super::*;

#[test]
fn the_next_run_lies_between_the_39_others() {
    let times = |n: u64| Times::of((0..n).map(|i| (i, 1000 * ((i * 17) % n)))).unwrap();
    let of = |n| times(n).interval().map(|i| (i.low, i.high));
    assert_eq!((of(1), of(38)), (None, None));
    assert_eq!(of(39), Some((0.0, 38.0)));
    assert_eq!(of(79), Some((1.0, 77.0)));
    assert_eq!(times(39).median().1, 19_000);
    assert_eq!(times(4).median().1, 1000);
    assert!(Times::of([]).is_none());
}

#[test]
fn variations_have_a_parameter_and_a_factor() {
    let parsed = |text: &str| text.parse::<Variation>();
    assert_eq!(parsed("L=0.5x"), Ok(Variation { part: Part::Latency, factor: 0.5 }));
    assert_eq!(parsed("G=2x").map(|v| v.name()), Ok("G 2x".to_owned()));
    for wrong in ["", "L", "L=", "L=2", "L=-1x", "x=2x", "L=nanx", "L=1e9x"] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
