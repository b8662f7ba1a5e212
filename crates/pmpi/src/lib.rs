//! The recorder of `machmeter trace`: a library that is preloaded into the ranks of an MPI program.
//!
//! It defines the names of MPI in C (`MPI_Send`, `MPI_Send_c`) and Fortran (`mpi_send_`, `mpi_send_f08_`, `mpi_send_f08ts_`), passes every
//! argument on as a machine word, and writes a slot of 32 bytes for each outermost call ([`mod@format`]). Of a library it
//! knows three things at run time: the handle of `MPI_COMM_WORLD`, how wide handles are, and the numbers of two special ranks.
//!
//! The System V ABI of x86-64 and the procedure call standard of aarch64 on Linux pass integers, pointers and handles alike, eight
//! bytes each; the upper half of a 32-bit argument is undefined, so that it is cut off wherever a value is read.
//!
//! The program embeds the recorder: the build script of crate `machmeter` compiles this file by one call of the compiler. It uses the
//! standard library only.
#![allow(non_snake_case, reason = "functions have the names of the MPI standard")]

/// A function of one exported name in a module of its own, around the function of the MPI library that it stands for: what is done
/// before the call, and after it with whether it succeeded.
macro_rules! exported {
    ($module:ident $export:expr, $profiled:expr, ($($word:ident)*) $code:ident, |$words:ident| $before:expr, |$call:ident, $succeeded:ident| $after:expr) => {
        mod $module {
            use super::*;

            #[unsafe(export_name = $export)]
            extern "C" fn function($($word: usize),*) -> i32 {
                static REAL: Real = Real::new();
                let $words: &[usize] = &[$($word),*];
                let $call = $before;
                let real = REAL.get(concat!($profiled, "\0"), concat!($export, "\0"));
                // SAFETY: the MPI library's function of this name takes as many words, and returns an int or, in Fortran, nothing.
                let real = unsafe { std::mem::transmute::<usize, extern "C" fn($(exported!(@word $word)),*) -> i32>(real) };
                let code = real($($word),*);
                let $succeeded = exported!(@succeeded $code code, $words);
                $after;
                code
            }
        }
    };
    (@word $word:ident) => { usize };
    (@succeeded returned $code:ident, $words:ident) => { $code == 0 };
    // Fortran has the code in the last argument.
    (@succeeded last $code:ident, $words:ident) => { fortran_succeeded($words) };
}

#[macro_use]
#[path = "../../data/src/trace/format/mod.rs"]
pub mod format;

mod clock;
mod communicators;
mod file;
mod library;
mod record;
mod special;
mod system;
mod thread;

use format::{ABSENT, Arguments, Bytes, Handle, Number, PLAIN, access, collective, handle, message, rooted};

use library::Real;
use record::{Call, Form, enter, enter_large, fortran_succeeded, leave};

/// A function that is recorded: `$enter` begins, with what is known of the operation and the words of the call.
macro_rules! recorded {
    ($module:ident $export:expr, $profiled:expr, $number:ident, $arguments:expr, $form:expr, |$given:ident| $enter:expr, $words:tt $code:ident) => {
        exported!(
            $module $export, $profiled, $words $code,
            |$given| $enter,
            |call, succeeded| leave(&call, Number::$number, const { &$arguments }, $form, $given, succeeded)
        );
    };
}

/// Makes `with_words`: calls a macro with as many names of words, and for Fortran with one more for the error code.
macro_rules! words_by_number {
    ($d:tt $($number:tt ($($word:ident)*))*) => {
        macro_rules! with_words {
            $(($number $d use:ident $d with:tt) => { $d use! { $d with ($($word)*) ($($word)* e) } };)*
        }
    };
}
words_by_number! { $
    1 (a) 2 (a b) 3 (a b c) 4 (a b c d) 5 (a b c d f) 6 (a b c d f g) 7 (a b c d f g h) 8 (a b c d f g h i)
    9 (a b c d f g h i j) 10 (a b c d f g h i j k) 12 (a b c d f g h i j k l m) 13 (a b c d f g h i j k l m n)
}

// C names have a copy of the recording code each. The three Fortran names of an operation share one, which is not inlined: 278 copies
// fewer, at 20 to 45 instructions a call.
macro_rules! c_and_fortran {
    (($c:ident $f:ident $arguments:expr) $words:tt $fortran_words:tt) => {
        mod $f {
            use super::*;

            #[inline(never)]
            fn enter_fortran(has_descriptors: bool, words: &[usize]) -> Call {
                enter(Number::$c, const { &$arguments }, Form::Fortran, has_descriptors, words)
            }

            recorded!(c concat!("MPI_", stringify!($c)), concat!("PMPI_", stringify!($c)), $c, $arguments, Form::C,
                |words| enter(Number::$c, const { &$arguments }, Form::C, false, words), $words returned);
            recorded!(fortran concat!("mpi_", stringify!($f), "_"), concat!("pmpi_", stringify!($f), "_"), $c, $arguments, Form::Fortran,
                |words| enter_fortran(false, words), $fortran_words last);
            recorded!(f08 concat!("mpi_", stringify!($f), "_f08_"), concat!("pmpi_", stringify!($f), "_f08_"), $c, $arguments, Form::Fortran,
                |words| enter_fortran(false, words), $fortran_words last);
            recorded!(f08ts concat!("mpi_", stringify!($f), "_f08ts_"), concat!("pmpi_", stringify!($f), "_f08ts_"), $c, $arguments, Form::Fortran,
                |words| enter_fortran(true, words), $fortran_words last);
        }
    };
}

macro_rules! large_count {
    (($c:ident $f:ident $arguments:expr) $words:tt $fortran_words:tt) => {
        recorded!($f concat!("MPI_", stringify!($c), "_c"), concat!("PMPI_", stringify!($c), "_c"), $c, $arguments, Form::LargeCount,
            |words| enter_large(Number::$c, words), $words returned);
    };
}

macro_rules! functions {
    (counted { $($c:ident $f:ident $n:tt $k:ident $a:expr;)* } plain { $($pc:ident $pf:ident $pn:tt $pk:ident $pa:expr;)* }) => {
        $(with_words!($n c_and_fortran ($c $f $a));)*
        $(with_words!($pn c_and_fortran ($pc $pf $pa));)*
        mod large {
            use super::*;
            $(with_words!($n large_count ($c $f $a));)*
        }
    };
}
mpi_operations!(functions);
