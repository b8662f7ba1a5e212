//! What the memory probe says about itself: metrics, warnings, method, sources.

use machmeter_engine::Info;

use super::{bandwidth, ladder, loaded, table};
use machmeter_engine::disturbance::core_clock::SLOW_CLOCK;
use machmeter_engine::disturbance::placement::MOVES;
use machmeter_engine::part::SHARED_CORE;

machmeter_data::code! { pub(super) NOT_MEASURED = "W400" "memory part not measured",
    what: "A part of the memory probe was not measured; the text gives the reason.",
    why: "Its figures are missing, not zero.",
    how: "The part ended with an error before its first sample.",
    next: "The other parts are valid. Remove the cause, then repeat this part with --parts.",
}

machmeter_data::rows! { ROWS:
    "MEMORY" {
        row "latency": [
            "2 MiB pages" "memory.latency{level=DRAM,order=global,pages=huge}",
            "4 KiB" "memory.latency{level=DRAM,order=global,pages=small}",
        ];
        row "{kernel}, 4 KiB pages" share "kernel": [
            "1 CPU" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=read.*,cpus=1}",
            "{cpus} CPUs" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=read.*}" most("cpus"),
        ];
        row "{kernel}, 4 KiB pages" share "kernel": [
            "1 CPU" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=copy.*,cpus=1}",
            "{cpus} CPUs" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=copy.*}" most("cpus"),
        ];
        detail "cycles a load": [
            "L1" "memory.latency_cycles{level=L1}",
            "L2" "memory.latency_cycles{level=L2}",
            "last cache" "memory.latency_cycles{level=LLC}",
        ];
        detail "clock of the core": ["" "memory.core_clock"];
        detail "line": ["{level}" "memory.line_size"];
        detail "ways": ["{level}" "memory.associativity"];
        detail "pages that translation buffers hold": [
            "first" "memory.tlb_entries{level=1}",
            "second" "memory.tlb_entries{level=2}",
        ];
        detail "{kernel}, {level}" each "level" share "kernel": [
            "1 CPU" "memory.bandwidth{data=random,pages=small,!convention=stream,kernel=read.*,cpus=1,!level=DRAM}",
        ];
        detail "{kernel}, 4 KiB pages" share "kernel": [
            "1 CPU" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=write.*,cpus=1}",
            "{cpus} CPUs" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=write.*}" most("cpus"),
        ];
        detail "{kernel} past the caches, 4 KiB pages" share "kernel": [
            "1 CPU" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=copy_nt.*,cpus=1}",
            "{cpus} CPUs" "memory.bandwidth{level=DRAM,data=random,pages=small,!convention=stream,kernel=copy_nt.*}" most("cpus"),
        ];
        detail "latency": [
            "alone" "memory.loaded_latency{load=none}",
            "others busy" "memory.loaded_latency{!load=none}" greatest,
        ];
        detail "operations on numbers" share "kernel": ["{kernel}" "memory.peak_flops"];
        detail "{model}, read DRAM" each "model": [
            "own" "memory.shared{access=dependent,operation=read_local}",
            "another's" "memory.shared{access=dependent,operation=read_neighbour}",
            "all at once" "memory.shared{access=dependent,operation=allread_neighbour}",
        ];
    }
    "LADDER" {
        row "{level}" each "level": [
            "size" "memory.cache_size",
            "latency" "memory.latency{order=global,pages=small}",
        ];
    }
}

/// The probe's description.
pub const INFO: Info = Info {
    name: "memory",
    question: "Memory latency and bandwidth at every cache level",
    method: "Each cost comes from pairs of batches of n and 2n turns of one operation; constant costs cancel in their difference. \
             The bandwidth of a load during a latency measurement is its bytes over the time of such a pair. \
             Batches are rejected and counted if a thread was switched out, was moved, or waited for a stopped partner. \
             All rows are visited several times in random order.",
    references: &[
        "R. H. Saavedra-Barrera, A. J. Smith: Measuring cache and TLB performance and their effect on benchmark runtimes, IEEE Transactions on Computers 44, 1995",
        "L. McVoy, C. Staelin: lmbench: portable tools for performance analysis, USENIX 1996",
        "K. Yotov, K. Pingali, P. Stodghill: Automatic measurement of memory hierarchy parameters (X-Ray), SIGMETRICS 2005",
        "J. D. McCalpin: Memory bandwidth and machine balance in current high performance computers (STREAM), IEEE TCCA Newsletter, 1995",
        "S. Williams, A. Waterman, D. Patterson: Roofline: an insightful visual performance model, Communications of the ACM 52, 2009",
    ],
    metrics: &[ladder::PART.metrics, table::PART.metrics, bandwidth::PART.metrics, loaded::PART.metrics],
    rows: ROWS,
    // Sizes and counts are exact or bracketed, shares are of the run.
    lasting: |m| m.unit.is_price(),
    codes: &[
        &[NOT_MEASURED, SHARED_CORE, SLOW_CLOCK, MOVES],
        ladder::PART.codes,
        table::PART.codes,
        bandwidth::PART.codes,
        loaded::PART.codes,
    ],
    example_job: "memory.toml",
};

#[cfg(test)]
mod tests {
    use machmeter_data::metric::params;
    use machmeter_data::summary::{Row, rows};
    use machmeter_data::{Metric, MetricInfo, Unit};

    const BANDWIDTH: MetricInfo = MetricInfo::of("memory.bandwidth", Unit::BytesPerSecond);

    fn rate(kernel: &str, cpus: i64, pages: &str, convention: &str, rate: f64) -> Metric {
        let mut of = params([
            ("kernel", kernel.into()),
            ("cpus", cpus.into()),
            ("level", "DRAM".into()),
            ("data", "random".into()),
            ("pages", pages.into()),
        ]);
        of.extend((!convention.is_empty()).then(|| ("convention".to_owned(), convention.into())));
        Metric::new(&BANDWIDTH, of, rate, "median", 30)
    }

    #[test]
    fn a_line_is_of_one_kernel_one_page_size_and_one_convention() {
        let mut all = Vec::new();
        for family in ["read", "copy", "write", "copy_nt"] {
            let kernel = |width: &str| format!("{family}.{width}");
            // Counted as STREAM first, huge pages quicker than small ones, and the narrow kernel lucky.
            all.extend([
                rate(&kernel("sse2"), 2, "small", "stream", 27.5e9),
                rate(&kernel("sse2"), 1, "small", "stream", 21e9),
                rate(&kernel("sse2"), 1, "small", "", 19.8e9),
                rate(&kernel("avx2"), 1, "huge", "", 35e9),
                rate(&kernel("avx2"), 1, "small", "", 17.7e9),
                rate(&kernel("avx2"), 2, "huge", "", 40e9),
                rate(&kernel("avx2"), 2, "small", "", 28.4e9),
            ]);
        }
        let bandwidth: Vec<Row> = rows(super::ROWS, &all);
        assert_eq!(bandwidth.len(), 4, "{bandwidth:?}");
        for row in bandwidth {
            let first = &row.figures[0].params;
            assert_eq!(row.figures.len(), 2, "{row:?}");
            for condition in ["kernel", "pages", "convention", "data"] {
                assert!(
                    row.figures.iter().all(|f| f.params.get(condition) == first.get(condition)),
                    "{row:?}"
                );
            }
            assert_eq!(first["pages"], "small".into());
            assert!(row.name.contains(&first["kernel"].to_string()), "{}", row.name);
            assert!(row.name.contains("avx2") && row.name.contains("4 KiB pages"), "{}", row.name);
        }
    }
}
