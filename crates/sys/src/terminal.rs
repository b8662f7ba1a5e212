//! The terminal behind stdout.

/// Columns of the terminal behind stdout; `None` when stdout is no terminal or does not tell.
pub fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
