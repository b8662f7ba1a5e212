//! Run documents as JSON, raw samples as Parquet, history, and readers of other tools' files.
