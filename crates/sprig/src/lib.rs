//! The function library of Helm templates: Sprig 3 and Helm's own.
