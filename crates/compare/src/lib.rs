//! Verdicts between records: effect, interval, test, smallest detectable change, family-wise error.
