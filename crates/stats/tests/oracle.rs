//! Every function against recorded figures of numpy, scipy and statsmodels (fixtures/oracle/make.py).

use std::path::Path;

use machmeter_stats::regression::{Weighting, chi_square_q, line, weighted_least_squares};
use machmeter_stats::{distribution, quantile, rank, spectrum, spread};
use serde_json::Value;

fn load(name: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/oracle").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).expect("oracle file is committed");
    serde_json::from_str(&text).expect("oracle file is JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

#[track_caller]
fn close(got: Option<f64>, want: &Value, tolerance: f64, what: &str) {
    let (got, want) = (got.unwrap_or_else(|| panic!("{what}: nothing computed")), number(want));
    assert!((got - want).abs() <= tolerance * want.abs() + 1e-300, "{what}: {got} instead of {want}");
}

#[track_caller]
fn all_close(got: &[f64], want: &Value, tolerance: f64, what: &str) {
    let want = list(want);
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        close(Some(*got), want, tolerance, &format!("{what}[{i}]"));
    }
}

#[test]
fn quantiles_and_spread() {
    for case in list(&load("location")["cases"]) {
        let name = case["name"].as_str().expect("name");
        let x = numbers(&case["x"]);
        let ascending = quantile::sorted(&x).expect("finite");
        let quantiles: Vec<f64> =
            numbers(&case["p"]).iter().filter_map(|p| quantile::quantile(&ascending, *p)).collect();
        all_close(&quantiles, &case["quantiles"], 1e-12, name);
        for row in list(&case["ranks"]) {
            let got = quantile::rank_interval(x.len(), number(&row["p"]), number(&row["level"]));
            let want = (number(&row["low"]) as usize, number(&row["high"]) as usize);
            assert_eq!(got, row["exists"].as_bool().expect("flag").then_some(want), "{name} {row}");
        }
        close(spread::mean(&x), &case["mean"], 1e-13, name);
        close(spread::variance(&x), &case["variance"], 1e-9, name);
        close(spread::mad(&x), &case["mad"], 1e-9, name);
    }
}

#[test]
fn distributions() {
    let oracle = load("distribution");
    for row in list(&oracle["normal"]) {
        let z = number(&row["z"]);
        close(distribution::normal_sf(-z), &row["cdf"], 1e-10, "normal cdf");
        close(distribution::normal_sf(z), &row["sf"], 1e-10, "normal sf");
    }
    for row in list(&oracle["normal_quantile"]) {
        let got = distribution::normal_quantile(number(&row["p"])).expect("in range");
        assert!((got - number(&row["z"])).abs() < 1e-11 * (1.0 + got.abs()), "normal quantile {row}: {got}");
    }
    for row in list(&oracle["t"]) {
        let (p, dof) = (number(&row["p"]), number(&row["dof"]));
        let got = distribution::t_quantile(p, dof).expect("in range");
        assert!((got - number(&row["t"])).abs() < 1e-10 * (1.0 + got.abs()), "t quantile {row}: {got}");
        close(distribution::t_cdf(1.5, dof), &row["cdf_at_1_5"], 1e-12, "t cdf");
    }
    for row in list(&oracle["binomial"]) {
        let got =
            distribution::binomial_cdf(number(&row["k"]) as u64, number(&row["n"]) as u64, number(&row["p"]));
        close(got, &row["cdf"], 1e-8, &format!("binomial {row}"));
    }
    for row in list(&oracle["beta"]) {
        let got = distribution::beta_regularized(number(&row["a"]), number(&row["b"]), number(&row["x"]));
        close(got, &row["value"], 1e-10, &format!("beta {row}"));
    }
}

#[test]
fn lines() {
    let oracle = load("regression");
    let (x, y, sigma) = (numbers(&oracle["x"]), numbers(&oracle["y"]), numbers(&oracle["sigma"]));
    let equal = vec![1.0; x.len()];
    let weights: Vec<f64> = sigma.iter().map(|s| 1.0 / (s * s)).collect();
    for (key, weights) in [("ols", &equal), ("wls", &weights)] {
        let fit = line(&x, &y, Weighting::Relative(weights)).expect("a line");
        all_close(&fit.coefficients, &oracle[key]["coefficients"], 1e-9, key);
        all_close(&fit.standard_errors, &oracle[key]["standard_errors"], 1e-9, key);
    }
    let fit = line(&x, &y, Weighting::Sigma(&sigma)).expect("a line");
    all_close(&fit.standard_errors, &oracle["known"]["standard_errors"], 1e-9, "known");
    close(Some(fit.chi2), &oracle["known"]["chi2"], 1e-9, "known");
}

#[test]
fn sums_of_columns() {
    let oracle = &load("regression")["sizes"];
    let columns: Vec<Vec<f64>> = list(&oracle["columns"]).iter().map(numbers).collect();
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let (y, sigma) = (numbers(&oracle["y"]), numbers(&oracle["sigma"]));
    let fit = weighted_least_squares(&columns, &y, &sigma).expect("a fit");
    // The condition number is near 1e9: 1e-6 is what f64 leaves, of either implementation.
    all_close(&fit.coefficients, &oracle["coefficients"], 1e-6, "sizes");
    for (row, want) in fit.covariance.iter().zip(list(&oracle["covariance"])) {
        all_close(row, want, 1e-6, "covariance");
    }
    // The oracle's residuals are differences of values up to 1e9.
    close(Some(fit.chi2), &oracle["chi2"], 1e-8, "chi2");
    close(chi_square_q(fit.chi2, fit.dof), &oracle["q"], 1e-8, "Q");
    assert_eq!(chi_square_q(0.0, 0), None, "no freedom, no Q");
    let twice = [columns[1], columns[1]];
    assert!(weighted_least_squares(&twice, &y, &sigma).is_err(), "dependent columns");
    assert!(weighted_least_squares(&[&[0.0; 30]], &y, &sigma).is_err(), "a column of zeros");
    assert!(weighted_least_squares(&columns, &y[..3], &sigma[..3]).is_err(), "fewer points than columns");
}

#[test]
fn rank_tests() {
    let oracle = load("rank");
    for case in list(&oracle["two"]) {
        let name = case["name"].as_str().expect("name");
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        close(rank::mann_whitney(&x, &y), &case["mw_p"], 1e-9, name);
        let shift = rank::hodges_lehmann(&x, &y, 0.95).expect("valid");
        close(Some(shift.estimate), &case["hodges_lehmann"], 1e-12, name);
        assert!(shift.interval.is_some_and(|i| i.contains(shift.estimate)), "{name}: {shift:?}");
    }
    let holm = rank::holm(&numbers(&oracle["holm"]["p"]));
    all_close(&holm, &oracle["holm"]["adjusted"], 1e-14, "holm");
}

#[test]
fn spectra() {
    for case in list(&load("series")["spectra"]) {
        let name = case["name"].as_str().expect("name");
        let len = number(&case["segment_len"]) as usize;
        let overlap = number(&case["overlap"]) as usize;
        let got =
            spectrum::welch(&numbers(&case["x"]), number(&case["rate_hz"]), len, overlap).expect("valid");
        all_close(&got.freq_hz, &case["freq_hz"], 1e-12, name);
        let want = numbers(&case["power"]);
        let highest = want.iter().copied().fold(0.0, f64::max);
        for (i, (got, want)) in got.power.iter().zip(&want).enumerate() {
            // Bin 0 is rounding noise after the mean is taken out.
            let off = (got - want).abs();
            assert!(off <= 1e-9 * want + 1e-15 * highest, "{name}[{i}]: {got} instead of {want}");
        }
    }
}

#[test]
fn correlations() {
    for case in list(&load("series")["correlations"]) {
        let name = case["name"].as_str().expect("name");
        let x = numbers(&case["x"]);
        let got = spectrum::autocorrelation(&x, 20).expect("valid");
        for (got, want) in got.iter().zip(numbers(&case["acf"])) {
            assert!((got - want).abs() < 1e-11, "{name}: {got} instead of {want}");
        }
    }
}

/// Garwood's table of exact limits of a Poisson mean, at 95 %, from sums of the Poisson distribution with 60 digits.
#[test]
fn limits_of_a_poisson_count() {
    let table = [
        (0, 0.0, 3.688_879),
        (1, 0.025_318, 5.571_643),
        (2, 0.242_209, 7.224_688),
        (5, 1.623_486, 11.668_332),
        (10, 4.795_389, 18.390_356),
        (100, 81.363_991, 121.626_794),
    ];
    for (count, low, high) in table {
        let got = distribution::poisson_interval(count, 0.95).expect("a level");
        assert!((got[0] - low).abs() < 2e-5 && (got[1] - high).abs() < 2e-5, "{count}: {got:?}");
    }
    let wide = distribution::poisson_interval(1_000_000, 0.95).expect("a level");
    assert!((wide[0] - 998_041.0).abs() < 2.0 && (wide[1] - 1_001_961.0).abs() < 2.0, "{wide:?}");
    assert_eq!([0.0, 1.0, f64::NAN].map(|level| distribution::poisson_interval(1, level)), [None; 3]);
}
