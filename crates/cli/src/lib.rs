//! The catamaran command.
