//! The terminal behind stdout.

/// Columns of the terminal behind stdout; `None` when stdout is no terminal or does not tell.
pub fn width() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize structure, which lives until the call returns.
    let told = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (told == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}
