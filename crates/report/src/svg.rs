//! Writes SVG. Shapes carry classes, never inline styles: pages under a strict content policy and both themes use the same picture.

#[derive(Debug)]
pub(crate) struct Svg {
    out: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A picture of `width` by `height` units; the title serves screen readers.
    pub(crate) fn new(width: f64, height: f64, class: &str, title: &str) -> Self {
        let (width, height, title) = (px(width), px(height), escape(title));
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\"><title>{title}</title>"
        );
        Self { out }
    }

    /// Adds a part that is already SVG.
    pub(crate) fn raw(&mut self, part: &str) {
        self.out.push_str(part);
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.path(class, &format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2)));
    }

    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(px);
        self.raw(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (px(x), px(y), escape(text));
        self.raw(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"));
    }

    /// A line through points; runs of equal height collapse to their ends.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if !points.is_empty() {
            self.path(class, &path_data(points));
        }
    }

    /// Draws a line of zero length at each point, so that only its cap is visible.
    pub(crate) fn dots(&mut self, class: &str, points: &[(f64, f64)]) {
        if !points.is_empty() {
            let d: String = points.iter().map(|(x, y)| format!("M{} {}h0", px(*x), px(*y))).collect();
            self.path(class, &d);
        }
    }

    /// Draws the area between an upper and a lower line over the same x.
    pub(crate) fn band(&mut self, class: &str, upper: &[(f64, f64)], lower: &[(f64, f64)]) {
        if !upper.is_empty() {
            let ring: Vec<(f64, f64)> = upper.iter().chain(lower.iter().rev()).copied().collect();
            self.path(class, &(path_data(&ring) + "Z"));
        }
    }

    /// A path given as SVG path data.
    pub(crate) fn path(&mut self, class: &str, data: &str) {
        self.raw(&format!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

/// Path data through points with relative steps, which take fewer characters.
fn path_data(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    let (mut x, mut y) = (0.0, 0.0);
    for (i, (px_x, px_y)) in points.iter().enumerate() {
        let (rx, ry) = (tenth(*px_x), tenth(*px_y));
        if i == 0 {
            d = format!("M{} {}l", px(rx), px(ry));
        } else {
            step(&mut d, rx - x);
            step(&mut d, ry - y);
        }
        (x, y) = (rx, ry);
    }
    if points.len() == 1 {
        d.push_str("0 0");
    }
    d
}

/// Appends a number of path data; a sign separates numbers like a space.
fn step(d: &mut String, v: f64) {
    let text = px(v);
    if !d.ends_with('l') && !text.starts_with('-') {
        d.push(' ');
    }
    d.push_str(&text.replacen("0.", ".", usize::from(v.abs() < 0.95)));
}

fn tenth(v: f64) -> f64 {
    if v.is_finite() { (v * 10.0).round() / 10.0 } else { 0.0 }
}

/// A coordinate rounded to a tenth of a unit, in its shortest form.
pub(crate) fn px(v: f64) -> String {
    let v = tenth(v);
    if v == v.trunc() { format!("{}", v as i64) } else { format!("{v:.1}") }
}

/// Escapes text for use between tags and in double quotes. Control characters, which XML forbids, become spaces.
pub(crate) fn escape(text: &str) -> String {
    let escapes = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
    escapes.into_iter().fold(text, |text, (c, escape)| text.replace(c, escape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_can_not_break_out() {
        assert_eq!(escape("<a href=\"x\">&'\u{1}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39; ");
    }

    #[test]
    fn paths_step_relatively_and_never_hold_nan() {
        let mut s = Svg::new(10.0, 10.0, "c", "t");
        s.polyline("l", &[(1.0, 2.0), (2.04, f64::NAN)]);
        let out = s.finish();
        assert!(out.contains("d=\"M1 2l1-2\""), "{out}");
    }
}
