//! Functions that are not recorded themselves: they begin and end the recording, or free datatypes.

use std::cell::Cell;

use crate::file::Begin;
use crate::library::Real;
use crate::record::{self, fortran_succeeded};
use crate::thread::local;

thread_local! {
    static BEGIN: Cell<Option<Begin>> = const { Cell::new(None) };
}

/// Only the outermost of nested calls counts: MPICH's `mpi_init_` calls `MPI_Init`.
fn before_init() {
    if local().nest() {
        BEGIN.set(Some(Begin::now()));
    }
}

fn after_init(succeeded: bool) {
    if local().is_outermost()
        && let Some(begin) = BEGIN.take().filter(|_| succeeded)
    {
        record::begin(&begin);
    }
    local().unnest();
}

fn before_finalize() {
    if local().nest() {
        record::finish();
    }
}

macro_rules! special {
    ($($module:ident $export:literal $profiled:literal $words:tt $code:ident $before:expr, |$succeeded:ident| $after:expr;)*) => {
        $(exported!($module $export, $profiled, $words $code, |_words| $before, |_call, $succeeded| $after);)*
    };
}

special! {
    init "MPI_Init" "PMPI_Init" (a b) returned before_init(), |ok| after_init(ok);
    init_fortran "mpi_init_" "pmpi_init_" (a) last before_init(), |ok| after_init(ok);
    init_f08 "mpi_init_f08_" "pmpi_init_f08_" (a) last before_init(), |ok| after_init(ok);
    init_thread "MPI_Init_thread" "PMPI_Init_thread" (a b c d) returned before_init(), |ok| after_init(ok);
    init_thread_fortran "mpi_init_thread_" "pmpi_init_thread_" (a b c) last before_init(), |ok| after_init(ok);
    init_thread_f08 "mpi_init_thread_f08_" "pmpi_init_thread_f08_" (a b c) last before_init(), |ok| after_init(ok);
    finalize "MPI_Finalize" "PMPI_Finalize" () returned before_finalize(), |_ok| local().unnest();
    finalize_fortran "mpi_finalize_" "pmpi_finalize_" (a) last before_finalize(), |_ok| local().unnest();
    finalize_f08 "mpi_finalize_f08_" "pmpi_finalize_f08_" (a) last before_finalize(), |_ok| local().unnest();
    type_free "MPI_Type_free" "PMPI_Type_free" (a) returned (), |_ok| record::forget_handles();
    type_free_fortran "mpi_type_free_" "pmpi_type_free_" (a b) last (), |_ok| record::forget_handles();
    type_free_f08 "mpi_type_free_f08_" "pmpi_type_free_f08_" (a b) last (), |_ok| record::forget_handles();
}
