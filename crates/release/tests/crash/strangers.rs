//! Somebody else, between any two requests of ours.
