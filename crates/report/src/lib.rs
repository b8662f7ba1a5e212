//! Views of records: terminal page, tables, HTML, SVG, CSV, OpenMetrics and exporters.
