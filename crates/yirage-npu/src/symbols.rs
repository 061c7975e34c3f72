//! Pointers that libraries give out, and a table of a library's functions, each found by its name when the library is loaded; one that is missing is an error then.

use std::ffi::c_void;

/// What a library gives out and takes back: contexts, streams, events, descriptions of operands.
pub(crate) type LibraryPointer = *mut c_void;

/// A table of functions by the types of a maker's public headers.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident = $name:literal: fn($($argument:ty),* $(,)?) -> $answer:ty;)* }) => {
        $(#[$doc])*
        pub(crate) struct $table { $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $answer,)* }

        impl $table {
            /// Finds all of them.
            pub(crate) fn of(library: &DriverLibrary) -> Result<$table, ProbeError> {
                // SAFETY: the types are those of the functions of these names in the maker's headers.
                unsafe { Ok($table { $($field: library.function($name)?,)* }) }
            }
        }
    };
}

pub(crate) use functions;
